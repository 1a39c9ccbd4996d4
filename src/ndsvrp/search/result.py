"""What a search returns."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from ndsvrp.check import Report
from ndsvrp.problem import Problem
from ndsvrp.solution import Solution


class TracePoint(NamedTuple):
    """A best solution, when it was found."""

    seconds: float  #: of problems searched together, an equal share
    iteration: int
    cost: float


class Progress(NamedTuple):
    """What a callback is told after every iteration of the search; on a GPU the next one may be under way by then. Of
    problems searched together it gets the mean of their best costs and temperatures, and the sums of the counts."""

    iteration: int
    seconds: float
    best: float
    temperature: float
    reconstructions: int  #: solutions built so far
    unserved: int  #: required customers the best solution leaves out (a tight fleet, early in the search)


@dataclass(frozen=True)
class Result:
    """The best solution found, judged by `check`, and how it came about."""

    problem: Problem
    solution: Solution
    report: Report  #: what `check` says of it
    seed: int
    stopped: str  #: why: time, iterations, patience, target, interrupted
    seconds: float  #: start solutions and search; of problems searched together, an equal share
    iterations: int
    reconstructions: int  #: solutions built; of problems searched together, an equal share
    settings: dict[str, Any] = field(default_factory=dict)  #: solver, device, threads, limits, every setting
    trace: tuple[TracePoint, ...] = ()

    @property
    def cost(self) -> float:
        """Distance plus lost prizes, from `check`, in float64."""
        return self.report.cost

    def plot(self, file: str | Path | None = None) -> Any:
        """Draw the routes; returns the matplotlib figure, and writes it if a file is given."""
        from ndsvrp.plot import plot_routes

        return plot_routes(self.problem, self.solution, file)

    def save(self, file: str | Path) -> None:
        """Write the solution as `.sol`, or the whole result as `.json`, by the file's ending."""
        from ndsvrp.io import write_result, write_solution

        if Path(file).suffix == ".json":
            write_result(file, self)
        else:
            write_solution(file, self.solution, self.cost)
