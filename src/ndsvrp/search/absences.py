"""Absences: a search for a solution that serves all required customers, where vehicles are few.

Which customers are hard to serve shows only in the course of a search. So it counts how many steps have left each of
them unserved (Christiaens & Vanden Berghe 2020, fleet minimization). A step is accepted if it lowers the sum of these
counts over the unserved customers, whatever it does to lengths. So a customer that was often absent is served, and
others that rarely were make room for it. In the end those are unserved that are easy to serve.
"""

import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from ndsvrp.engine.base import Ints, Recipe
from ndsvrp.engine.cpu import CpuEngine
from ndsvrp.problem import Problem

HOT = 0.1  # temperature, for a bounding box of side 1, of steps that do not change the sum
MOST = 6_000  # steps for each customer
SLICE = 500  # steps between two looks at the clock, and at Ctrl-C
UNIT = 1 << 36  # ticks of one absence: more than a step changes lengths


def serve_required(
    problem: Problem, recipe: Recipe, tour: Ints, seed: int, deadline: float | None = None,
    is_over: Callable[[], bool] = lambda: False,
) -> Ints | None:  # fmt: skip
    """Return a tour that serves all required customers, found from a given one; None if none is found.

    The more customers are left, the sooner it ends without a step that leaves fewer.
    """
    engine = CpuEngine()
    state = engine.start([problem], [0])
    engine.restart(state, [tour])
    recipe = replace(recipe, weigh_unserved=False, serve_bonus=0.0, open_route=0.0, regions=1)
    hot, most = np.array([HOT * problem.side()]), MOST * problem.customers
    fewest, since = problem.customers, 0
    for begin in range(0, most, SLICE):
        left = engine.serve_required(state, recipe, hot, UNIT, range(begin, begin + SLICE), seed, deadline)
        if left == 0:
            return engine.tour(state, 0, best=False)
        if left < fewest:
            fewest, since = left, begin
        is_hopeless = begin - since > most / fewest
        if is_hopeless or (deadline is not None and time.perf_counter() >= deadline) or is_over():
            break
    return None
