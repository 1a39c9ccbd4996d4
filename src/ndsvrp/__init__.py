"""Solve vehicle routing problems by ruin and recreate, with hand-made rules or a learned policy.

The top level holds what every other package shares: `Problem` and its constraints, `Solution`, metrics, errors, and
`check`, which computes cost and violations. Its modules import no other package but `constraints`. The names exported
here are the public API.
"""

import logging
from typing import TYPE_CHECKING

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
from ndsvrp.io import read, read_set, read_solution, write, write_set, write_solution
from ndsvrp.metric import Metric
from ndsvrp.model import Model
from ndsvrp.problem import Problem
from ndsvrp.ruin import Ruin, RuinRequest
from ndsvrp.search.result import Progress, Result
from ndsvrp.search.settings import Settings
from ndsvrp.search.solve import solve, solve_set
from ndsvrp.search.solver import Solver
from ndsvrp.solution import Route, Solution

if TYPE_CHECKING:
    __version__: str
else:

    def __getattr__(name: str) -> str:
        """Return `__version__` when it is asked for: importing the reader of metadata takes a tenth of our import."""
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
    "Model", "NdsError", "NoSolutionError", "Problem", "Progress", "Report", "Result", "Route", "Ruin", "RuinRequest",
    "Settings", "Solution", "Solver", "View", "Violation", "check", "generate", "models", "read", "read_set",
    "read_solution", "solve", "solve_set", "write", "write_set", "write_solution",
]  # fmt: skip
