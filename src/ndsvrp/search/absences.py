"""Absences: a search for a solution that serves all required customers, where vehicles are few.

Which customers are hard to serve shows only in the course of a search. So it counts how many steps have left each of
them unserved (Christiaens & Vanden Berghe 2020, fleet minimization). A step is accepted if it lowers the sum of these
counts over the unserved customers, whatever it does to lengths. So those that were often absent are served, and others
make room for them, until all that make room are easy to serve.
"""

import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from ndsvrp.engine.base import Ints, Recipe
from ndsvrp.engine.cpu import CpuEngine
from ndsvrp.engine.ticks import ticks_of
from ndsvrp.problem import Problem

HOT = 0.1  # temperature, for a bounding box of side 1, of steps that do not change the sum
MOST = 3_000  # steps for each customer: some seconds
SLICE = 5_000  # steps between two looks at whether the search goes on
UNIT = 1 << 36  # ticks of one absence, at least: more than a step changes lengths


def serve_required(
    problem: Problem, recipe: Recipe, tour: Ints, seed: int, deadline: float | None = None,
    is_over: Callable[[], bool] = lambda: False,
) -> Ints | None:  # fmt: skip
    """Return a tour that serves all required customers, found from a given one; None if none is found."""
    engine = CpuEngine()
    state = engine.start([problem], [0])
    engine.restart(state, [tour])
    prizes = 0.0 if problem.prize is None else float(np.sum(problem.prize)) * ticks_of(problem).per_unit
    unit = max(UNIT, 1 << int(prizes).bit_length())  # no optional customer takes the place of a required one
    recipe, hot = replace(recipe, weigh_unserved=False, regions=1), np.array([HOT * problem.side()])
    for begin in range(0, MOST * problem.customers, SLICE):
        steps = range(begin, begin + SLICE)
        if engine.serve_required(state, recipe, hot, unit, steps, seed, deadline):
            return engine.tour(state, 0, best=False)
        if (deadline is not None and time.perf_counter() >= deadline) or is_over():
            break
    return None
