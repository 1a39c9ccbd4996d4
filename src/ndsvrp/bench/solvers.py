"""The solvers a benchmark compares: a small protocol, and who is known by which name."""

from __future__ import annotations

import importlib
import time
from dataclasses import dataclass, field
from typing import Any, Protocol

from ndsvrp.bench.code_version import code_version
from ndsvrp.errors import InstanceError
from ndsvrp.problem import Problem
from ndsvrp.solution import Solution


@dataclass(frozen=True)
class Answer:
    """What a solver found. Its cost is worked out by `ndsvrp.check`, whatever the solver says of it."""

    solution: Solution
    seconds: float  #: from the problem in the solver's own form to the solution, start included
    settings: dict[str, Any] = field(default_factory=dict)  #: how the solver was set, for the record


class Solver(Protocol):
    """A solver as a benchmark sees it. It runs on one core, in a process of its own."""

    def version(self) -> str:
        """Rows of another version are not taken for this one's."""

    def refuses(self, problem: Problem) -> str | None:
        """Why the solver cannot take this problem; None if it can."""

    def __call__(self, problem: Problem, seconds: float, seed: int) -> Answer:
        """Search for so many seconds; raise if nothing was found."""


@dataclass(frozen=True)
class Own:
    """A solver of this package, by the name `ndsvrp.solve` knows it by."""

    name: str

    def version(self) -> str:
        """Version and digest of the code that searches."""
        return code_version()

    def refuses(self, problem: Problem) -> str | None:
        """It takes every problem of this package."""
        del problem
        return None

    def __call__(self, problem: Problem, seconds: float, seed: int) -> Answer:
        """Solve with one thread on the CPU."""
        import ndsvrp

        started = time.perf_counter()
        result = ndsvrp.solve(problem, time=seconds, seed=seed, solver=self.name, threads=1, device="cpu")
        return Answer(result.solution, time.perf_counter() - started, result.settings)


KNOWN = {
    "sisr": "ndsvrp.bench.solvers:SISR",
    "nds": "ndsvrp.bench.solvers:NDS",
    "pyvrp": "ndsvrp.bench.pyvrp_adapter:PYVRP",
    "hgs": "ndsvrp.bench.hgs_adapter:HGS",
}
SISR, NDS = Own("sisr"), Own("nds")


def find_solver(name: str) -> Solver:
    """A solver by name, or any other that keeps to the protocol as `module:attribute`."""
    module, _, attribute = KNOWN.get(name, name).partition(":")
    if not attribute:
        raise InstanceError(f"no solver '{name}'; there are {', '.join(KNOWN)} and module:attribute", field="solvers")
    try:
        solver: Solver = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise InstanceError(f"solver '{name}' cannot be loaded: {error}", field="solvers") from None
    return solver
