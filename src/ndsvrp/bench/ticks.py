"""Problems in integers, for solvers that compute with them."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ndsvrp.metric import FLOAT_TOLERANCE, Floats
from ndsvrp.problem import Problem

Ints = npt.NDArray[np.int64]

FLOAT_SCALE = 10**6  # ticks per unit if lengths or times are plain floats
LOAD_TICKS = 10**9  # capacity of a vehicle if demands are not whole numbers
LARGEST = 1 << 44  # of a length or time, unless a solver takes less
NEVER = int(np.iinfo(np.int64).max)  # due date of customers without a window


@dataclass(frozen=True)
class Ticks:
    """A problem in integers. Solutions that are feasible here are feasible for the problem.

    Distances, prizes and vehicle costs, which only enter the objective, are rounded to the nearest tick. Travel,
    service and ready times are rounded up, due dates down. With an integer metric, all of them are exact.
    """

    distance: Ints  # (N+1, N+1)
    duration: Ints  # (N+1, N+1) zero without windows
    service: Ints  # (N+1,)
    ready: Ints  # (N+1,)
    due: Ints  # (N+1,) NEVER without windows
    demand: Ints  # (N+1,)
    prize: Ints  # (N+1,)
    capacity: int
    cost_scale: int  # ticks per unit of distance, prize and vehicle cost
    time_scale: int  # ticks per unit of time
    max_distance: int  # of a route; NEVER without a limit
    vehicle_cost: int


def to_ticks(
    problem: Problem, *, largest: float = LARGEST, largest_length: float = LARGEST, load_ticks: int = LOAD_TICKS
) -> Ticks:
    """Scale and round a problem. Plain floats become at most `largest`, and lengths at most `largest_length`."""
    nodes = np.arange(len(problem.demand))
    length = problem.length(nodes[:, None], nodes[None, :])
    zeros = np.zeros(len(nodes))
    prize = problem.prize if problem.prize is not None else zeros
    vehicle = np.asarray(problem.vehicle_cost or 0.0)
    cost_scale = problem.metric.scale
    if not problem.metric.is_integer:
        cost_scale = min(_scale(largest, length, prize, vehicle), _scale(largest_length, length))
    demand, capacity = _load(problem, load_ticks)
    distance = np.rint(length * cost_scale).astype(np.int64)
    np.fill_diagonal(distance, 0)
    prizes, limit = np.rint(prize * cost_scale).astype(np.int64), _max_distance(problem, cost_scale)
    fixed = int(np.rint(vehicle * cost_scale))
    if problem.windows is None:
        none = np.zeros(len(nodes), np.int64)
        still, never = np.zeros_like(distance), np.full(len(nodes), NEVER)
        return Ticks(distance, still, none, none, never, demand, prizes, capacity, cost_scale, 1, limit, fixed)

    travel = problem.travel_time(nodes[:, None], nodes[None, :])
    service = problem.service if problem.service is not None else zeros
    windows = problem.windows - min(0.0, float(problem.windows.min()))  # clocks of solvers start at 0
    whole = problem.has_whole_times
    time_scale = problem.metric.scale if whole else _scale(largest, travel, service, windows)

    def up(values: Floats) -> Ints:
        ticks = values * time_scale
        return (np.rint(ticks) if whole else np.ceil(ticks)).astype(np.int64)

    duration, ready = up(travel), up(windows[:, 0])
    np.fill_diagonal(duration, 0)
    due = np.maximum(-up(-windows[:, 1]), ready)  # down; a window narrower than a tick becomes one tick wide
    return Ticks(
        distance, duration, up(service), ready, due, demand, prizes, capacity, cost_scale, time_scale, limit, fixed
    )


def fleet(problem: Problem, ticks: Ticks) -> int:
    """Return how many vehicles a solver gets that needs a number: the limit, or more than a good solution has.

    The margin is that of HGS-CVRP, over what the load needs, or with windows over the routes of a greedy solution.
    """
    if problem.vehicles is not None:
        return min(problem.vehicles, problem.customers)
    needed = _greedy_routes(ticks) if problem.has_windows else float(problem.demand.sum()) / problem.capacity
    return min(problem.customers, int(np.ceil(1.3 * needed)) + 3)


def _greedy_routes(ticks: Ticks) -> int:
    """Return the number of routes if a vehicle always goes to the nearest customer that it can still serve."""
    waiting = np.arange(1, len(ticks.demand))
    here, clock, free, routes = 0, int(ticks.ready[0]), ticks.capacity, 1
    while len(waiting):
        leaves = clock + int(ticks.service[here])
        arrives = np.maximum(leaves + ticks.duration[here, waiting], ticks.ready[waiting])
        back = arrives + ticks.service[waiting] + ticks.duration[waiting, 0]
        able = (arrives <= ticks.due[waiting]) & (back <= ticks.due[0]) & (ticks.demand[waiting] <= free)
        if able.any():
            chosen = int(np.argmin(np.where(able, ticks.distance[here, waiting], NEVER)))
            here, clock = int(waiting[chosen]), int(arrives[chosen])
            free -= int(ticks.demand[here])
            waiting = np.delete(waiting, chosen)
        elif here == 0:  # no vehicle can serve the others
            return len(ticks.demand) - 1
        else:
            here, clock, free, routes = 0, int(ticks.ready[0]), ticks.capacity, routes + 1
    return routes


def _max_distance(problem: Problem, scale: int) -> int:
    """Return the limit on the distance of a route, less the rounding of all its legs if lengths are floats."""
    if problem.max_distance is None:
        return NEVER
    if problem.metric.is_integer:
        return int(np.floor(problem.max_distance * scale * (1 + 1e-12)))  # tenths have no exact float64
    return int(problem.max_distance * scale) - (problem.customers + 2) // 2


def _scale(largest: float, *values: Floats) -> int:
    """Return FLOAT_SCALE, or the largest power of ten that keeps all values within the limit."""
    scale = FLOAT_SCALE
    while scale > 1 and max(float(v.max()) for v in values) * scale > largest:
        scale //= 10
    return scale


def _load(problem: Problem, load_ticks: int) -> tuple[Ints, int]:
    """Return demands and capacity; half the tolerance of float loads makes up for demands rounded up."""
    if problem.capacity_tolerance == 0:
        return problem.demand.astype(np.int64), int(problem.capacity)
    demand = np.ceil(problem.demand * (load_ticks / problem.capacity)).astype(np.int64)
    return demand, load_ticks + int(load_ticks * FLOAT_TOLERANCE / 2)
