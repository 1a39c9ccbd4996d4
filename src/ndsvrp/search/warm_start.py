"""Warm starts: a given solution, to which required customers that it does not serve are added."""

import numpy as np

from ndsvrp.check import check
from ndsvrp.engine.base import Recipe
from ndsvrp.errors import InstanceError
from ndsvrp.problem import Problem
from ndsvrp.search.start import ITERATION
from ndsvrp.solution import Solution

ORDERS = 8  # in which customers are inserted; the best reconstruction counts


def missing_customers(problem: Problem, init: Solution) -> list[int]:
    """Return the required customers that a first solution does not serve; raise for anything else that is violated."""
    report = check(problem, init)
    for violation in report.violations:
        if violation.kind != "unserved":
            raise InstanceError(f"the initial solution is infeasible: {violation}", field="init")
    return [customer for customer in report.unserved if problem.required[customer]]


def with_missing(problem: Problem, init: Solution, missing: list[int], seed: int) -> Solution:
    """Return the first solution with these customers at the cheapest positions that fit, or in routes of their own.

    Those that a limited fleet leaves no position stay unserved; the search goes on trying. Done on the CPU for all
    engines.
    """
    from ndsvrp.engine.cpu import CpuEngine

    if not missing:
        return init
    if problem.vehicles is None and problem.prize is None:
        problem = problem.replace(vehicles=problem.customers)  # so that a solution may lack some
    engine = CpuEngine()
    state = engine.start([problem], [0], init)
    recipe = Recipe(removals=len(missing), orders=ORDERS, all_routes=True)
    removed = np.array(missing, np.int32)[None, None, :]
    engine.improve(state, recipe, removed, np.zeros((1, 1)), seed, ITERATION)
    return engine.export(state, 0)
