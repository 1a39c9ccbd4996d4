"""Result rows, sorted into series: the runs of one solver on one set with one time limit."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from statistics import fmean

from ndsvrp.bench.report.statistics import mean, standard_error
from ndsvrp.bench.rows import Row
from ndsvrp.text import amount

Instance = tuple[str, str]
"""Name and digest of the file: two sets may have the same name and other instances."""


def hardware_of(row: Row) -> str:
    """Return the GPU of a run, or its cores."""
    hardware, threads = row["hardware"], row["threads"]
    return str(hardware.get("gpu") or f"{threads} core{'' if threads == 1 else 's'}, {hardware['cpu']}")


def limit_text(budget: float, iterations: int | None) -> str:
    """Return what ended runs: their iterations, or else their time limit."""
    return f"{budget:g} s" if iterations is None else amount(iterations, "iteration")


@dataclass(frozen=True)
class Series:
    """The runs of one solver on one set with one time limit, by instance and seed."""

    set: str
    solver: str  #: with its hardware, if the set has rows of the solver on several
    budget: float
    rows: dict[Instance, dict[int, Row]]

    @property
    def key(self) -> tuple[str, float, str]:
        """Set, time limit and solver."""
        return self.set, self.budget, self.solver

    @property
    def label(self) -> str:
        """The solver and its limit."""
        return f"{self.solver}, {self.limit}"

    @property
    def limit(self) -> str:
        """What ended its runs."""
        return limit_text(self.budget, self.iterations)

    @property
    def runs(self) -> list[Row]:
        """All rows."""
        return [row for by_seed in self.rows.values() for row in by_seed.values()]

    @cached_property
    def solved(self) -> dict[Instance, dict[int, Row]]:
        """The rows with a feasible solution; an instance without one is not there."""
        feasible = {
            instance: {seed: row for seed, row in by_seed.items() if row.get("feasible")}
            for instance, by_seed in self.rows.items()
        }
        return {instance: by_seed for instance, by_seed in feasible.items() if by_seed}

    @property
    def is_skipped(self) -> bool:
        """Whether the solver refused every instance."""
        return all("skipped" in row for row in self.runs)

    @property
    def ends_by_iterations(self) -> bool:
        """Whether every run with a cost ended by its limit on iterations, before its time was over."""
        ended = [row for row in self.runs if "cost" in row]
        return all(row.get("settings", {}).get("stopped") == "iterations" for row in ended)

    @cached_property
    def iterations(self) -> int | None:
        """The limit on iterations by which every run with a cost ended; None if it was the time limit."""
        made = {row["settings"].get("iterations") for row in self.runs if "cost" in row and self.ends_by_iterations}
        return made.pop() if len(made) == 1 else None

    @cached_property
    def costs(self) -> dict[Instance, float]:
        """The cost of every solved instance, a mean over seeds."""
        return {instance: fmean(row["cost"] for row in by_seed.values()) for instance, by_seed in self.solved.items()}

    def over_seeds(self, value: Callable[[Row], float | None]) -> list[float]:
        """Return the mean over seeds for every instance that has the value."""
        found = []
        for by_seed in self.solved.values():
            values = [x for row in by_seed.values() if (x := value(row)) is not None]
            if values:
                found.append(fmean(values))
        return found

    def seed_error(self, value: Callable[[Row], float | None]) -> float | None:
        """Return the standard error over seeds of the mean over instances; None with one seed.

        The mean of a seed is over the instances that have the value for all seeds.
        """
        seeds = {seed for by_seed in self.solved.values() for seed in by_seed}
        whole = [
            [x for seed in sorted(seeds) if seed in by_seed and (x := value(by_seed[seed])) is not None]
            for by_seed in self.solved.values()
        ]
        whole = [values for values in whole if len(values) == len(seeds)]
        return standard_error([fmean(values) for values in zip(*whole, strict=True)])


@dataclass(frozen=True)
class Results:
    """All series of the rows, in order of appearance."""

    series: list[Series]
    replaced: int = 0  #: rows of another version of a solver, for which later rows stand

    @cached_property
    def sets(self) -> dict[str, list[Series]]:
        """The series of each set, those of a time limit together."""
        found: dict[str, list[Series]] = {}
        for each in self.series:
            found.setdefault(each.set, []).append(each)
        return {name: sorted(every, key=lambda each: each.budget) for name, every in found.items()}

    @cached_property
    def solvers(self) -> list[str]:
        """The names of all solvers."""
        return list(dict.fromkeys(each.solver for each in self.series))

    @property
    def rows(self) -> list[Row]:
        """All rows but the replaced ones."""
        return [row for each in self.series for row in each.runs]

    @property
    def are_uneven(self) -> bool:
        """Whether two solvers solved different instances of a set."""
        return any(
            each.solved.keys() != other.solved.keys()
            for every in self.sets.values()
            for each, other in pairwise([each for each in every if not each.is_skipped])
        )

    @cached_property
    def best(self) -> dict[tuple[str, Instance], float]:
        """The lowest cost of each instance in these rows, or its best known cost if that is lower."""
        best: dict[tuple[str, Instance], float] = {}
        for each in self.series:
            for instance, by_seed in each.solved.items():
                known = [row["best_known"] for row in by_seed.values() if row.get("best_known") is not None]
                costs = [row["cost"] for row in by_seed.values()]
                where = each.set, instance
                best[where] = min([*costs, *known, *([best[where]] if where in best else [])])
        return best


def sort_rows(rows: Sequence[Row]) -> Results:
    """Return the series of the rows. A later row of the same run replaces an earlier one, also of another version."""
    hardware: dict[tuple[str, str], set[str]] = {}
    for row in rows:
        hardware.setdefault((row["set"], row["solver"]), set()).add(hardware_of(row))
    found: dict[tuple[str, str, float], dict[Instance, dict[int, Row]]] = {}
    replaced = 0
    for row in rows:
        several = len(hardware[row["set"], row["solver"]]) > 1
        solver = f"{row['solver']} ({hardware_of(row)})" if several else row["solver"]
        by_seed = found.setdefault((row["set"], solver, float(row["budget"])), {}).setdefault(
            (row["instance"], row["data"]), {}
        )
        old = by_seed.get(row["seed"], row)
        replaced += old["solver_version"] != row["solver_version"]
        by_seed[row["seed"]] = row
    return Results([Series(*key, runs) for key, runs in found.items()], replaced)


def mean_of(series: Series, field: str) -> float | None:
    """Return the mean of a field of the rows over seeds, then over the instances that have it."""
    return mean(series.over_seeds(lambda row: row.get(field)))
