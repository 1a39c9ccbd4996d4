"""HGS-CVRP (Vidal 2022, by the package `hygese`) as a baseline. It supports the capacity only."""

import time
from dataclasses import asdict, dataclass
from importlib.metadata import version
from typing import Any

import numpy as np

from ndsvrp import constraints
from ndsvrp.bench.solvers import Answer, refusal
from ndsvrp.problem import Problem
from ndsvrp.solution import Solution

SIDE = 1000.0  # of the bounding box, if lengths are scaled
CAPACITY = 1000.0  # of a vehicle, if demands are scaled
LARGEST = 100_000.0  # largest length or demand that HGS accepts


@dataclass(frozen=True)
class HgsCvrp:
    """HGS-CVRP with its default parameters; it restarts as often as the time allows.

    Constants of HGS assume lengths like those of the X instances: the penalty per unit of excess load is at least 0.1,
    and gains below 1e-5 are ignored. On the unit square, where serving a customer costs about 0.07, that penalty
    forbids almost all infeasible solutions (docs/findings.md). So plain float lengths are scaled to a box of side 1000.
    """

    side: float | None = SIDE  #: None: plain floats are not scaled

    def version(self) -> str:
        return version("hygese")

    def refuses(self, problem: Problem) -> str | None:
        if reason := refusal("HGS-CVRP", {constraints.CAPACITY, constraints.FLEET}, problem):
            return reason
        if problem.distance is not None and not np.array_equal(problem.distance, problem.distance.T):
            return "HGS-CVRP takes distances to be symmetric"
        return None

    def __call__(self, problem: Problem, seconds: float, seed: int) -> Answer:
        import hygese

        nodes = np.arange(len(problem.demand))
        length = problem.length(nodes[:, None], nodes[None, :])
        as_given = self.side is None or (problem.metric.is_integer and length.max() <= LARGEST)
        scale = 1.0 if as_given else (self.side or SIDE) / problem.side()
        whole = problem.capacity_tolerance == 0 and problem.demand.max() <= LARGEST
        unit = 1.0 if whole else CAPACITY / problem.capacity
        data: dict[str, Any] = {"distance_matrix": length * scale, "demands": problem.demand * unit}
        data["vehicle_capacity"] = problem.capacity * unit
        if problem.coordinates is not None:  # for the angles of its SWAP* neighbourhood
            xy = (problem.coordinates - problem.coordinates.min(axis=0)) * scale
            data |= {"x_coordinates": xy[:, 0], "y_coordinates": xy[:, 1]}
        if problem.vehicles is not None:  # by default HGS adds a margin to what the load needs
            data["num_vehicles"] = problem.vehicles
        swap_star = problem.coordinates is not None
        parameters = hygese.AlgorithmParameters(timeLimit=seconds, seed=seed, useSwapStar=swap_star)
        started = time.perf_counter()
        result = hygese.Solver(parameters, verbose=False).solve_cvrp(data, rounding=False)
        spent = time.perf_counter() - started
        solution = Solution(route for route in result.routes if route)
        return Answer(solution, spent, {**asdict(parameters), "scale": scale})


HGS = HgsCvrp()
HGS_AS_GIVEN = HgsCvrp(side=None)
