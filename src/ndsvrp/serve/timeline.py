"""The routes of a solution with loads, distances and times, for the page."""

from typing import Any

import numpy as np

from ndsvrp.check import Report
from ndsvrp.problem import Problem
from ndsvrp.serve.uploads import short
from ndsvrp.solution import Solution


def incumbent_view(problem: Problem, solution: Solution, report: Report) -> dict[str, Any]:
    """Return a checked solution as the page draws it."""
    return {
        "cost": report.cost, "distance": report.distance, "lost_prizes": report.lost_prizes,
        "unserved": list(report.unserved), "routes": timelines(problem, solution),
    }  # fmt: skip


def timelines(problem: Problem, solution: Solution) -> list[dict[str, Any]]:
    """Return per route: stops, load, distance, and the times of a vehicle that leaves when the depot opens.

    `arrival` has an entry per customer and one for the return to the depot, `start` (of service) one per customer.
    Times are added as `check` adds them.
    """
    stops = np.array([0, *(c for route in solution.routes for c in (*route, 0))])
    comparable, scale = problem.comparable_times, problem.time_scale
    lengths: list[float] = problem.length(stops[:-1], stops[1:]).tolist()
    travel: list[float] = comparable(problem.travel_time(stops[:-1], stops[1:])).tolist()
    zeros = np.zeros(len(problem.demand))
    ready: list[float] = comparable(zeros if problem.windows is None else problem.windows[:, 0]).tolist()
    service: list[float] = comparable(zeros if problem.service is None else problem.service).tolist()
    described, leg = [], 0
    for route in solution.routes:
        time, arrival, start, first = ready[0], [], [], leg
        for customer in route:
            time += travel[leg]
            arrival.append(time / scale)
            time = max(time, ready[customer]) if problem.windows is not None else time
            start.append(time / scale)
            time += service[customer]
            leg += 1
        arrival.append((time + travel[leg]) / scale)
        leg += 1
        described.append(
            {
                "stops": list(route), "load": short(sum(problem.demand[c] for c in route)),
                "distance": short(sum(lengths[first:leg])), "legs": short(lengths[first:leg]),
                "arrival": short(arrival), "start": short(start), "departure": short(ready[0] / scale),
            }
        )  # fmt: skip
    return described
