"""The figures of a report: a line per series, and its paired comparison with the baseline."""

from collections.abc import Sequence
from dataclasses import dataclass

from ndsvrp.bench.report.series import Instance, Results, Series, hardware_of, mean_of
from ndsvrp.bench.report.statistics import gap, is_tie, mean, standard_error, wilcoxon
from ndsvrp.bench.rows import Row
from ndsvrp.errors import InstanceError


@dataclass(frozen=True)
class Line:
    """The results of one series. Each instance counts once: its value is the mean over seeds."""

    set: str
    budget: float
    solver: str
    hardware: str  #: the GPU, or the cores
    version: str  #: several if the rows have several
    instances: int  #: with a feasible solution
    seeds: int
    solved: int  #: runs with a feasible solution
    runs: int
    cost: float | None  #: mean
    cost_seed_error: float | None  #: standard error over seeds of the mean cost, in percent of it
    known: int  #: instances with a best known cost
    gap: float | None  #: mean gap to the best known cost over these instances, in percent
    gap_error: float | None  #: its standard error over instances
    gap_seed_error: float | None  #: its standard error over seeds
    seconds: float | None  #: mean
    routes: float | None  #: mean
    iterations: int | None = None  #: the limit that ended the runs, if it was not the time


def summarise(results: Results) -> list[Line]:
    """Return a line per series, set by set and by time limit."""
    return [_line(each) for every in results.sets.values() for each in every]


def _line(series: Series) -> Line:
    runs = series.runs
    gaps = series.over_seeds(_gap_to_best_known)
    cost = mean(list(series.costs.values()))
    cost_seed_error = series.seed_error(lambda row: float(row["cost"]))
    return Line(
        set=series.set, budget=series.budget, solver=series.solver,
        hardware=hardware_of(runs[0]),
        version=", ".join(dict.fromkeys(row["solver_version"] for row in runs)),
        instances=len(series.solved), seeds=len({seed for by_seed in series.rows.values() for seed in by_seed}),
        solved=sum(map(len, series.solved.values())), runs=len(runs), cost=cost,
        cost_seed_error=100 * cost_seed_error / cost if cost and cost_seed_error is not None else None,
        known=len(gaps), gap=mean(gaps), gap_error=standard_error(gaps),
        gap_seed_error=series.seed_error(_gap_to_best_known),
        seconds=mean_of(series, "seconds"), routes=mean_of(series, "routes"), iterations=series.iterations,
    )  # fmt: skip


def _gap_to_best_known(row: Row) -> float | None:
    known = row.get("best_known")
    return None if known is None else gap(row["cost"], known)


@dataclass(frozen=True)
class InstanceLine:
    """The runs of one series on one instance."""

    set: str
    budget: float
    solver: str
    instance: str
    customers: int
    best_known: float | None
    seeds: int
    best: float | None  #: the lowest cost over seeds; None if no run found a feasible solution
    cost: float | None  #: mean over seeds with a feasible solution
    gap: float | None  #: of this mean to the best known cost, in percent
    seconds: float | None  #: mean
    routes: float | None  #: mean
    iterations: int | None = None  #: the limit that ended the runs, if it was not the time


def per_instance(results: Results) -> list[InstanceLine]:
    """Return a line per instance and series that tried it: those of an instance together, instances as in the rows."""
    found = []
    for every in results.sets.values():
        for instance in dict.fromkeys(instance for each in every for instance in each.rows):
            rows = [(each, list(each.rows[instance].values())) for each in every if instance in each.rows]
            stated = (row.get("best_known") for _, runs in rows for row in runs)
            known = next((value for value in stated if value is not None), None)
            tried = [each for each, runs in rows if not all("skipped" in row for row in runs)]
            found += [_instance_line(each, instance, known) for each in tried]
    return found


def _instance_line(series: Series, instance: Instance, known: float | None) -> InstanceLine:
    runs, solved = list(series.rows[instance].values()), list(series.solved.get(instance, {}).values())
    cost = series.costs.get(instance)
    return InstanceLine(
        set=series.set, budget=series.budget, solver=series.solver, instance=instance[0],
        customers=runs[0]["customers"], best_known=known, seeds=len(runs),
        best=min((row["cost"] for row in solved), default=None), cost=cost,
        gap=None if known is None or cost is None else gap(cost, known),
        seconds=mean([row["seconds"] for row in solved]), routes=mean([row["routes"] for row in solved]),
        iterations=series.iterations,
    )  # fmt: skip


@dataclass(frozen=True)
class Comparison:
    """A series beside one of the baseline, over the instances that both solved."""

    set: str
    budget: float
    solver: str
    baseline: str
    baseline_budget: float
    instances: int
    difference: float  #: mean of the differences, in percent of the baseline's cost
    difference_error: float | None  #: its standard error over instances
    wins: int  #: instances where the solver's cost is lower
    ties: int
    losses: int
    p: float | None  #: of a two-sided Wilcoxon signed-rank test; None if all are ties
    iterations: int | None = None  #: the limit that ended the runs, if it was not the time
    baseline_iterations: int | None = None  #: likewise


def compare(results: Results, baseline: str | None = None) -> list[Comparison]:
    """Compare every series with the baseline, by default the first solver of each set.

    The baseline's series is that with the same time limit, or else the next longer one, or else the longest.
    """
    if baseline is not None and baseline not in results.solvers:
        known = ", ".join(results.solvers)
        raise InstanceError(f"no solver '{baseline}' in the rows; there are {known}", field="baseline")
    found = []
    for every in results.sets.values():
        for each in every:
            base = baseline_of(results, each, baseline)
            if base is not None and base.solver != each.solver and (pair := compare_pair(each, base)):
                found.append(pair)
    return found


def without_baseline(results: Results, baseline: str | None) -> list[str]:
    """Return the sets with solutions of several solvers, but none of the baseline."""
    return [
        name
        for name, every in results.sets.items()
        if len({each.solver for each in every if each.solved}) > 1 and baseline_of(results, every[0], baseline) is None
    ]


def baseline_of(results: Results, series: Series, baseline: str | None) -> Series | None:
    """Return the series of the baseline that a series is compared with; None if the set has none."""
    able = [each for each in results.series if each.set == series.set and each.solved]
    if not able:
        return None
    name = able[0].solver if baseline is None else baseline
    of_baseline = sorted((each for each in able if each.solver == name), key=lambda each: each.budget)
    long_enough = [each for each in of_baseline if each.budget >= series.budget]
    return next(iter(long_enough or of_baseline[::-1]), None)


def compare_pair(series: Series, base: Series) -> Comparison | None:
    """Compare two series of a set; None if they have no solved instance in common."""
    pairs = [(cost, base.costs[instance]) for instance, cost in series.costs.items() if instance in base.costs]
    if not pairs:
        return None
    differences = [0.0 if is_tie(*pair) else gap(*pair) for pair in pairs]
    exact = [gap(*pair) for pair in pairs]
    test = wilcoxon(differences)
    return Comparison(
        set=series.set, budget=series.budget, solver=series.solver, baseline=base.solver, baseline_budget=base.budget,
        instances=len(pairs), difference=sum(exact) / len(exact), difference_error=standard_error(exact),
        wins=_count(differences, -1), ties=_count(differences, 0), losses=_count(differences, 1),
        p=test.p if test else None, iterations=series.iterations, baseline_iterations=base.iterations,
    )  # fmt: skip


def _count(differences: Sequence[float], sign: int) -> int:
    return sum((difference > 0) - (difference < 0) == sign for difference in differences)
