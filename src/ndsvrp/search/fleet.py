"""The limit on vehicles, which a search may ignore at first.

At a high temperature a solution has many short routes. If the limit allows fewer, no step can open a route, and the
routes of that time stay. Without the limit they become fewer by themselves while the search cools: docs/findings.md.
"""

import numpy as np

from ndsvrp.problem import Problem
from ndsvrp.solution import Solution


def may_ignore_fleet(problem: Problem) -> bool:
    """Return whether vehicles are limited, and whether routes may be left out: no customer is required."""
    return problem.vehicles is not None and not problem.required[1:].any()


def capacity_alone(problem: Problem) -> bool:
    """Return whether nothing but the capacity limits routes."""
    return not problem.has_times and problem.max_distance is None


def without_fleet(problem: Problem) -> Problem:
    """Return the problem without the limit on vehicles."""
    return problem.replace(vehicles=None)


def within_fleet(problem: Problem, solution: Solution) -> Solution:
    """Return the solution with those routes that save most, as many as there are vehicles."""
    if problem.vehicles is None or problem.prize is None:
        return solution
    routes = [route for route in solution.routes if route]
    if len(routes) <= problem.vehicles:
        return solution
    costs = []
    for route in routes:
        stops = np.array([0, *route, 0])
        costs.append(float(problem.length(stops[:-1], stops[1:]).sum() - problem.prize[stops].sum()))
    kept = sorted(np.argsort(costs, kind="stable")[: problem.vehicles].tolist())
    return Solution(routes[i] for i in kept)
