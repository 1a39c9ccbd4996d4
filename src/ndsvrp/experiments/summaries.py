"""Means of the runs of a series, and their paired differences to a reference."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from ndsvrp.bench.report.statistics import gap, standard_error
from ndsvrp.bench.report.tables import EMPTY, Table
from ndsvrp.bench.rows import Row
from ndsvrp.experiments.published import SOURCE, difference


@dataclass(frozen=True)
class Line:
    """The runs of a series on a set with one limit. Differences are over the instances that the reference solved."""

    set: str
    series: str
    limit: float | None  #: seconds; None if the limit is a number of iterations
    instances: int
    cost: float  #: mean
    difference: float | None  #: mean of the differences to the reference, in percent; None for the reference
    error: float | None  #: its standard error
    seconds: float  #: mean


def summarise(rows: Sequence[Row], reference: str | Mapping[str, str], *, longest: bool = False) -> list[Line]:
    """Return a line per set, limit and series: sets together, those with a reference in its order.

    reference: the series that others are compared with, or one for each set; with `longest`, its longest runs.
    """
    costs: dict[tuple[str, float | None, str], dict[str, Row]] = {}
    for row in rows:
        if row.get("feasible"):
            costs.setdefault((row["set"], row.get("budget"), row["series"]), {})[row["instance"]] = row
    lines = []
    for (name, limit, series), runs in costs.items():
        wanted = reference if isinstance(reference, str) else reference[name]
        limits = [other for where, other, who in costs if (where, who) == (name, wanted)]
        at = max((x for x in limits if x is not None), default=None) if longest else limit
        base = costs.get((name, at, wanted), {})
        pairs = [] if base is runs else [gap(r["cost"], base[i]["cost"]) for i, r in runs.items() if i in base]
        lines.append(Line(
            name, series, limit, len(runs), fmean(row["cost"] for row in runs.values()),
            fmean(pairs) if pairs else None, standard_error(pairs), fmean(row["seconds"] for row in runs.values()),
        ))  # fmt: skip
    named = [] if isinstance(reference, str) else list(reference)
    order = list(dict.fromkeys([*named, *(line.set for line in lines)]))
    return sorted(lines, key=lambda line: order.index(line.set))


def cost_table(
    experiment: str, lines: Sequence[Line], columns: Mapping[str, str], reference: Mapping[str, str],
    notes: Sequence[str],
) -> Table:  # fmt: skip
    """Return the lines beside the published differences; `columns` maps sets to columns of the paper's table."""
    rows = []
    for line in lines:
        theirs = difference(experiment, columns.get(line.set, ""), line.series, reference[line.set])
        limit = EMPTY if line.limit is None else f"{line.limit:g} s"
        rows.append((
            line.set, line.series, limit, str(line.instances), f"{line.cost:.4f}", percent(line.difference, line.error),
            percent(theirs), f"{line.seconds:.2f}",
        ))  # fmt: skip
    heads = ("set", "series", "limit", "instances", "mean cost", "difference, %", "published, %", "seconds")
    numeric = (False, False, True, True, True, True, True, True)
    table = Table("Results", heads, numeric, tuple(rows), (_explain(reference), *notes)).without_empty_columns()
    if "published, %" not in table.columns:
        return table
    source = f"{SOURCE}; differences of its means, over other instances and longer runs"
    return replace(table, notes=(*table.notes, source))


def percent(value: float | None, error: float | None = None) -> str:
    """Return a signed number with its standard error."""
    if value is None:
        return EMPTY
    return f"{value:+.2f}" + (f" ± {error:.2f}" if error is not None else "")


def _explain(reference: Mapping[str, str]) -> str:
    names = " or ".join(dict.fromkeys(reference.values()))
    return f"Differences are to {names}, paired by instance, in percent, with their standard error over instances"
