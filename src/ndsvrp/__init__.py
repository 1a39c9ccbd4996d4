"""Solve vehicle routing problems by ruin and recreate, with hand-made rules or a learned policy.

The top level holds what every other package shares: `Problem` and its constraints, `Solution`, metrics, errors, and
`check`, which computes cost and violations. Its modules import no other package but `constraints`. The names exported
here are the public API.
"""

import logging
from typing import TYPE_CHECKING, Any

from ndsvrp import models
from ndsvrp.check import Report, Violation, check
from ndsvrp.engine.base import View
from ndsvrp.errors import (
    CallbackError,
    CheckpointError,
    ClusterError,
    EngineError,
    InstanceError,
    MissingPackageError,
    NdsError,
    NoSolutionError,
)
from ndsvrp.generate import generate
from ndsvrp.io import read, read_content, read_set, read_solution, write, write_set, write_solution
from ndsvrp.metric import Metric
from ndsvrp.model import Model
from ndsvrp.problem import Problem
from ndsvrp.ruin import Ruin, RuinRequest
from ndsvrp.schedule import RouteSchedule, StopTimes
from ndsvrp.search.result import Progress, Result, TracePoint
from ndsvrp.search.settings import Settings
from ndsvrp.search.solve import solve, solve_set
from ndsvrp.search.solver import Solver
from ndsvrp.solution import Route, Solution

if TYPE_CHECKING:
    from ndsvrp.plot import plot_trace

    __version__: str
else:

    def __getattr__(name: str) -> Any:
        """Return what takes long to import when it is asked for: the reader of metadata, and matplotlib."""
        if name == "plot_trace":
            from ndsvrp.plot import plot_trace

            return plot_trace
        if name != "__version__":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib.metadata import PackageNotFoundError, version

        try:
            return version("ndsvrp")
        except PackageNotFoundError:  # run from a source tree that was never installed
            return "0+source"


logging.getLogger(__name__).addHandler(logging.NullHandler())

__all__ = [
    "CallbackError", "CheckpointError", "ClusterError", "EngineError", "InstanceError", "Metric", "MissingPackageError",
    "Model", "NdsError", "NoSolutionError", "Problem", "Progress", "Report", "Result", "Route", "RouteSchedule",
    "Ruin", "RuinRequest", "Settings", "Solution", "Solver", "StopTimes", "TracePoint", "View", "Violation", "check",
    "generate", "models", "plot_trace", "read", "read_content", "read_set", "read_solution", "solve", "solve_set",
    "write", "write_set", "write_solution",
]  # fmt: skip
