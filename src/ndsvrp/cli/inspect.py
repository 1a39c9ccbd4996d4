"""`nds check` and `nds info`: what a solution is worth, and what an instance is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from ndsvrp.bench.best_known import best_known
from ndsvrp.check import check
from ndsvrp.cli.formatting import (
    Facts,
    cost_of,
    headline,
    metric_reason,
    number,
    print_facts,
    spread,
    variant_name,
)  # fmt: skip
from ndsvrp.cli.options import Index, InstanceFile, Round
from ndsvrp.errors import NdsError
from ndsvrp.io import read, read_set, read_solution
from ndsvrp.io.sol import matches_cost
from ndsvrp.metric import Floats
from ndsvrp.problem import Problem
from ndsvrp.variants import variant_of


def check_command(
    file: InstanceFile,
    solution: Annotated[Path, typer.Argument(metavar="SOLUTION", help="The solution, a .sol file.")],
    best: Annotated[
        float | None,
        typer.Option(metavar="COST", help="A cost to give the gap to, instead of the best known one on record."),
    ] = None,
    round_: Round = "auto",
    index: Index = None,
) -> None:
    """Judge a solution: its cost, every rule it breaks, the gap to the best known cost.

    Exit codes: 0 feasible and of the cost that is written, 2 bad input, 3 infeasible or of another cost.
    """
    if best is not None and not 0 < best < math.inf:
        raise NdsError(f"--best: {best:g} is not a cost to compare with")
    problem = read(file, round_, index)
    routes, written = read_solution(solution)
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
        facts.append(("gap", f"{percent:+.2f} % to the given {cost_of(best, problem.metric)}"))
    elif known is not None and report.feasible:
        gap = f"{known.gap(report.cost):+.2f} % to the best known {cost_of(known.cost, problem.metric)}"
        facts.append(("gap", f"{gap} ({known.date})"))
    if problem.has_prizes:
        facts.append(("distance", cost_of(report.distance, problem.metric)))
        facts.append(("lost prizes", cost_of(report.lost_prizes, problem.metric)))
    facts += [("routes", f"{len(routes.routes):,}"), ("unserved", f"{len(report.unserved):,}")]
    print(headline(problem, round_))
    print_facts(facts)
    if not (report.feasible and agrees):
        raise typer.Exit(3)


def info_command(file: InstanceFile, round_: Round = "auto", index: Index = None) -> None:
    """Say what an instance is; of an .npz set without --index, what its instances are."""
    problems = read_set(file, round_) if index is None else [read(file, round_, index)]
    first = problems[0]
    facts = [("name", first.name)]
    if len(problems) > 1:
        facts = [("instances", f"{len(problems):,}, {first.name} … {problems[-1].name}")]
    constraints = ", ".join(sorted(feature.name.replace("_", " ") for feature in variant_of(first).features))
    facts += [
        ("problem", f"{variant_name(first)} ({constraints})"),
        ("customers", spread(problem.customers for problem in problems)),
        ("demand", _range([problem.demand[1:] for problem in problems])),
        ("capacity", spread(problem.capacity for problem in problems)),
        ("vehicles", _vehicles(problems)),
        ("distances", _distances(first)),
        ("metric", f"{first.metric} ({metric_reason(first, file, round_)})"),
        *_box(problems),
        *_windows(problems),
        *_prizes(problems),
    ]
    known = best_known(first) if len(problems) == 1 else None
    if known is not None:
        cost = cost_of(known.cost, first.metric)
        facts.append(("best known", f"{cost} (set {known.set}, {known.date}, {known.source})"))
    print_facts(facts)


def fewest_vehicles(problem: Problem) -> int:
    """A lower bound: what must be served, over what a vehicle holds."""
    load = float(np.sum(problem.demand[problem.required]))
    return math.ceil((load - problem.capacity_tolerance) / problem.capacity - 1e-9)


def _vehicles(problems: Sequence[Problem]) -> str:
    limits = [problem.vehicles for problem in problems if problem.vehicles is not None]
    limit = f"at most {spread(limits)}" if limits else "as many as it takes"
    least = [fewest_vehicles(problem) for problem in problems]
    return f"{limit}; the demand takes at least {spread(least)}" if any(least) else limit


def _distances(problem: Problem) -> str:
    if problem.distance is None:
        return "Euclidean"
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


def _windows(problems: Sequence[Problem]) -> Facts:
    windows = [problem.windows for problem in problems if problem.windows is not None]
    if not windows:
        return []
    widths = [window[1:, 1] - window[1:, 0] for window in windows]
    shares = [width / (window[0, 1] - window[0, 0]) for width, window in zip(widths, windows, strict=True)]
    share = f" and {100 * float(np.mean(np.concatenate(shares))):.1f} % of the hours"
    service = [problem.service[1:] for problem in problems if problem.service is not None]
    return [
        ("depot hours", f"{spread(w[0, 0] for w in windows)} to {spread(w[0, 1] for w in windows)}"),
        ("window width", _range(widths) + share),
        ("service time", _range(service) if service else "none"),
    ]


def _prizes(problems: Sequence[Problem]) -> Facts:
    prizes = [problem.prize[1:] for problem in problems if problem.prize is not None]
    if not prizes:
        return []
    optional = [prize[prize > 0] for prize in prizes]
    counts = spread(len(prize) for prize in optional)
    facts = [("optional", f"{counts} of {spread(map(len, prizes))} customers")]
    if sum(map(len, optional)):
        facts.append(("prize", f"{_range(optional)}, in all {spread(float(np.sum(prize)) for prize in optional)}"))
    return facts


def _range(arrays: Sequence[Floats]) -> str:
    values = np.concatenate(list(arrays))
    low, high = float(values.min()), float(values.max())
    return number(low) if low == high else f"{number(low)} … {number(high)}, mean {number(float(values.mean()))}"
