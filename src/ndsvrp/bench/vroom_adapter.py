"""VROOM (https://github.com/VROOM-Project, by the package `pyvroom`) as a baseline. It computes in integers."""

import time
from datetime import timedelta
from importlib.metadata import version
from typing import Any

import numpy as np

from ndsvrp.bench.solvers import Answer, refusal
from ndsvrp.bench.ticks import Ticks, fleet, to_ticks
from ndsvrp.constraints import CAPACITY, FLEET, TIME_WINDOWS, VEHICLE_COST
from ndsvrp.problem import Problem
from ndsvrp.solution import Solution

LARGEST = 2**31  # of the cost of a solution and of a time: VROOM has 32 bits for them
FIRST_SOLUTIONS = (1, 3, 4, 6, 7, 10)  # their time at each level of exploration, over that at level 0
SHARE = 8  # first solutions may take this part of the time


class Vroom:
    """VROOM at the highest level of exploration that the time allows. It has no seed.

    VROOM builds first solutions whatever the limit, more of them at higher levels. A short run at level 0 tells how
    long that takes; its time counts. VROOM ends by itself, on small problems before the time limit.
    """

    def version(self) -> str:
        return version("pyvroom")

    def refuses(self, problem: Problem) -> str | None:
        if reason := refusal("VROOM", {CAPACITY, TIME_WINDOWS, FLEET, VEHICLE_COST}, problem):
            return reason
        return None if _fits(_ticks(problem)) else "VROOM takes costs and times below 2^31"

    def __call__(self, problem: Problem, seconds: float, seed: int) -> Answer:
        import vroom

        ticks = _ticks(problem)
        vehicles, costs = fleet(problem, ticks), vroom.VehicleCosts(fixed=ticks.vehicle_cost)
        hours: dict[str, Any] = {}
        windows: list[list[Any]] = [[] for _ in ticks.ready]
        if problem.has_windows:
            spans = [vroom.TimeWindow(*span) for span in zip(ticks.ready.tolist(), ticks.due.tolist(), strict=True)]
            hours, windows = {"time_window": spans[0]}, [[span] for span in spans]
        task = vroom.Input()
        task.set_durations_matrix("car", ticks.duration.astype(np.uint32))
        task.set_costs_matrix("car", ticks.distance.astype(np.uint32))
        for number in range(vehicles):
            task.add_vehicle(vroom.Vehicle(number, start=0, end=0, capacity=[ticks.capacity], costs=costs, **hours))
        demand, service = ticks.demand.tolist(), ticks.service.tolist()
        task.add_job(
            [
                vroom.Job(
                    customer, customer, default_service=service[customer], delivery=vroom.Amount([demand[customer]]),
                    time_windows=windows[customer],
                )
                for customer in range(1, len(demand))
            ]
        )  # fmt: skip
        started = time.perf_counter()
        answers = [task.solve(0, nb_threads=1, timeout=timedelta(milliseconds=1))]
        first = time.perf_counter() - started
        level = max([0, *(i for i, ratio in enumerate(FIRST_SOLUTIONS) if SHARE * ratio * first <= seconds - first)])
        if first < seconds:
            answers.append(task.solve(level, nb_threads=1, timeout=timedelta(seconds=seconds - first)))
        spent = time.perf_counter() - started
        best = min(answers, key=lambda answer: (answer.summary.unassigned, answer.summary.cost))
        steps = best.routes[best.routes["type"] == "job"]
        routes = [list(map(int, group)) for _, group in steps.groupby("vehicle_id", sort=True)["id"]]
        settings = {
            "exploration_level": level, "vehicles": vehicles,
            "cost_scale": ticks.cost_scale, "time_scale": ticks.time_scale,
        }  # fmt: skip
        return Answer(Solution(routes), spent, settings)


def _ticks(problem: Problem) -> Ticks:
    """Return ticks such that a route per customer has a cost within 32 bits."""
    return to_ticks(problem, largest=LARGEST / (2 * problem.customers))


def _fits(ticks: Ticks) -> bool:
    timed = ticks.duration.any() or ticks.service.any() or ticks.ready.any()
    latest = int(ticks.due.max()) if timed else 0
    dearest = len(ticks.demand) * (2 * int(ticks.distance.max()) + ticks.vehicle_cost)
    return dearest < LARGEST and latest < LARGEST


VROOM = Vroom()
