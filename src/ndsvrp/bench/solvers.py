"""The solvers that a benchmark compares: their protocol and their names."""

import importlib
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from importlib.metadata import PackageNotFoundError
from typing import Any, Protocol

import numpy as np

from ndsvrp.constraints import Constraint, constraints_of
from ndsvrp.errors import InstanceError, NoSolutionError
from ndsvrp.extras import install
from ndsvrp.models import find
from ndsvrp.problem import Problem
from ndsvrp.search.code_version import code_version
from ndsvrp.search.planning import Request, plan
from ndsvrp.search.result import Result
from ndsvrp.search.solver import Solver
from ndsvrp.solution import Solution


@dataclass(frozen=True)
class Answer:
    """What a solver found. The benchmark computes its cost by `ndsvrp.check`."""

    solution: Solution
    seconds: float  #: from the problem in the solver's format to the solution, start included
    settings: dict[str, Any] = field(default_factory=dict)  #: of the solver, for the row
    trace: Sequence[tuple[float, float]] = ()  #: seconds and cost of each new best solution, if the solver tells


class BenchmarkSolver(Protocol):
    """A solver as a benchmark calls it: on one core, in its own process."""

    def version(self) -> str:
        """Return the version; runs of another version are not reused."""

    def refuses(self, problem: Problem) -> str | None:
        """Return why the solver cannot take this problem; None if it can."""

    def __call__(self, problem: Problem, seconds: float, seed: int) -> Answer:
        """Search for `seconds`; raise if no solution was found."""


DEFAULT = Request(device="cpu", threads=1)  # of a solver of this package in a benchmark


def refusal(solver: str, known: set[Constraint], problem: Problem) -> str | None:
    """Return why a solver with these constraints cannot take a problem; None if it can."""
    others = [constraint.name for constraint in constraints_of(problem) if constraint not in known]
    return f"{solver} does not support {' and '.join(others)}" if others else None


def last_line(messages: bytes) -> str:
    """Return the last line of what a program wrote to its error stream."""
    return " ".join(messages.decode(errors="replace").strip().splitlines()[-1:])


@dataclass(frozen=True)
class OwnSolver:
    """A solver of this package."""

    request: Request
    iterations: int | None = None  #: limit besides the time

    def label(self, together: int = 1) -> str:
        """Return the name in rows: `nds-policy-cuda-128-x16` has the policy, a GPU, 128 chains, 16 instances."""
        asked = {f.name: getattr(self.request, f.name) for f in fields(Request)}
        asked = {name: value for name, value in asked.items() if value != getattr(DEFAULT, name)}
        asked.pop("threads", None)  # rows state them
        name, settings = asked.pop("solver", DEFAULT.solver), asked.pop("settings", {})
        model = [_model_label(asked.pop("model"))] if "model" in asked else []
        words = [str(asked.pop(option)) for option in ("ruin", "device", "chains") if option in asked]
        limits = {"iterations": self.iterations} if self.iterations is not None else {}
        words += [f"{option}={value}" for option, value in (asked | settings | limits).items()]
        return "-".join([name, *model, *words, *([f"x{together}"] if together > 1 else [])])

    def version(self) -> str:
        return code_version()

    def refuses(self, problem: Problem) -> str | None:
        return None  # every problem of this package is supported

    def refuse_settings(self) -> None:
        """Raise now what every problem would raise."""
        plan(Problem(demand=np.array([0.0, 1.0]), capacity=1.0, coordinates=np.eye(2)), self.request)

    def __call__(self, problem: Problem, seconds: float, seed: int) -> Answer:
        (answer,) = self.solve([problem], 1, seconds, seed)
        if isinstance(answer, NoSolutionError):
            raise answer
        return answer

    def solve(
        self, problems: Sequence[Problem], together: int, seconds: float, seed: int
    ) -> list[Answer | NoSolutionError]:
        """Solve several problems, `together` at once, with `seconds` for each."""
        with Solver(self.request) as solver:
            outcomes = solver.solve_set(
                problems, together=together, time=seconds, iterations=self.iterations, seed=seed
            )
        return [_answer(outcome) if isinstance(outcome, Result) else outcome for outcome in outcomes]


def _answer(result: Result) -> Answer:
    trace = [(point.seconds, point.cost) for point in result.trace]
    ended = {"iterations": result.iterations, "stopped": result.stopped}
    return Answer(result.solution, result.seconds, result.settings | ended, trace)


def _model_label(model: str) -> str:
    """Return the name of a model and the first digits of its digest."""
    from ndsvrp.policy.model_file import read_model_file

    file = read_model_file(find(model))
    return f"{file.name}@{file.sha256[:8]}"


KNOWN = {
    "auto": "ndsvrp.bench.solvers:AUTO",
    "hybrid": "ndsvrp.bench.solvers:HYBRID",
    "sisr": "ndsvrp.bench.solvers:SISR",
    "nds": "ndsvrp.bench.solvers:NDS",
    "pyvrp": "ndsvrp.bench.pyvrp_adapter:PYVRP",
    "hgs": "ndsvrp.bench.hgs_adapter:HGS",
    "ortools": "ndsvrp.bench.ortools_adapter:ORTOOLS",
    "vroom": "ndsvrp.bench.vroom_adapter:VROOM",
    "lkh": "ndsvrp.bench.lkh_adapter:LKH",
}
EXTRAS = {"pyvrp": "bench", "hygese": "bench", "ortools": "bench-all", "pyvroom": "bench-all"}
"""The extra of this package that installs a package."""
AUTO, HYBRID, SISR, NDS = (OwnSolver(replace(DEFAULT, solver=name)) for name in ("auto", "hybrid", "sisr", "nds"))


def find_solver(name: str, request: Request = DEFAULT, iterations: int | None = None) -> BenchmarkSolver:
    """Return a solver by name, as `pyvrp@PYTHON` or as `module:attribute`.

    The request and the limit on iterations are for a solver of this package.
    """
    plain, at, python = name.partition("@")
    if at and plain == "pyvrp":
        from ndsvrp.bench.pyvrp_adapter import PyVRP

        return PyVRP(python)
    module, _, attribute = KNOWN.get(name, name).partition(":")
    if not attribute:
        known = ", ".join(KNOWN)
        message = f"no solver '{name}'; there are {known}, pyvrp@PYTHON and module:attribute"
        raise InstanceError(message, field="solvers")
    try:
        solver: BenchmarkSolver = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise InstanceError(f"solver '{name}' cannot be loaded: {error}", field="solvers") from None
    lacks = [part for part in ("version", "refuses", "__call__") if not callable(getattr(solver, part, None))]
    if lacks or isinstance(solver, type):
        what = f"lacks {', '.join(lacks)}" if lacks else "is a class, an object of it is needed"
        raise InstanceError(f"'{name}' is not a solver: {what} (ndsvrp.bench.solvers.BenchmarkSolver)", field="solvers")
    if isinstance(solver, OwnSolver):
        return OwnSolver(replace(request, solver=solver.request.solver), iterations)
    return solver


def label_of(name: str, solver: BenchmarkSolver, together: int = 1) -> str:
    """Return the name of a solver in rows."""
    if isinstance(solver, OwnSolver):
        return solver.label(together)
    return f"pyvrp-{solver.version()}" if name.startswith("pyvrp@") else name


def version_of(name: str, solver: BenchmarkSolver) -> str:
    """Return the version of a solver; raise with the command that installs it if it is not there."""
    try:
        return solver.version()
    except PackageNotFoundError as error:
        hint = install(EXTRAS.get(error.name, "bench"))
        raise InstanceError(f"'{name}' needs the package {error.name} ({hint})", field="solvers") from None
