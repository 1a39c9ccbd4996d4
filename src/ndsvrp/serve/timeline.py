"""The routes of a solution with loads, distances and times, for the page."""

from typing import Any

import numpy as np

from ndsvrp.check import Report
from ndsvrp.problem import Problem
from ndsvrp.schedule import schedule
from ndsvrp.serve.uploads import short
from ndsvrp.solution import Solution


def incumbent_view(problem: Problem, solution: Solution, report: Report) -> dict[str, Any]:
    """Return a checked solution as the page draws it."""
    return {
        "cost": report.cost, "distance": report.distance, "lost_prizes": report.lost_prizes,
        "vehicle_costs": report.vehicle_costs,
        "unserved": list(report.unserved), "routes": timelines(problem, solution),
    }  # fmt: skip


def timelines(problem: Problem, solution: Solution) -> list[dict[str, Any]]:
    """Return per route: customers, load, lengths and times, by the schedule of the solution.

    `arrival` has an entry per customer and one for the return to the depot, `start` (of service) one per customer.
    """
    described = []
    for route in schedule(problem, solution):
        nodes = np.array([stop.node for stop in route.stops])
        stops = route.stops[1:-1]
        described.append(
            {
                "stops": list(route.customers), "load": short(route.load), "distance": short(route.distance),
                "legs": short(problem.length(nodes[:-1], nodes[1:])), "departure": short(route.stops[0].departure),
                "arrival": [short(stop.arrival) for stop in route.stops[1:]], "start": [short(s.start) for s in stops],
            }
        )  # fmt: skip
    return described
