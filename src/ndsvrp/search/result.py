"""What a search returns."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from ndsvrp.check import Report
from ndsvrp.errors import NoSolutionError
from ndsvrp.problem import Problem
from ndsvrp.solution import Solution


class TracePoint(NamedTuple):
    """A new best solution."""

    seconds: float  #: for problems searched together, an equal share
    iteration: int
    cost: float


class Progress(NamedTuple):
    """The state of a search after an iteration, for a callback; on a GPU the next iteration may be running by then.

    For problems searched together, `best` and `temperature` are means, and the counts are sums.
    """

    iteration: int
    seconds: float
    best: float
    temperature: float
    reconstructions: int  #: solutions built so far
    unserved: int  #: required customers that the best solution does not serve (a tight fleet, early in the search)
    incumbents: Callable[[], list[Solution]] = list  #: returns the incumbent of each problem; for use in the callback


@dataclass(frozen=True)
class Result:
    """The best solution found, checked, and how it was found."""

    problem: Problem
    solution: Solution
    report: Report  #: of `check`
    seed: int
    stopped: str  #: why: time, iterations, patience, target, interrupted
    seconds: float  #: start solutions and search; for problems searched together, an equal share
    iterations: int
    reconstructions: int  #: solutions built; for problems searched together, an equal share
    settings: dict[str, Any] = field(default_factory=dict)  #: the plan with every setting, and the limits
    trace: tuple[TracePoint, ...] = ()
    preparation: float = 0.0  #: seconds of converting the problem to the form of the engine, before the clock started

    @property
    def cost(self) -> float:
        """Distance plus lost prizes, computed by `check` in float64."""
        return self.report.cost

    def plot(self, file: str | Path | None = None) -> Any:
        """Draw the routes. Return the matplotlib figure, and write it if a file is given."""
        from ndsvrp.plot import plot_routes

        return plot_routes(self.problem, self.solution, file)

    def save(self, file: str | Path) -> None:
        """Write the solution as `.sol`, or the whole result as `.json`, by the file's ending."""
        from ndsvrp.io import write_result, write_solution

        if Path(file).suffix == ".json":
            write_result(file, self)
        else:
            write_solution(file, self.solution, self.cost)


def no_solution(problem: Problem, report: Report, preparation: float) -> NoSolutionError | None:
    """Return the error of a search that leaves required customers unserved, if it does."""
    broken = [violation for violation in report.violations if violation.kind != "unserved"]
    if broken:  # not a bad instance, but a bug of this package
        raise RuntimeError(f"the search returned an infeasible solution, please report this: {broken[0]}")
    unserved = [c for c in report.unserved if problem.required[c]]
    if not unserved:
        return None
    fleet = f"{problem.vehicles} vehicles leave " if problem.vehicles is not None else ""
    message = f"no feasible solution found: {fleet}{len(unserved)} required customers unserved"
    return NoSolutionError(message, unserved, preparation)
