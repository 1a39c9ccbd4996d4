"""Tables as Markdown, HTML, LaTeX and CSV."""

import csv
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ndsvrp.bench.report.tables import VERSIONS, Table
from ndsvrp.text import printable
from ndsvrp.webpage import html_text, page

WHERE = ("set", "budget", "solver")  # of every record of figures

NUMBER = ' class="number"'


def to_markdown(tables: Sequence[Table]) -> str:
    """Return tables in columns of equal width, each with its title and notes."""
    return "\n".join(_markdown_table(table) for table in tables)


def _markdown_table(table: Table) -> str:
    cells = [[_markdown_text(cell) for cell in row] for row in (table.columns, *table.rows)]
    widths = [max(3, *map(len, column)) for column in zip(*cells, strict=True)]

    def line(row: Sequence[str]) -> str:
        aligned = (
            cell.rjust(width) if numeric else cell.ljust(width)
            for cell, width, numeric in zip(row, widths, table.numeric, strict=True)
        )
        return f"| {' | '.join(aligned)} |"

    rule = ["-" * (width - 1) + (":" if n else "-") for width, n in zip(widths, table.numeric, strict=True)]
    lines = [f"## {_markdown_text(table.title)}", "", line(cells[0]), line(rule), *map(line, cells[1:]), ""]
    notes = [f"- {_markdown_text(note)}" for note in table.notes]
    return "\n".join([*lines, *notes, ""] if notes else lines)


def _markdown_text(text: str) -> str:
    """Escape what Markdown would interpret; an underscore within a word is plain."""
    escaped = re.sub(r"([\\`*~\[\]|]|<(?=[A-Za-z/!?])|&(?=#?\w+;))", r"\\\1", printable(text))
    return re.sub(r"(?<![^\W_])_|_(?![^\W_])", r"\\_", escaped)


def to_html(tables: Sequence[Table], pictures: Iterable[tuple[str, str]] = ()) -> str:
    """Return one page without references to other files. Pictures are titles and addresses (data:…)."""
    parts = [_html_table(table) for table in tables]
    for title, address in pictures:
        name = html_text(title)
        parts.append(f'<h2>{name}</h2>\n<img src="{html_text(address)}" alt="{name}">\n')
    return page("Benchmark report", "".join(parts))


def _html_table(table: Table) -> str:
    def line(row: Sequence[str], tag: str) -> str:
        cells = (
            f"<{tag}{NUMBER if numeric else ''}>{html_text(cell)}</{tag}>"
            for cell, numeric in zip(row, table.numeric, strict=True)
        )
        return f"<tr>{''.join(cells)}</tr>\n"

    head, body = line(table.columns, "th"), "".join(line(row, "td") for row in table.rows)
    notes = "".join(f"<li>{html_text(note)}</li>\n" for note in table.notes)
    return (
        f'<h2>{html_text(table.title)}</h2>\n<div class="scroll"><table>\n<thead>\n{head}</thead>\n'
        f"<tbody>\n{body}</tbody>\n</table></div>\n" + (f"<ul>\n{notes}</ul>\n" if notes else "")
    )


def to_latex(tables: Sequence[Table]) -> str:
    """Return a longtable per table, which may break over pages, in the style of booktabs; a rule separates sets."""
    return "% needs \\usepackage{booktabs,longtable}\n" + "\n".join(map(_latex_table, tables))


def _latex_table(table: Table) -> str:
    def line(row: Sequence[str]) -> str:
        cells = (
            re.sub(r"(?<![-\w])-(?=\d)", "$-$", _latex_text(cell)) if numeric else _latex_text(cell)
            for cell, numeric in zip(row, table.numeric, strict=True)
        )
        return f"{' & '.join(cells)} \\\\"

    lines, above = [], None
    for row in table.rows:
        if above is not None and row[0] != above[0]:
            lines.append("\\midrule")
        lines.append(line(row))
        above = row
    versions = [f"% {printable(note)}" for note in table.notes if note.startswith(VERSIONS)]  # too long for a caption
    notes = [note for note in table.notes if not note.startswith(VERSIONS)]
    caption = ". ".join(_latex_text(part) for part in (table.title, *notes))
    kinds = "".join("r" if numeric else "l" for numeric in table.numeric)
    before = [*versions, f"\\begin{{longtable}}{{{kinds}}}", f"\\caption{{{caption}.}} \\\\"]
    head = ["\\toprule", line(table.columns), "\\midrule"]
    foot = ["\\bottomrule", "\\endfoot"]
    return "\n".join([*before, *head, "\\endfirsthead", *head, "\\endhead", *foot, *lines, "\\end{longtable}", ""])


_LATEX = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#", "_": r"\_", "%": r"\%",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "|": r"\textbar{}", "±": r"$\pm$", "–": "--",
}  # fmt: skip


def _latex_text(text: str) -> str:
    return "".join(_LATEX.get(character, character) for character in printable(text))


def to_csv(records: Iterable[tuple[str, Mapping[str, Any]]]) -> str:
    """Return a line per figure with every digit: table, set, time limit, solver, name of the figure, value."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(("table", "set", "time", "solver", "figure", "value"))
    for table, record in records:
        where = [record[name] for name in WHERE]
        writer.writerows(
            (table, *where, name, value) for name, value in record.items() if name not in WHERE and value is not None
        )
    return stream.getvalue()
