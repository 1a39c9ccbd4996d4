"""The figures of a report as tables of text."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from ndsvrp.bench.report.curves import Integral, Profile
from ndsvrp.bench.report.published import INSTANCES, SECONDS, Entry
from ndsvrp.bench.report.series import Results, limit_text
from ndsvrp.bench.report.statistics import EXACT, WORST_GAP
from ndsvrp.bench.report.summaries import Comparison, InstanceLine, Line
from ndsvrp.text import amount, number

Record = TypeVar("Record")
EMPTY = "–"
RESULTS, COMPARISON = "Results", "Comparison with the baseline"
VERSIONS = "Versions: "  # begins a note
SHARED_CORE = 0.95  # a run with less CPU time than this share of its seconds had to share its core
WITHIN = (0.0, 0.1, 0.5, 1.0, 2.0, 5.0)
"""The gaps in percent of the table of shares."""
WHERE: list[tuple[str, bool, Callable[[Any], str]]] = [
    ("set", False, lambda record: record.set),
    ("limit", True, lambda record: limit_text(record.budget, record.iterations)),
    ("solver", False, lambda record: record.solver),
]
"""The columns that say which series a record is of."""


@dataclass(frozen=True)
class Table:
    """A table with its notes. Numbers stand on the right."""

    title: str
    columns: tuple[str, ...]
    numeric: tuple[bool, ...]  #: per column
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()

    def without_empty_columns(self) -> "Table":
        """Return the table without the columns that are empty in all rows."""
        used = [i for i in range(len(self.columns)) if not self.rows or any(row[i] != EMPTY for row in self.rows)]
        return replace(
            self,
            columns=tuple(self.columns[i] for i in used),
            numeric=tuple(self.numeric[i] for i in used),
            rows=tuple(tuple(row[i] for i in used) for row in self.rows),
        )


def overview(lines: Sequence[Line], results: Results) -> Table:
    """Return means and standard errors of every series."""
    columns: list[tuple[str, bool, Callable[[Line], str]]] = [
        *WHERE,
        ("hardware", False, lambda line: line.hardware),
        ("instances", True, lambda line: str(line.instances)),
        ("seeds", True, lambda line: str(line.seeds)),
        ("solved", True, lambda line: f"{line.solved}/{line.runs}"),
        ("mean cost", True, lambda line: _cost(line.cost)),
        ("± over seeds, %", True, lambda line: _text(line.cost_seed_error, ".2f")),
        ("gap to best known, %", True, _gap_of),
        ("± over seeds, points", True, lambda line: _text(line.gap_seed_error, ".2f")),
        ("seconds", True, lambda line: _text(line.seconds, ".1f")),
        ("routes", True, lambda line: _text(line.routes, ".1f")),
    ]
    return _table(RESULTS, columns, lines, _overview_notes(lines, results))


def per_instance(lines: Sequence[InstanceLine]) -> Table:
    """Return the costs of every instance."""
    several = any(line.seeds > 1 for line in lines)
    columns: list[tuple[str, bool, Callable[[InstanceLine], str]]] = [
        WHERE[0],
        ("instance", False, lambda line: line.instance),
        ("customers", True, lambda line: f"{line.customers:,}"),
        ("best known", True, lambda line: _exact(line.best_known)),
        *WHERE[1:],
        ("seeds", True, lambda line: str(line.seeds) if several else EMPTY),
        ("best", True, lambda line: _exact(line.best) if several else EMPTY),
        ("mean" if several else "cost", True, lambda line: _exact(line.cost)),
        ("gap, %", True, lambda line: _text(line.gap, "+.2f")),
        ("seconds", True, lambda line: _text(line.seconds, ".1f")),
        ("routes", True, lambda line: _text(line.routes, ".1f" if several else ".0f")),
    ]
    notes = ["The gap is that of the mean over seeds to the best known cost"] if several else []
    return _table("Results per instance", columns, lines, notes)


def _gap_of(line: Line) -> str:
    part = f" ({line.known} of {line.instances})" if 0 < line.known < line.instances else ""
    return _with_error(line.gap, line.gap_error) + part


def _overview_notes(lines: Sequence[Line], results: Results) -> list[str]:
    rows = results.rows
    versions: dict[str, dict[str, None]] = {}
    for line in lines:
        versions.setdefault(line.solver, {}).update(dict.fromkeys(line.version.split(", ")))
    notes = [VERSIONS + "; ".join(f"{solver} {', '.join(some)}" for solver, some in versions.items())]
    if results.replaced:
        notes.append(f"Later rows of another version replace {amount(results.replaced, 'row')}")
    if any(line.seeds > 1 for line in lines):
        notes.append("An instance counts as the mean over its seeds; '± over seeds' is the standard error over seeds")
    if any(line.gap_error is not None for line in lines):
        notes.append("The ± after a gap is the standard error over instances")
    if results.are_uneven:
        notes.append("Means over different instances are not comparable; the comparison is over common instances")
    on_cores = [row for row in rows if "cost" in row and "gpu" not in row["hardware"]]
    shared = [row for row in on_cores if row["cpu_seconds"] < SHARED_CORE * row["seconds"]]
    if shared:
        notes.append(f"{amount(len(shared), 'run')} had to share a core: run again on a quiet machine")
    errors = [row for row in rows if "error" in row]
    if errors:
        row = errors[-1]
        last = f"{row['solver']} on {row['instance']}: {row['error']}"
        notes.append(f"{amount(len(errors), 'run')} failed, the last {last}")
    return notes + list(dict.fromkeys(row["skipped"] for row in rows if "skipped" in row))


def comparison(pairs: Sequence[Comparison], missing: Sequence[str] = ()) -> Table:
    """Return paired differences to the baseline; `missing` are sets without one."""
    columns: list[tuple[str, bool, Callable[[Comparison], str]]] = [
        *WHERE,
        ("baseline", False, lambda pair: _baseline(pair)),
        ("instances", True, lambda pair: str(pair.instances)),
        ("difference, %", True, lambda pair: _with_error(pair.difference, pair.difference_error)),
        ("win/tie/loss", True, lambda pair: f"{pair.wins}/{pair.ties}/{pair.losses}"),
        ("p", True, lambda pair: _probability(pair.p)),
    ]
    notes = [
        "Over the instances that both solved; negative: the solver's costs are lower; ± is the standard error",
        f"The column p: two-sided Wilcoxon signed-rank test of the relative differences, exact up to {EXACT} pairs",
    ]
    if missing:
        notes.append(f"The baseline has no solution of {', '.join(missing)}")
    return _table(COMPARISON, columns, pairs, notes)


def _baseline(pair: Comparison) -> str:
    return f"{pair.baseline}, {limit_text(pair.baseline_budget, pair.baseline_iterations)}"


def main_table(entries: Sequence[Entry]) -> Table:
    """Return our results beside those of the paper."""
    columns: list[tuple[str, bool, Callable[[Entry], str]]] = [
        ("set", False, lambda entry: entry.set),
        ("solver", False, lambda entry: entry.solver),
        ("source", False, _source),
        ("instances", True, lambda entry: f"{entry.instances:,}"),
        ("mean cost", True, lambda entry: _text(entry.cost, ".2f")),
        ("gap, %", True, lambda entry: _with_error(entry.gap, entry.gap_error)),
        ("gap to", False, lambda entry: entry.gap_to or EMPTY),
        ("seconds", True, lambda entry: _text(entry.seconds, ".0f" if entry.published else ".1f")),
    ]
    limits = ", ".join(f"{seconds:g}" for seconds in SECONDS.values())
    notes = [
        "Published: Hottung, Wong-Chung and Tierney, Neural Deconstruction Search for Vehicle Routing Problems, "
        f"TMLR 2025, table 'Performance on test data'; limits of {limits} s for 100, 500, 1000, 2000 customers; "
        "gaps and costs as printed",
    ]
    ours = [entry for entry in entries if not entry.published]
    if any(entry.instances < INSTANCES[entry.set] for entry in ours):
        notes.append(
            "Where we ran a part of a set, its mean is not comparable with the paper's mean of the whole set: "
            "instead the gap is paired, to our baseline on the same instances, with its standard error"
        )
    if any(entry.instances >= INSTANCES[entry.set] for entry in ours):
        notes.append(
            "Where we ran the whole set, the gap is that of our mean cost to the published one; "
            "gaps of the paper are up to 0.1 points away from those of its mean costs"
        )
    notes.append("Sets are recognised by name and size; that the instances are the paper's is not checked")
    return _table("The paper's main table", columns, entries, notes)


def _source(entry: Entry) -> str:
    return "published" if entry.budget is None else f"ours, {limit_text(entry.budget, entry.iterations)}"


def shares(profiles: Sequence[Profile]) -> Table:
    """Return the share of instances within some gaps of the best cost."""
    columns: list[tuple[str, bool, Callable[[Profile], str]]] = [
        *WHERE,
        ("instances", True, lambda profile: str(len(profile.gaps))),
    ]
    for within in WITHIN:
        columns.append((f"{within:g}%", True, lambda profile, x=within: f"{100 * profile.share(x):.0f}%"))  # type: ignore[misc]
    notes = [
        "Share of the instances that all solvers of the set tried whose mean cost over seeds is within the gap of the "
        "best: the lowest cost of the instance in these rows, or its best known cost if that is lower",
    ]
    parts = {
        each.set: f"{each.set} {len(each.gaps)} of up to {max(p.tried for p in profiles if p.set == each.set)}"
        for each in profiles
        if any(p.tried > len(p.gaps) for p in profiles if p.set == each.set)
    }
    if parts:
        notes.append(f"Solvers tried different instances; here are those that all tried: {', '.join(parts.values())}")
    return _table("Share of instances within a gap", columns, profiles, notes)


def primal_integrals(values: Sequence[Integral]) -> Table:
    """Return the primal integrals."""
    columns: list[tuple[str, bool, Callable[[Integral], str]]] = [
        *WHERE,
        ("instances", True, lambda value: str(value.instances)),
        ("primal integral, %", True, lambda value: _with_error(value.integral, value.integral_error, sign="")),
    ]
    notes = [
        "The gap of the best solution so far to the best cost of the instance (as for the shares), integrated over the "
        f"time limit and divided by it; a gap counts at most {WORST_GAP:g}%, also before the first solution",
    ]
    return _table("Primal integral", columns, values, notes)


def _table(
    title: str,
    columns: Sequence[tuple[str, bool, Callable[[Record], str]]],
    records: Sequence[Record],
    notes: Sequence[str],
) -> Table:
    """Fill a table; columns without any value are left out."""
    rows = tuple(tuple(value(record) for _, _, value in columns) for record in records)
    names, numeric = tuple(name for name, _, _ in columns), tuple(numeric for _, numeric, _ in columns)
    return Table(title, names, numeric, rows, tuple(notes)).without_empty_columns()


def _text(value: float | None, form: str) -> str:
    return EMPTY if value is None else f"{value:{form}}"


def _exact(value: float | None) -> str:
    return EMPTY if value is None else number(value)


def _cost(value: float | None) -> str:
    return _text(value, ".4f" if (value or 0) < 1000 else ".1f")


def _with_error(value: float | None, error: float | None, sign: str = "+") -> str:
    text = _text(value, f"{sign}.2f")
    return text if error is None else f"{text} ± {error:.2f}"


def _probability(p: float | None) -> str:
    if p is None:
        return EMPTY
    return "< 0.001" if p < 0.001 else f"{p:.3f}"
