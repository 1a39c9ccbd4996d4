"""Reports on result rows: means, paired comparisons, the paper's main table, curves.

Every figure is a field of a frozen record (`summaries`, `published`, `curves`). `tables` writes the records as text for
people, `formats` as Markdown, HTML, LaTeX and CSV.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ndsvrp.bench.report import tables
from ndsvrp.bench.report.curves import Curve, Integral, Profile, SizeLine, curves, integrals, profiles, size_lines
from ndsvrp.bench.report.formats import to_csv, to_html, to_latex, to_markdown
from ndsvrp.bench.report.published import Entry, main_table
from ndsvrp.bench.report.series import Results, sort_rows
from ndsvrp.bench.report.summaries import (
    Comparison,
    InstanceLine,
    Line,
    compare,
    per_instance,
    summarise,
    without_baseline,
)
from ndsvrp.bench.rows import Row
from ndsvrp.errors import NdsError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["FORMATS", "Report", "check_format", "make_report"]

FORMATS = (".md", ".html", ".tex", ".csv")


@dataclass(frozen=True)
class Report:
    """All figures of a report."""

    results: Results
    lines: list[Line]
    comparisons: list[Comparison]
    without_baseline: list[str]  #: sets
    entries: list[Entry]  #: of the paper's main table
    profiles: list[Profile]
    integrals: list[Integral]
    curves: list[Curve]
    sizes: list[SizeLine]
    instances: list[InstanceLine]  #: none, unless they were asked for

    @property
    def tables(self) -> list[tables.Table]:
        """The tables that have rows; that of the results also without."""
        made = [tables.overview(self.lines, self.results)]
        made += [tables.comparison(self.comparisons, self.without_baseline)] if self.comparisons else []
        made += [tables.main_table(self.entries)] if self.entries else []
        made += [tables.shares(self.profiles)] if self.profiles else []
        made += [tables.primal_integrals(self.integrals)] if self.integrals else []
        made += [tables.per_instance(self.instances)] if self.instances else []
        return made

    def text(self, suffix: str = ".md") -> str:
        """Return the report in the format of a file's ending, one of FORMATS."""
        if suffix == ".csv":
            return to_csv(self._figures())
        if suffix == ".tex":
            return to_latex(self.tables)
        if suffix == ".html":
            from ndsvrp.bench.report.pictures import address  # matplotlib takes long to load

            return to_html(self.tables, ((title, address(figure)) for title, figure in self._draw()))
        return to_markdown(self.tables)

    def write_pictures(self, folder: Path) -> list[Path]:
        """Write the curves, profiles and gaps against sizes as PDF and PNG. Return the files."""
        from ndsvrp.bench.report.pictures import write_pictures

        return write_pictures(self._draw(), folder)

    def _draw(self) -> "Iterator[tuple[str, Figure]]":
        from ndsvrp.bench.report.pictures import draw

        return draw(self.results.solvers, self.curves, self.profiles, self.sizes)

    def brief(self) -> str:
        """Return the results and the comparison as Markdown."""
        return to_markdown([t for t in self.tables if t.title in (tables.RESULTS, tables.COMPARISON)])

    def _figures(self) -> Iterator[tuple[str, dict[str, Any]]]:
        yield from (("results", asdict(line)) for line in self.lines)
        yield from (("comparison", asdict(pair)) for pair in self.comparisons)
        yield from (("main table", asdict(entry)) for entry in self.entries)
        for profile in self.profiles:
            shares = {f"share within {within:g}%": profile.share(within) for within in tables.WITHIN}
            where = {"set": profile.set, "budget": profile.budget, "solver": profile.solver}
            yield "share within", where | {"instances": len(profile.gaps)} | shares
        yield from (("primal integral", asdict(integral)) for integral in self.integrals)
        for line in self.instances:
            figures = asdict(line)
            where = {name: figures.pop(name) for name in ("set", "budget", "solver", "instance")}
            name = where.pop("instance")
            yield "per instance", where | {f"{name}: {figure}": value for figure, value in figures.items()}


def make_report(rows: Sequence[Row], baseline: str | None = None, *, with_instances: bool = False) -> Report:
    """Compute all figures. Without a baseline, the first solver of each set is the baseline there."""
    results = sort_rows(rows)
    return Report(
        results=results, lines=summarise(results), comparisons=compare(results, baseline),
        without_baseline=without_baseline(results, baseline),
        entries=main_table(results, baseline), profiles=profiles(results),
        integrals=integrals(results), curves=curves(results), sizes=size_lines(results),
        instances=per_instance(results) if with_instances else [],
    )  # fmt: skip


def check_format(file: Path) -> None:
    """Raise for a file ending that is not supported."""
    if file.suffix.lower() not in FORMATS:
        raise NdsError(f"{file}: reports are written as {', '.join(FORMATS)}, not as '{file.suffix}'")
