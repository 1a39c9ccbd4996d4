"""PyVRP (https://pyvrp.org, 0.14 or newer) as a baseline. It computes in integers."""

import time
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import numpy as np
import numpy.typing as npt

from ndsvrp.bench.solvers import Answer, refusal
from ndsvrp.constraints import CAPACITY, FLEET, PRIZES, TIME_WINDOWS
from ndsvrp.metric import FLOAT_TOLERANCE, Floats
from ndsvrp.problem import Problem
from ndsvrp.solution import Solution

Ints = npt.NDArray[np.int64]

FLOAT_SCALE = 10**6  # ticks per unit if lengths or times are plain floats
LOAD_TICKS = 10**9  # capacity of a vehicle if demands are not whole numbers
LARGEST = 1 << 44  # limit of PyVRP for a matrix entry
NEVER = np.iinfo(np.int64).max  # due date of customers without a window


@dataclass(frozen=True)
class Ticks:
    """A problem in integers. Solutions that are feasible here are feasible for the problem.

    Distances and prizes, which only enter the objective, are rounded to the nearest tick. Travel, service and ready
    times are rounded up, due dates down. With an integer metric, all of them are exact.
    """

    distance: Ints  # (N+1, N+1)
    duration: Ints  # (N+1, N+1) zero without windows
    service: Ints  # (N+1,)
    ready: Ints  # (N+1,)
    due: Ints  # (N+1,)
    demand: Ints  # (N+1,)
    prize: Ints  # (N+1,)
    capacity: int
    cost_scale: int  # ticks per unit of distance and prize
    time_scale: int  # ticks per unit of time


def to_ticks(problem: Problem) -> Ticks:
    """Scale and round a problem for PyVRP."""
    nodes = np.arange(len(problem.demand))
    length = problem.length(nodes[:, None], nodes[None, :])
    zeros = np.zeros(len(nodes))
    prize = problem.prize if problem.prize is not None else zeros
    cost_scale = problem.metric.scale if problem.metric.is_integer else _scale(length, prize)
    demand, capacity = _load(problem)
    distance = np.rint(length * cost_scale).astype(np.int64)
    np.fill_diagonal(distance, 0)
    prizes = np.rint(prize * cost_scale).astype(np.int64)
    if problem.windows is None:
        none = np.zeros(len(nodes), np.int64)
        still, never = np.zeros_like(distance), np.full(len(nodes), NEVER)
        return Ticks(distance, still, none, none, never, demand, prizes, capacity, cost_scale, 1)

    travel = problem.travel_time(nodes[:, None], nodes[None, :])
    service = problem.service if problem.service is not None else zeros
    windows = problem.windows - min(0.0, float(problem.windows.min()))  # the clock of PyVRP starts at 0
    whole = problem.has_whole_times
    time_scale = problem.metric.scale if whole else _scale(travel, service, windows)

    def up(values: Floats) -> Ints:
        ticks = values * time_scale
        return (np.rint(ticks) if whole else np.ceil(ticks)).astype(np.int64)

    duration, ready = up(travel), up(windows[:, 0])
    np.fill_diagonal(duration, 0)
    due = np.maximum(-up(-windows[:, 1]), ready)  # down; a window narrower than a tick becomes one tick wide
    return Ticks(distance, duration, up(service), ready, due, demand, prizes, capacity, cost_scale, time_scale)


def _scale(*values: Floats) -> int:
    """Return FLOAT_SCALE, or the largest power of ten that keeps all values within the limit of PyVRP."""
    scale = FLOAT_SCALE
    while scale > 1 and max(float(v.max()) for v in values) * scale > LARGEST:
        scale //= 10
    return scale


def _load(problem: Problem) -> tuple[Ints, int]:
    """Return demands and capacity; half the tolerance of float loads makes up for demands rounded up."""
    if problem.capacity_tolerance == 0:
        return problem.demand.astype(np.int64), int(problem.capacity)
    demand = np.ceil(problem.demand * (LOAD_TICKS / problem.capacity)).astype(np.int64)
    return demand, LOAD_TICKS + int(LOAD_TICKS * FLOAT_TOLERANCE / 2)


def to_data(problem: Problem, ticks: Ticks) -> Any:
    """Return the `pyvrp.ProblemData` of a problem: one depot, one vehicle type, customers with prizes optional."""
    import pyvrp

    xy = problem.coordinates if problem.coordinates is not None else np.zeros((len(problem.demand), 2))
    demand, service, ready, due, prize = (
        values.tolist() for values in (ticks.demand, ticks.service, ticks.ready, ticks.due, ticks.prize)
    )
    clients = [
        pyvrp.Client(
            location=i, delivery=[demand[i]], service_duration=service[i], tw_early=ready[i], tw_late=due[i],
            prize=prize[i], required=bool(problem.required[i]),
        )
        for i in range(1, len(problem.demand))
    ]  # fmt: skip
    hours = {"tw_early": ready[0], "tw_late": due[0]}
    matrices: dict[str, Any] = {"distance_matrices": [ticks.distance], "duration_matrices": [ticks.duration]}
    return pyvrp.ProblemData(
        locations=[pyvrp.Location(float(x), float(y)) for x, y in xy], clients=clients,
        depots=[pyvrp.Depot(location=0, **hours)],
        vehicle_types=[pyvrp.VehicleType(problem.vehicles or problem.customers, [ticks.capacity], **hours)], **matrices,
    )  # fmt: skip


class PyVRP:
    """PyVRP with its default parameters."""

    def version(self) -> str:
        return version("pyvrp")

    def refuses(self, problem: Problem) -> str | None:
        return refusal("PyVRP", {CAPACITY, TIME_WINDOWS, PRIZES, FLEET}, problem)

    def __call__(self, problem: Problem, seconds: float, seed: int) -> Answer:
        import pyvrp
        import pyvrp.stop

        ticks = to_ticks(problem)
        data = to_data(problem, ticks)
        started = time.perf_counter()
        stop = pyvrp.stop.MaxRuntime(seconds)
        stop(0)  # starts its clock, so that neighbourhoods and start solution count
        result = pyvrp.solve(data, stop, seed=seed, collect_stats=False, display=False)
        spent = time.perf_counter() - started
        routes = [[step.idx + 1 for step in route if step.is_client()] for route in result.best.routes()]
        settings = {"parameters": "default", "cost_scale": ticks.cost_scale, "time_scale": ticks.time_scale}
        settings["iterations"] = result.num_iterations
        return Answer(Solution(route for route in routes if route), spent, settings)


PYVRP = PyVRP()
