"""The solvers a benchmark compares: a small protocol, and who is known by which name."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np

from ndsvrp.bench.code_version import code_version
from ndsvrp.errors import InstanceError, NoSolutionError
from ndsvrp.problem import Problem
from ndsvrp.search.result import Result
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
    """A solver of this package, by the name `ndsvrp.solve` knows it by; on a core, if not told otherwise."""

    name: str
    how: dict[str, Any] = field(default_factory=dict)  #: further arguments of `ndsvrp.solve`

    def label(self, together: int = 1) -> str:
        """Its name in rows: `nds-policy-cuda-128-x16` is the policy on a GPU, 128 chains, 16 instances at once."""
        how = {name: value for name, value in self.how.items() if value is not None and (name, value) != DEFAULT_DEVICE}
        words = [str(how.pop(name)) for name in ("ruin", "device", "chains") if name in how]
        if "model" in how:
            words.insert(0, _named(how.pop("model")))
        words += [f"{name}={value}" for name, value in how.items()]
        return "-".join([self.name, *words, *([f"x{together}"] if together > 1 else [])])

    def version(self) -> str:
        """Version and digest of the code that searches."""
        return code_version()

    def refuses(self, problem: Problem) -> str | None:
        """It takes every problem of this package."""
        del problem
        return None

    def refuse_settings(self) -> None:
        """Raise now what would be raised for every problem."""
        from ndsvrp.search.solve import plan

        any_problem = Problem(demand=np.array([0.0, 1.0]), capacity=1.0, coordinates=np.eye(2))
        plan(any_problem, solver=self.name, **self._arguments())

    def __call__(self, problem: Problem, seconds: float, seed: int) -> Answer:
        """Solve one problem."""
        (answer,) = self.solve([problem], 1, seconds, seed)
        if isinstance(answer, NoSolutionError):
            raise answer
        return answer

    def solve(
        self, problems: Sequence[Problem], together: int, seconds: float, seed: int
    ) -> list[Answer | NoSolutionError]:
        """Solve several, so many at once, with so many seconds for each."""
        import ndsvrp

        outcomes = ndsvrp.solve_set(
            problems, together=together, time=seconds, seed=seed, solver=self.name, **self._arguments()
        )
        return [Answer(o.solution, o.seconds, o.settings) if isinstance(o, Result) else o for o in outcomes]

    def _arguments(self) -> dict[str, Any]:
        return dict([DEFAULT_DEVICE]) | {"threads": 1} | self.how


DEFAULT_DEVICE = ("device", "cpu")


def _named(model: str) -> str:
    """A model's name and the first digits of its weights' digest."""
    from ndsvrp.models import find
    from ndsvrp.policy.model_file import read_model_file

    file = read_model_file(find(model))
    return f"{file.name}@{file.sha256[:8]}"


KNOWN = {
    "sisr": "ndsvrp.bench.solvers:SISR",
    "nds": "ndsvrp.bench.solvers:NDS",
    "pyvrp": "ndsvrp.bench.pyvrp_adapter:PYVRP",
    "hgs": "ndsvrp.bench.hgs_adapter:HGS",
}
SISR, NDS = Own("sisr"), Own("nds")


def find_solver(name: str, how: dict[str, Any] | None = None) -> Solver:
    """A solver by name, or any other that keeps to the protocol as `module:attribute`; `how` is for our own."""
    module, _, attribute = KNOWN.get(name, name).partition(":")
    if not attribute:
        raise InstanceError(f"no solver '{name}'; there are {', '.join(KNOWN)} and module:attribute", field="solvers")
    try:
        solver: Solver = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise InstanceError(f"solver '{name}' cannot be loaded: {error}", field="solvers") from None
    return replace(solver, how=how or {}) if isinstance(solver, Own) else solver
