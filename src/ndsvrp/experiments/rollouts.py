"""What the policy takes out: two instances per problem, six rollouts each (appendix)."""

from dataclasses import replace
from typing import Any

import numpy as np

from ndsvrp.bench.instances import Case
from ndsvrp.bench.report.tables import Table
from ndsvrp.bench.rows import Row
from ndsvrp.check import check
from ndsvrp.experiments.context import SEED, Context, Findings
from ndsvrp.experiments.scales import PROBLEMS
from ndsvrp.experiments.searches import Series
from ndsvrp.experiments.sets import test_cases
from ndsvrp.experiments.trainings import policy
from ndsvrp.plot.removals import RemovalPanel, plot_removals
from ndsvrp.problem import Problem
from ndsvrp.ruin import RuinRequest
from ndsvrp.search.augment import augmentations
from ndsvrp.search.code_version import code_version
from ndsvrp.search.solver import Opened, Solver
from ndsvrp.solution import Solution

SIZE = 100
INSTANCES, ROLLOUTS = 2, 6
STEPS = 2  #: iterations of the search before them: its solution can still be improved
ALWAYS = 1e18  #: a temperature at which every solution is accepted


def rollouts(context: Context) -> Findings:
    """Improve a solution by a short search, then let the policy choose customers of it six times."""
    rows, figures = [], {}
    for problem in PROBLEMS:
        cases = test_cases(context, problem, SIZE)
        panels = []
        for case in cases[:INSTANCES]:
            found = _of_instance(context, problem, case)
            rows += found
            loaded = case.load()
            panels += [
                RemovalPanel(loaded, _solution(row["routes"]), row["removed"], f"{case.name}, rollout {row['point']}")
                for row in found
            ]
        figures[f"-{problem}"] = plot_removals(panels, ROLLOUTS)
    return Findings([_table(rows)], figures)


def _of_instance(context: Context, problem: str, case: Case) -> list[Row]:
    loaded = case.load()
    series = Series("NDS", policy(context, loaded, problem, SIZE))
    identities: list[Row] = [
        {
            "set": case.set, "instance": case.name, "data": case.digest(), "series": series.name,
            "solver": series.label(context, 1), "solver_version": code_version(), "seed": SEED, "budget": None,
            "iterations": STEPS, "point": number,
        }
        for number in range(1, ROLLOUTS + 1)
    ]  # fmt: skip
    present = [context.rows.find(identity) for identity in identities]
    if all(present):
        return [row for row in present if row is not None]
    with Solver(replace(series.request(context), model=context.load(series.model))) as solver:
        start = solver.solve(loaded, iterations=STEPS, seed=SEED)
        opened = solver.open(loaded)
        removed = choose(opened, loaded, start.solution)
        after = [reconstruct(opened, loaded, start.solution, each) for each in removed]
    return [
        context.rows.add(identity | {
            "customers": loaded.customers, "routes": [list(route) for route in start.solution.routes],
            "removed": each.tolist(), "cost_before": start.cost, "cost": check(loaded, new).cost,
            "feasible": check(loaded, new).feasible,
        })
        for identity, each, new in zip(identities, removed, after, strict=True)
    ]  # fmt: skip


def choose(opened: Opened, problem: Problem, solution: Solution) -> Any:
    """Return (6, M) customers that the policy removes from a solution."""
    assert opened.ruin is not None  # a policy is an object
    state = opened.engine.start([problem], np.zeros(1, np.int32), solution)
    request = RuinRequest(
        problem, augmentations(problem, 1), opened.engine.view(state), ROLLOUTS,
        min(opened.plan.settings.removals, problem.customers), np.random.default_rng(SEED),
    )  # fmt: skip
    return np.asarray(opened.ruin(request))[0]


def reconstruct(opened: Opened, problem: Problem, solution: Solution, removed: Any) -> Solution:
    """Return the solution after one removal and the best of its reconstructions, better or not."""
    engine = opened.engine
    state = engine.start([problem], np.zeros(1, np.int32), solution)
    recipe = opened.plan.settings.recipe(problem.customers, by_rule=False)
    engine.improve(state, recipe, np.asarray(removed, np.int32)[None, None], np.full((1, 1), ALWAYS), SEED, 1)
    return engine.export(state, 0, best=False)


def _solution(routes: list[list[int]]) -> Solution:
    return Solution([tuple(route) for route in routes])


def _table(rows: list[Row]) -> Table:
    cells = []
    for name, instance in dict.fromkeys((row["set"], row["instance"]) for row in rows):
        some = [row for row in rows if (row["set"], row["instance"]) == (name, instance)]
        touched = [len({_route_of(row["routes"], c) for c in row["removed"]}) for row in some]
        distinct = len({c for row in some for c in row["removed"]})
        better = sum(row["cost"] < row["cost_before"] - 1e-9 for row in some)
        cells.append((
            name, instance, str(len(some)), str(len(some[0]["removed"])), f"{sum(touched) / len(some):.1f}",
            str(distinct), str(better), f"{some[0]['cost_before']:.4f}", f"{min(row['cost'] for row in some):.4f}",
        ))  # fmt: skip
    heads = (
        "set", "instance", "rollouts", "customers each", "routes each", "different customers", "improving",
        "cost before", "lowest after",
    )  # fmt: skip
    notes = ("Each rollout starts from the same solution; after: the best of its insertion orders, better or not",)
    return Table("Results", heads, (False, False, *(True,) * 7), tuple(cells), notes)


def _route_of(routes: list[list[int]], customer: int) -> int:
    """Return the number of a customer's route; -1 if it is unserved."""
    return next((number for number, route in enumerate(routes) if customer in route), -1)
