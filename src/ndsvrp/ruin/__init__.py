"""Ruin: the choice of the customers to remove.

A ruin is either the name of a rule that the engine evaluates inside each step, on the solution as it is then
(`string`, `related`, `random`: native/include/ndsvrp/ruin.hpp), or an object that maps a `RuinRequest` to customers.
The learned policy is such an object. A plain function becomes one by `as_ruin` (see examples/).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from ndsvrp.engine.base import Ints, Regions, View
from ndsvrp.errors import NdsError
from ndsvrp.problem import Problem

RULES = ("string", "related", "random")
CAPABILITIES = ("on_device", "batched", "in_regions", "expected_seconds")


@dataclass(frozen=True, eq=False)
class RuinRequest:
    """What a ruin reads when an iteration of the search asks for customers to remove."""

    problem: Problem  #: the first one, if there are several
    coordinates: npt.NDArray[np.float64]
    """(chains, N+1, 2) in the unit square, augmented per chain; derived from the matrix if the problem has one."""
    view: View  #: the current solution of each chain
    rollouts: int  #: K: removals wanted per chain, or per part
    removals: int  #: M: customers per removal, at most N
    random: np.random.Generator  #: seeded by (seed, iteration)
    threads: int = 1  #: cores that may be used; the result must not depend on it
    deadline: float | None = None  #: end of the time limit, on the clock of `time.perf_counter`
    problems: tuple[Problem, ...] = ()
    """All problems of the search, which have the same size: more than one only for a `batched` ruin. Each has the same
    number of chains; those of the first problem come first."""

    regions: Regions | None = None
    """The parts of the solutions, if the search works in regions: (parts, K, M) customers are wanted."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "problems", self.problems or (self.problem,))

    @property
    def rows(self) -> int:
        """For how many solutions, or parts of them, customers are wanted."""
        return len(self.coordinates) if self.regions is None else len(self.regions.counts)


@runtime_checkable
class Ruin(Protocol):
    """Chooses the customers to remove, and states its capabilities. A subclass inherits the defaults given here."""

    on_device: bool = False
    """Accepts the view as the engine holds it, tensors on a GPU, and may return such a tensor."""
    batched: bool = False  #: accepts several problems at once (`ndsvrp.solve_set`)
    in_regions: bool = False  #: chooses for the parts of solutions if they are given (`RuinRequest.regions`)

    def __call__(self, request: RuinRequest) -> Ints:
        """Return (chains, K, M) int32: distinct customers, in insertion order; fewer than K after the deadline.

        A removal of fewer than M customers ends with zeros. If the request has regions: (parts, K, M), of which
        customers of other parts are not removed.
        """
        ...

    def expected_seconds(self) -> float | None:
        """Return how long the next call will run without checking the deadline; None if unknown.

        The search starts no call that would end too late. This method must not wait for calls in progress.
        """
        return None


RuinFunction = Callable[[RuinRequest], Ints]


@dataclass(frozen=True)
class FunctionRuin(Ruin):
    """A plain function as a ruin, with the default capabilities."""

    function: RuinFunction

    def __call__(self, request: RuinRequest) -> Ints:
        """Call the function."""
        return self.function(request)


def checked_answer(answer: Any, request: RuinRequest) -> Ints:
    """Return what a ruin answered, if its shape is (rows, up to K, M); engines check the customers themselves."""
    if not hasattr(answer, "shape"):
        try:
            answer = np.array(answer)
        except ValueError:  # of rows of different lengths
            answer = np.array(None)
    rows, most, removals = request.rows, request.rollouts, request.removals
    shape = tuple(answer.shape)
    if len(shape) != 3 or (shape[0], shape[2]) != (rows, removals) or shape[1] > most:
        raise NdsError(f"a ruin must return customers of shape ({rows}, up to {most}, {removals}), got {shape}")
    found: Ints = answer
    return found


def as_ruin(ruin: Ruin | RuinFunction) -> Ruin:
    """Return a ruin unchanged, and a plain function as one."""
    if not callable(ruin):
        raise NdsError(f"a ruin or model is a name, a path or a function, got {ruin!r}")
    if isinstance(ruin, Ruin):
        return ruin
    if stated := [name for name in CAPABILITIES if hasattr(ruin, name)]:
        raise NdsError(f"a ruin with {stated[0]} needs all of {', '.join(CAPABILITIES)}: derive it from ndsvrp.Ruin")
    return FunctionRuin(ruin)
