"""`nds check` and `nds info`: describe a solution and an instance."""

import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from ndsvrp.best_known import best_known
from ndsvrp.check import check
from ndsvrp.cli.formatting import cost_of, headline, metric_reason, print_facts, say
from ndsvrp.cli.options import (
    NOTHING,
    IgnoreField,
    Index,
    InstanceFile,
    Round,
    Stated,
    states_data,
)  # fmt: skip
from ndsvrp.cli.outputs import Folder, names_of
from ndsvrp.constraints import CONSTRAINTS
from ndsvrp.constraints.base import Facts
from ndsvrp.errors import NdsError
from ndsvrp.io import read, read_set, read_solution
from ndsvrp.io.files import exists
from ndsvrp.io.folders import is_folder
from ndsvrp.io.sol import matches_cost
from ndsvrp.problem import Problem
from ndsvrp.text import amount, number, spread
from ndsvrp.variants import variant_of

DESCRIBED = 1000  # instances of a set


@states_data
def check_command(
    file: InstanceFile,
    solution: Annotated[
        Path,
        typer.Argument(
            metavar="SOLUTION",
            help="The solution: .sol or JSON, - for standard input, or for a set the folder of its solutions.",
        ),
    ],
    best: Annotated[
        float | None,
        typer.Option(metavar="COST", help="A cost to give the gap to, instead of the best known one on record."),
    ] = None,
    round_: Round = "auto",
    index: Index = None,
    ignore_field: IgnoreField = None,
    stated: Stated = NOTHING,
) -> None:
    """Check a solution: its cost, everything it violates, the gap to the best known cost.

    With the folder that 'nds solve --out' wrote for a set, check the solution of every instance, in a line each.
    Exit codes: 0 feasible and of the cost that is written, 2 bad input, 3 infeasible or of another cost.
    """
    if best is not None and not 0 < best < math.inf:
        raise NdsError(f"--best: {best:g} is not a cost to compare with")
    if index is None and is_folder(solution) and (file.suffix.lower() == ".npz" or is_folder(file)):
        if best is not None:
            raise NdsError("--best is for one instance: choose one of the set by --index")
        problems = read_set(file, round_, ignore_fields=ignore_field or (), **stated)
        say(headline(problems[0], round_, len(problems)))
        if not _check_set(problems, Folder(solution, names=names_of(file))):
            raise typer.Exit(3)
        return
    routes, written = read_solution(solution)
    problem = read(file, round_, index, ignore_fields=ignore_field or (), **stated)
    report = check(problem, routes)
    agrees = written is None or matches_cost(written, report.cost, problem.metric)
    facts = [("feasible", "yes" if report.feasible else "no")]
    facts += [("", str(violation)) for violation in report.violations]
    facts.append(("cost", cost_of(report.cost, problem.metric)))
    if written is None:
        facts.append(("written", "no cost"))
    else:
        facts.append(("written", f"{number(written)}, " + ("which is right" if agrees else "which is wrong")))
    known = best_known(problem)
    if best is not None and report.feasible:
        percent = 100.0 * (report.cost - best) / best
        facts.append(("gap", f"{percent:+.2f}% to the given {cost_of(best, problem.metric)}"))
    elif known is not None and report.feasible:
        gap = f"{known.gap(report.cost):+.2f}% to the best known {cost_of(known.cost, problem.metric)}"
        facts.append(("gap", f"{gap} ({known.date})"))
    if problem.has_prizes or report.vehicle_costs:
        facts.append(("distance", cost_of(report.distance, problem.metric)))
    if problem.has_prizes:
        facts.append(("lost prizes", cost_of(report.lost_prizes, problem.metric)))
    if report.vehicle_costs:
        facts.append(("vehicle costs", cost_of(report.vehicle_costs, problem.metric)))
    facts += [("routes", f"{len(routes.routes):,}"), ("unserved", f"{len(report.unserved):,}")]
    say(headline(problem, round_))
    print_facts(facts)
    if not (report.feasible and agrees):
        raise typer.Exit(3)


def _check_set(problems: Sequence[Problem], solutions: Folder) -> bool:
    """Print a line for the solution of each instance. Return whether all are there and right."""
    assert solutions.folder is not None
    right = 0
    for index, problem in enumerate(problems):
        path = solutions.folder / f"{solutions.name(index)}.sol"
        if not exists(path):
            say(f"{path.stem}  no solution: {path.name} is missing")
            continue
        routes, written = read_solution(path)
        report = check(problem, routes)
        words = [f"cost {cost_of(report.cost, problem.metric)}", amount(len(routes.routes), "route")]
        agrees = written is None or matches_cost(written, report.cost, problem.metric)
        if not agrees and written is not None:
            words.append(f"{number(written)} is written, which is wrong")
        known = best_known(problem)
        if known is not None and report.feasible:
            words.append(f"gap {known.gap(report.cost):+.2f}%")
        if report.violations:
            words.append(f"infeasible: {report.violations[0]}")
        right += agrees and report.feasible
        say(f"{path.stem}  {'  '.join(words)}")
    say(f"feasible and of the cost that is written: {right:,} of {amount(len(problems), 'instance')}")
    return right == len(problems)


@states_data
def info_command(
    file: InstanceFile,
    round_: Round = "auto",
    index: Index = None,
    ignore_field: IgnoreField = None,
    stated: Stated = NOTHING,
) -> None:
    """Describe an instance; without --index, the instances of an .npz set or a folder, up to a thousand."""
    ignored = ignore_field or ()
    instances = (
        read_set(file, round_, ignore_fields=ignored, **stated)
        if index is None
        else [read(file, round_, index, ignore_fields=ignored, **stated)]
    )
    problems, first = instances[:DESCRIBED], instances[0]
    facts = [("name", first.name)]
    if len(instances) > 1:
        facts = [("instances", f"{len(instances):,}, {first.name} … {instances[-1].name}")]
    if len(instances) > len(problems):
        facts.append(("described", f"the first {len(problems):,}"))
    facts += [
        ("problem", _variants(problems)),
        ("customers", spread(problem.customers for problem in problems)),
        *(fact for constraint in CONSTRAINTS for fact in constraint.facts(problems)),
        ("distances", ", ".join(dict.fromkeys(map(_distances, problems)))),
        ("metric", _metrics(problems, file, round_)),
        *_box(problems),
    ]
    known = best_known(first) if len(problems) == 1 else None
    if known is not None:
        cost = cost_of(known.cost, first.metric)
        facts.append(("best known", f"{cost} (set {known.set}, {known.date}, {known.source})"))
    print_facts(facts)


def _variants(problems: Sequence[Problem]) -> str:
    """Return the variant with its constraints, or how many instances there are of each."""
    counts = Counter(map(variant_of, problems))
    if len(counts) > 1:
        return ", ".join(f"{count:,} {variant.title}" for variant, count in counts.items())
    (variant,) = counts
    return f"{variant.title} ({', '.join(sorted(constraint.name for constraint in variant.constraints))})"


def _metrics(problems: Sequence[Problem], file: Path, asked: str) -> str:
    """Return the metric and why it was chosen, or the metrics of a folder."""
    metrics = dict.fromkeys(str(problem.metric) for problem in problems)
    if len(metrics) > 1:
        return f"{', '.join(metrics)} (auto)"
    return f"{problems[0].metric} ({metric_reason(problems[0], file, asked)})"


def _distances(problem: Problem) -> str:
    if problem.distance is None:
        return "Euclidean"
    if problem.geographic and problem.duration is None and problem.is_on_the_sphere:
        return "great-circle distances between latitudes and longitudes"
    kind = "symmetric" if np.array_equal(problem.distance, problem.distance.T) else "asymmetric"
    return f"{kind} matrix" + (", with a matrix of durations" if problem.duration is not None else "")


def _box(problems: Sequence[Problem]) -> Facts:
    points = [problem.coordinates for problem in problems if problem.coordinates is not None]
    if not points:
        return []
    low, high = (edge(np.concatenate(points), axis=0) for edge in (np.min, np.max))
    facts = [("bounding box", f"({number(low[0])}, {number(low[1])}) … ({number(high[0])}, {number(high[1])})")]
    if len(points) == 1:
        facts.append(("depot", f"({number(points[0][0, 0])}, {number(points[0][0, 1])})"))
    return facts
