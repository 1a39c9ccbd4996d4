"""What a search returns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakMethod

from ndsvrp.check import Report
from ndsvrp.errors import NdsError, NoSolutionError
from ndsvrp.problem import Problem
from ndsvrp.schedule import RouteSchedule, schedule
from ndsvrp.solution import Solution
from ndsvrp.text import amount, number, printable

STOPPED = {
    "time": "time limit", "iterations": "iteration limit", "patience": "no better solution for long enough",
    "target": "target reached", "stop": "stop criterion", "callback": "ended by the callback",
    "error": "an error in the callback", "interrupted": "interrupted",
}  # fmt: skip
"""Why a search ended (`Result.stopped`), in words."""

_OTHER_NAMES = {
    "best": "solution has the routes",
    "distance": "report.distance has it",
    "is_feasible": "report.feasible has it",
    "num_iterations": "iterations has it",
    "routes": "solution.routes has the customers of each, schedule their times",
    "runtime": "seconds has it",
    "stats": "trace has the costs over time",
    "to_csv": "save writes .csv",
    "unserved": "report.unserved has it",
}
"""By the names of PyVRP and others that are likely: where it is here."""


class TracePoint(NamedTuple):
    """A new best solution."""

    seconds: float  #: for problems searched together, an equal share
    iteration: int
    cost: float


class _Numbers(NamedTuple):
    """The numbers of a `Progress`."""

    iteration: int
    seconds: float
    best: float
    temperature: float
    reconstructions: int  #: solutions built so far
    unserved: int  #: required customers that the best solution does not serve (a tight fleet, early in the search)


class Progress(_Numbers):
    """The state of a search after an iteration, for a callback; on a GPU the next iteration may be running by then.

    For problems searched together, `best` and `temperature` are means, and the counts are sums.
    """

    _export: Callable[[], Callable[[], list[Solution]] | None] | None = None

    @property
    def incumbent(self) -> Solution:
        """The best solution when it is asked for; of several problems searched together, that of the first."""
        return self.incumbents[0]

    @property
    def incumbents(self) -> list[Solution]:
        """The best solution of each problem that is searched together."""
        export = None if self._export is None else self._export()
        if export is None:
            raise NdsError("the search of this progress is over; its result has the solution")
        return export()

    def with_export(self, export: Callable[[], list[Solution]]) -> Progress:
        """Return this, with a method of the search for its incumbents.

        Two of them are equal if their numbers are. One that is kept does not keep the search, and its GPU memory.
        """
        self._export = WeakMethod(export)
        return self

    def __reduce__(self) -> tuple[type[Progress], tuple[Any, ...]]:
        return Progress, tuple(self)


@dataclass(frozen=True, repr=False)
class Result:
    """The best solution found, checked, and how it was found."""

    problem: Problem
    solution: Solution
    report: Report  #: of `check`; called with a file, it writes the page of `to_html`
    seed: int
    stopped: str  #: why: time, iterations, patience, target, stop, callback, error (in the callback), interrupted
    seconds: float  #: start solutions and search; for problems searched together, an equal share
    iterations: int
    reconstructions: int  #: solutions built; for problems searched together, an equal share
    settings: dict[str, Any] = field(default_factory=dict)  #: the plan with every setting, and the limits
    trace: tuple[TracePoint, ...] = ()
    preparation: float = 0.0  #: seconds of converting the problem to the form of the engine, before the clock started
    environment: dict[str, Any] | None = None  #: versions and hardware of the node of a cluster; None: this machine

    def __post_init__(self) -> None:
        object.__setattr__(self, "report", replace(self.report, page=self.to_html))

    if not TYPE_CHECKING:  # or a type checker would take any name for an attribute

        def __getattr__(self, name: str) -> Any:
            """Refuse a name that there is not, and say where it is."""
            if hasattr(type(self), name):  # a property, whose own AttributeError led here
                return object.__getattribute__(self, name)
            hint = f"; {_OTHER_NAMES[name]}" if name in _OTHER_NAMES else ""
            raise AttributeError(f"'Result' has no '{name}'{hint}", name=name, obj=self)

    @property
    def cost(self) -> float:
        """Distance plus lost prizes, computed by `check` in float64."""
        return self.report.cost

    @cached_property
    def schedule(self) -> tuple[RouteSchedule, ...]:
        """Each route with load, distance and duration, and the times of its stops."""
        return schedule(self.problem, self.solution)

    def __repr__(self) -> str:
        """Return one line; `print` shows the routes."""
        routes = amount(len(self.solution.routes), "route")
        return f"<Result of '{printable(self.problem.name)}': cost {number(self.cost)}, {routes}, seed {self.seed}>"

    def __str__(self) -> str:
        """Return a summary of at most twenty lines."""
        from ndsvrp.search.summary import summary

        return summary(self)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain tables and lists, as `to_json` has it."""
        from ndsvrp.io.result import to_dict

        return to_dict(self)

    def to_json(self, *, indent: int | None = 1) -> str:
        """Return a JSON text; `schemas/result.schema.json` describes it."""
        from ndsvrp.io.result import json_bytes

        return json_bytes(self.to_dict(), indent).decode()

    def to_dataframe(self) -> Any:
        """Return a pandas DataFrame with a row per stop, the depot included."""
        from ndsvrp.io.stop_table import to_dataframe

        return to_dataframe(self)

    def to_geojson(self) -> dict[str, Any]:
        """Return routes and stops as a GeoJSON FeatureCollection, for problems with latitude and longitude."""
        from ndsvrp.io.geojson import to_geojson

        return to_geojson(self)

    def plot(self, file: str | Path | None = None) -> Any:
        """Draw the routes. Return the matplotlib figure, and write it if a file is given."""
        from ndsvrp.plot import plot_routes

        return plot_routes(self.problem, self.solution, file)

    def to_html(self, file: str | Path | None = None) -> str:
        """Return one HTML page with map, routes, times and convergence, and write it if a file is given.

        `result.report(file)` does the same.
        """
        from ndsvrp.report import write_page

        return write_page(self, file)

    def save(self, file: str | Path) -> None:
        """Write `.json`, `.geojson`, `.csv` (a row per stop) or `.html` by the ending; else the solution as `.sol`."""
        from ndsvrp.io.save import save

        save(file, self)


def no_solution(result: Result) -> NoSolutionError | None:
    """Return the error of a search that leaves required customers unserved, if it does."""
    problem, report = result.problem, result.report
    broken = [violation for violation in report.violations if violation.kind != "unserved"]
    if broken:  # not a bad instance, but a bug of this package
        raise RuntimeError(f"the search returned an infeasible solution, please report this: {broken[0]}")
    unserved = [c for c in report.unserved if problem.required[c]]
    if not unserved:
        return None
    left = f"{amount(len(unserved), 'required customer')} unserved"
    if problem.vehicles is not None:
        left = f"{amount(problem.vehicles, 'vehicle')} {'leaves' if problem.vehicles == 1 else 'leave'} {left}"
    message = f"no feasible solution found: {left}"
    return NoSolutionError(message, unserved, result.preparation, result)
