"""Result rows as a table."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from rich.table import Table

from ndsvrp.bench.rows import Row
from ndsvrp.text import printable

SHARED = 0.95  # a run with less CPU time than this share of its seconds had to share its core


@dataclass(frozen=True)
class Line:
    """The results of one solver on one set, with one budget and seed.

    Means are over the instances that all solvers of the block solved, so that they are comparable.
    """

    set: str
    solver: str
    version: str  #: several if the rows have several
    budget: float
    solved: int  #: instances with a feasible solution
    runs: int  #: instances tried
    compared: int  #: instances that the means are over
    cost: float | None  #: mean
    to_first: float | None  #: mean of the gaps to the block's first solver, in percent
    to_best_known: float | None  #: mean gap, if all compared instances have a best known value
    seconds: float | None  #: mean


def summarise(rows: Sequence[Row]) -> list[Line]:
    """Return lines in blocks of equal (set, budget, seed), with solvers in order of appearance."""
    blocks: dict[tuple[str, float, int], dict[str, dict[str, Row]]] = {}
    for row in rows:  # a later row of the same run replaces an earlier one
        block = blocks.setdefault((row["set"], row["budget"], row["seed"]), {})
        block.setdefault(row["solver"], {})[row["instance"]] = row
    return [line for block in blocks.values() for line in _lines(block)]


def _lines(block: dict[str, dict[str, Row]]) -> list[Line]:
    solved = {solver: {n for n, row in by.items() if row.get("feasible")} for solver, by in block.items()}
    takers = [solver for solver, by in block.items() if not all("skipped" in row for row in by.values())]
    common = sorted(set.intersection(*(solved[solver] for solver in takers))) if takers else []
    lines = []
    for solver, by in block.items():
        mine = [by[name] for name in common] if solver in takers else []
        first = [block[takers[0]][name] for name in common] if takers else []
        known = [row["gap"] for row in mine if row["gap"] is not None]
        some = next(iter(by.values()))
        versions = ", ".join(dict.fromkeys(row["solver_version"] for row in by.values()))
        to_first = _mean([_gap(a["cost"], b["cost"]) for a, b in zip(mine, first, strict=False)])
        cost, seconds = _mean([row["cost"] for row in mine]), _mean([row["seconds"] for row in mine])
        lines.append(
            Line(some["set"], solver, versions, some["budget"], len(solved[solver]), len(by), len(mine), cost, to_first,
                 _mean(known) if len(known) == len(mine) else None, seconds)
        )  # fmt: skip
    return lines


def table(rows: Sequence[Row]) -> Table:
    """Return mean cost, mean gaps in percent, seconds and feasible solutions of every solver, in 80 columns."""
    lines = summarise(rows)
    result = Table(caption=_caption(rows, lines), caption_justify="left")
    result.add_column("set")
    result.add_column("solver")
    for name in ("time", "mean cost", "to\nfirst", "to best\nknown", "spent", "solved"):
        result.add_column(name, justify="right", no_wrap=True)
    for i, line in enumerate(lines):
        last = i + 1 == len(lines) or (lines[i + 1].set, lines[i + 1].budget) != (line.set, line.budget)
        result.add_row(
            printable(line.set), printable(line.solver), f"{line.budget:g} s",
            _cell(line.cost, ".4f" if (line.cost or 0) < 1000 else ".1f"),
            _cell(line.to_first, "+.2f", "%"), _cell(line.to_best_known, "+.2f", "%"), _cell(line.seconds, ".1f", " s"),
            f"{line.solved}/{line.runs}", end_section=last,
        )  # fmt: skip
    return result


def _caption(rows: Sequence[Row], lines: Sequence[Line]) -> str:
    """Return the notes below the table: versions, exceptions, errors, skipped solvers."""
    notes = ["versions: " + ", ".join(dict.fromkeys(f"{line.solver} {line.version}" for line in lines))]
    if any(line.compared and line.compared < line.runs for line in lines):
        notes.append("means are over the instances all solvers solved")
    on_cores = [row for row in rows if "cost" in row and "gpu" not in row.get("hardware", {})]
    shared = [row for row in on_cores if row["cpu_seconds"] < SHARED * row["seconds"]]
    if shared:
        notes.append(f"{len(shared)} runs had to share their core: run again on a quiet machine")
    errors = [row for row in rows if "error" in row]
    if errors:
        row = errors[-1]
        notes.append(f"{len(errors)} failed, the last {row['solver']} on {row['instance']}: {row['error']}")
    for reason in dict.fromkeys(row["skipped"] for row in rows if "skipped" in row):
        notes.append(reason)
    return "\n".join(map(printable, notes))


def _mean(values: Sequence[float]) -> float | None:
    return fmean(values) if values else None


def _gap(cost: float, reference: float) -> float:
    if reference == 0:
        return 0.0 if cost == 0 else math.inf
    return 100.0 * (cost - reference) / reference


def _cell(value: float | None, form: str, unit: str = "") -> str:
    return "–" if value is None else f"{value:{form}}{unit}"
