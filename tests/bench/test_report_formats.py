"""Worked examples of every format; names that mean something there."""

from __future__ import annotations

import base64
import csv
import io
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest
from matplotlib.figure import Figure
from report_rows import ROWS, row
from test_report_curves import TRACED

from ndsvrp.bench.report import make_report, pictures
from ndsvrp.bench.report.formats import to_html, to_latex, to_markdown
from ndsvrp.bench.report.tables import Table
from ndsvrp.plot.lines import PlotLine, plot_lines
from ndsvrp.plot.style import solver_colours

ODD = "a&b_<c>%"
TABLE = Table(
    "Costs", ("set", "mean"), (False, True), (("X", "-1.50 ± 0.20"), ("X", "–"), (ODD, "2.00")), ("A note",)
)  # fmt: skip


def test_markdown() -> None:
    assert to_markdown([TABLE]) == (
        "## Costs\n"
        "\n"
        "| set        |         mean |\n"
        "| ---------- | -----------: |\n"
        "| X          | -1.50 ± 0.20 |\n"
        "| X          |            – |\n"
        "| a&b\\_\\<c>% |         2.00 |\n"
        "\n"
        "- A note\n"
    )


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("hgs_adapter:HGS_AS_GIVEN", "hgs_adapter:HGS_AS_GIVEN"),  # underscores within words are plain
        ("_x_", r"\_x\_"),
        ("a|b", r"a\|b"),
        ("**a** `b` [c](d)", r"\*\*a\*\* \`b\` \[c\](d)"),
        ("p < 0.1 & q", "p < 0.1 & q"),
        ("<b>&lt;", r"\<b>\&lt;"),
        ("a\nb\x1b", r"a\\nb\\x1b"),
    ],
)
def test_markdown_of_odd_names(name: str, text: str) -> None:
    table = Table("T", ("name",), (False,), ((name,),))
    assert to_markdown([table]).splitlines()[4] == f"| {text.ljust(4)} |"


def test_latex() -> None:
    versions = replace(TABLE, notes=("Versions: a 0.1.0+d0b7fd7326b2", *TABLE.notes))
    assert to_latex([versions]) == (
        "% needs \\usepackage{booktabs,longtable}\n"
        "% Versions: a 0.1.0+d0b7fd7326b2\n"
        "\\begin{longtable}{lr}\n"
        "\\caption{Costs. A note.} \\\\\n"
        "\\toprule\n"
        "set & mean \\\\\n"
        "\\midrule\n"
        "\\endfirsthead\n"
        "\\toprule\n"
        "set & mean \\\\\n"
        "\\midrule\n"
        "\\endhead\n"
        "\\bottomrule\n"
        "\\endfoot\n"
        "X & $-$1.50 $\\pm$ 0.20 \\\\\n"
        "X & -- \\\\\n"
        "\\midrule\n"
        "a\\&b\\_\\textless{}c\\textgreater{}\\% & 2.00 \\\\\n"
        "\\end{longtable}\n"
    )
    table = Table("T", ("name",), (False,), (("\\{}$#~^|-1",),))
    expected = r"\textbackslash{}\{\}\$\#\textasciitilde{}\textasciicircum{}\textbar{}-1 \\"
    assert expected in to_latex([table]).splitlines()


class Cells(HTMLParser):
    """Collect the text of cells, and all tags."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.cells: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag in ("td", "th"):
            self.cells.append("")

    def handle_data(self, data: str) -> None:
        if self.tags and self.tags[-1][0] in ("td", "th") and data.strip():
            self.cells[-1] += data


def test_html() -> None:
    page = to_html([TABLE])
    assert '<tr><td>a&amp;b_&lt;c&gt;%</td><td class="number">2.00</td></tr>\n' in page
    assert "<ul>\n<li>A note</li>\n</ul>\n" in page
    assert Cells(page).cells == ["set", "mean", "X", "-1.50 ± 0.20", "X", "–", ODD, "2.00"]
    hostile = Table("<script>", ('"',), (False,), (("<img src=x onerror=alert(1)>",),), ("</ul>",))
    assert {tag for tag, _ in Cells(to_html([hostile])).tags}.isdisjoint({"script", "img"})


@pytest.mark.slow
def test_pages_are_self_contained_and_have_pictures() -> None:
    rows = [entry | {"solver": f"{entry['solver']}{ODD}$x$"} for entry in TRACED]
    rows += [entry | {"customers": 200, "instance": "big", "trace": []} for entry in rows[:1]]
    rows += [row("_hidden", "p", 100.0, trace=[[1.0, 100.0]]), row("_hidden", "q", 200.0, trace=[[1.0, 200.0]])]
    page = make_report(rows).text(".html")
    titles = re.findall(r"<h2>([^<]*)</h2>\n<img", page)
    assert titles == ["Gap over time: X", "Performance profile: X", "Gap against size: X"]
    sources = [str(attributes["src"]) for tag, attributes in Cells(page).tags if tag == "img"]
    for source in sources:
        kind, data = source.split(",")
        assert kind == "data:image/svg+xml;base64"
        assert ElementTree.fromstring(base64.b64decode(data)).tag == "{http://www.w3.org/2000/svg}svg"
    assert not [attributes for tag, attributes in Cells(page).tags if tag in ("link", "script")]
    assert page == make_report(rows).text(".html"), "the same rows give the same page"


def test_a_solver_has_one_colour_in_all_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: dict[str, list[PlotLine]] = {}

    def keep(lines: list[PlotLine], **how: object) -> Figure:
        drawn[str(how["y_label"]) + str(how["x_label"])] = lines
        return plot_lines(lines, **how)  # type: ignore[arg-type]

    monkeypatch.setattr(pictures, "plot_lines", keep)
    rows = [row("first", "p", 103.0), *TRACED, row("b", "p", 1.0, budget=6)]
    rows += [row("first", "q", 203.0), row("b", "q", 2.0, budget=6), row("c", "q", 205.0)]
    make_report([*rows, row("b", "big", 1.0, customers=200)]).text(".html")
    curves, shares, sizes = drawn.values()
    first, a, b, c = solver_colours(["first", "a", "b", "c"]).values()
    assert {line.label: (line.colour, line.points) for line in curves} == {
        "first, 60 s": (first, True), "a, 60 s": (a, False), "b, 60 s": (b, False), "b, 6 s": (b, True),
        "c, 60 s": (c, True),
    }  # fmt: skip
    assert {line.label: (line.colour, line.dash) for line in shares} == {
        "first, 60 s": (first, 0), "a, 60 s": (a, 0), "b, 60 s": (b, 0), "b, 6 s": (b, 1), "c, 60 s": (c, 0),
    }  # fmt: skip
    assert {line.label: line.colour for line in sizes} == {"b, 60 s": b}


def test_titles_say_which_instances_are_drawn() -> None:
    """One of the three instances that the rows have was solved by all, two by all solvers with a trace."""
    report = make_report([*TRACED, row("a", "r", 50.0, trace=[[1.0, 50.0]])])
    titles = [figure.axes[0].get_title() for _, figure in report._draw()]
    assert titles[0] == (
        "X, mean over 2 instances that all these series have (of up to 3)\n"
        "without series that lack some of these: c, 60 s"
    )
    assert titles[1] == "X, 1 instance that all these series have (of up to 3)"
    whole = make_report(TRACED[:-1])
    assert [figure.axes[0].get_title() for _, figure in whole._draw()] == ["X, mean over 2 instances", "X, 2 instances"]


@pytest.mark.slow
def test_pictures_as_files(tmp_path: Path) -> None:
    rows = [*TRACED, *(entry | {"set": "x"} for entry in TRACED)]
    files = make_report(rows).write_pictures(tmp_path)
    names = ["gap-over-time-x", "gap-over-time-x-2", "performance-profile-x", "performance-profile-x-2"]
    assert [file.name for file in files] == [f"{name}{suffix}" for name in names for suffix in (".pdf", ".png")]
    starts = {".pdf": b"%PDF", ".png": b"\x89PNG"}
    assert all(file.read_bytes().startswith(starts[file.suffix]) for file in files)


def test_the_height_of_a_curve_leaves_out_first_solutions(monkeypatch: pytest.MonkeyPatch) -> None:
    """A gap of 600% until 7% of the time, then of 8, 4 and 0%: the axis ends above 8%."""
    tops: list[object] = []

    def keep(lines: list[PlotLine], **how: object) -> Figure:
        tops.append(how.get("top"))
        return plot_lines(lines, **how)  # type: ignore[arg-type]

    monkeypatch.setattr(pictures, "plot_lines", keep)
    trace = [[1.0, 700.0], [4.2, 108.0], [20.0, 104.0], [40.0, 100.0]]
    make_report([row("a", "p", 100.0, trace=trace)]).text(".html")
    assert tops == [pytest.approx(1.1 * 8)]


def test_many_lines_have_their_legend_beside_them() -> None:
    def right_end(count: int) -> float:
        lines = [PlotLine(str(i), [1.0, 10.0, 100.0], [20.0, i, i]) for i in range(count)]
        figure = plot_lines(lines, title="t", x_label="x", y_label="y", log_x=True, top=10.0)
        figure.draw_without_rendering()
        axes = figure.axes[0]
        assert axes.get_xlim() == pytest.approx((10, 108)), "from where a line is below the top"
        return float(axes.get_legend().get_window_extent().x0 - axes.get_window_extent().x1)

    assert right_end(6) < 0 < right_end(7)


def test_csv_has_every_digit() -> None:
    rows = [*ROWS, row(ODD, "p", 100 / 3, set="Y")]
    table = list(csv.DictReader(io.StringIO(make_report(rows).text(".csv"))))
    columns = ("table", "set", "time", "solver", "figure")
    values = {tuple(line[column] for column in columns): line["value"] for line in table}
    assert len(values) == len(table), "a figure has one line"
    assert float(values["results", "Y", "60.0", ODD, "cost"]) == 100 / 3
    assert values["results", "X", "60.0", "a", "hardware"] == "1 core, EPYC"
    assert values["results", "X", "60.0", "a", "gap"] == "5.0"
    assert values["comparison", "X", "60.0", "b", "baseline"] == "a"
    assert float(values["comparison", "X", "60.0", "b", "difference"]) == pytest.approx(-1.5)
    assert values["share within", "X", "60.0", "b", "share within 5%"] == "1.0"


def test_report_as_markdown() -> None:
    """Names are never cut."""
    name = "nds-policy-cuda-128-" + "x" * 200
    text = make_report([*ROWS, row(name, "p", 100.0)]).text()
    assert f"| {name} |" in text
    lines = text.splitlines()
    assert [cell.strip() for cell in lines[5].strip("|").split("|")] == [
        "X", "60 s", "b", "1 core, EPYC", "2", "1", "2/2", "155.5000", "+3.25 ± 1.25", "1.6", "4.5",
    ]  # fmt: skip
    compared = next(line for line in lines if line.startswith("| X") and "a, 60 s" in line)
    assert [cell.strip() for cell in compared.strip("|").split("|")] == [
        "X", "60 s", "b", "a, 60 s", "2", "-1.50 ± 3.50", "1/0/1", "1.000",
    ]  # fmt: skip


def test_a_table_of_every_instance() -> None:
    """The mean of 100 and 103 is 1.5% above the best known cost; c refused p and found nothing on q."""
    rows = [*ROWS, row("a", "p", 103.0, 100.0, seed=2, routes=5), row("c", "q"), row("c", "p", skipped="no windows")]
    report = make_report(rows, with_instances=True)
    table = report.tables[-1]
    assert table.title == "Results per instance"
    assert table.columns == (
        "set", "instance", "customers", "best known", "limit", "solver", "seeds", "best", "mean", "gap, %", "seconds",
        "routes",
    )  # fmt: skip
    assert [line[1:2] + line[3:4] + line[5:] for line in table.rows] == [
        ("p", "100", "a", "2", "100", "101.5", "+1.50", "1.0", "4.5"),
        ("p", "100", "b", "1", "102", "102", "+2.00", "1.0", "4.0"),
        ("q", "200", "a", "1", "220", "220", "+10.00", "2.2", "4.0"),
        ("q", "200", "b", "1", "209", "209", "+4.50", "2.1", "5.0"),
        ("q", "200", "c", "1", "–", "–", "–", "–", "–"),
    ]
    figures = {(line[3], line[4]): line[5] for line in csv.reader(io.StringIO(report.text(".csv")))}
    assert (figures["a", "p: cost"], figures["a", "p: best"], figures["b", "q: gap"]) == ("101.5", "100.0", "4.5")
    single = make_report(ROWS, with_instances=True).tables[-1]
    assert single.columns[5:8] == ("solver", "cost", "gap, %")
    assert "Results per instance" not in make_report(ROWS).text()
