"""The routing library of OR-Tools (https://developers.google.com/optimization) as a baseline, in integers."""

import time
from importlib.metadata import version
from typing import Any

import numpy as np

from ndsvrp.bench.solvers import Answer, refusal
from ndsvrp.bench.ticks import NEVER, Ticks, fleet, to_ticks
from ndsvrp.constraints import CAPACITY, FLEET, PRIZES, TIME_WINDOWS, VEHICLE_COST
from ndsvrp.errors import NoSolutionError
from ndsvrp.problem import Problem
from ndsvrp.solution import Solution

FIRST, IMPROVE = "PARALLEL_CHEAPEST_INSERTION", "GUIDED_LOCAL_SEARCH"  # as its documentation advises for routing


class OrTools:
    """OR-Tools with guided local search. It has no random numbers: a seed has no effect."""

    def version(self) -> str:
        return version("ortools")

    def refuses(self, problem: Problem) -> str | None:
        return refusal("OR-Tools", {CAPACITY, TIME_WINDOWS, PRIZES, FLEET, VEHICLE_COST}, problem)

    def __call__(self, problem: Problem, seconds: float, seed: int) -> Answer:
        from ortools.constraint_solver import pywrapcp, routing_enums_pb2

        ticks = to_ticks(problem)
        vehicles = fleet(problem, ticks)
        manager = pywrapcp.RoutingIndexManager(len(problem.demand), vehicles, 0)
        model = pywrapcp.RoutingModel(manager)
        _constrain(model, manager, problem, ticks, vehicles)
        parameters = pywrapcp.DefaultRoutingSearchParameters()
        parameters.first_solution_strategy = getattr(routing_enums_pb2.FirstSolutionStrategy, FIRST)
        parameters.local_search_metaheuristic = getattr(routing_enums_pb2.LocalSearchMetaheuristic, IMPROVE)
        parameters.time_limit.FromMicroseconds(round(1e6 * seconds))
        started = time.perf_counter()
        trace: list[tuple[float, float]] = []

        def note_solution() -> None:
            cost = model.CostVar().Max() / ticks.cost_scale
            if not trace or cost < trace[-1][1]:
                trace.append((time.perf_counter() - started, cost))

        model.AddAtSolutionCallback(note_solution)
        model.CloseModelWithParameters(parameters)
        left = max(0.001, seconds - (time.perf_counter() - started))  # closing the model builds neighbourhoods
        parameters.time_limit.FromMicroseconds(round(1e6 * left))
        found = model.SolveWithParameters(parameters)
        spent = time.perf_counter() - started
        if found is None:
            raise NoSolutionError("OR-Tools found no solution in time", [])
        routes = [_route(model, manager, found, vehicle) for vehicle in range(vehicles)]
        settings = {
            "first_solution": FIRST, "metaheuristic": IMPROVE, "vehicles": vehicles,
            "cost_scale": ticks.cost_scale, "time_scale": ticks.time_scale,
        }  # fmt: skip
        return Answer(Solution(route for route in routes if route), spent, settings, trace)


def _constrain(model: Any, manager: Any, problem: Problem, ticks: Ticks, vehicles: int) -> None:
    """Add the costs, loads, times and prizes of a problem."""
    model.SetArcCostEvaluatorOfAllVehicles(model.RegisterTransitMatrix(ticks.distance.tolist()))
    model.SetFixedCostOfAllVehicles(ticks.vehicle_cost)
    load = model.RegisterUnaryTransitVector(ticks.demand.tolist())
    model.AddDimension(load, 0, ticks.capacity, True, "load")
    if problem.has_windows:
        horizon = int(ticks.due[ticks.due < NEVER].max())
        travel = model.RegisterTransitMatrix((ticks.duration + ticks.service[:, None]).tolist())
        model.AddDimension(travel, horizon, horizon, False, "time")
        clock = model.GetDimensionOrDie("time")
        ready, due = ticks.ready.tolist(), ticks.due.tolist()
        for customer in range(1, len(ready)):
            clock.CumulVar(manager.NodeToIndex(customer)).SetRange(ready[customer], due[customer])
        for vehicle in range(vehicles):
            for stop in (model.Start(vehicle), model.End(vehicle)):
                clock.CumulVar(stop).SetRange(ready[0], due[0])
    for customer in np.flatnonzero(~problem.required)[1:].tolist():
        model.AddDisjunction([manager.NodeToIndex(customer)], int(ticks.prize[customer]))


def _route(model: Any, manager: Any, found: Any, vehicle: int) -> list[int]:
    """Return the customers of a vehicle."""
    stop, route = found.Value(model.NextVar(model.Start(vehicle))), []
    while not model.IsEnd(stop):
        route.append(manager.IndexToNode(stop))
        stop = found.Value(model.NextVar(stop))
    return route


ORTOOLS = OrTools()
