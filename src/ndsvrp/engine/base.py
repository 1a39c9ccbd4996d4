"""What search and training know of an engine: five verbs over batches of solutions.

`start` makes solutions, `view` shows them to a policy, `rebuild` takes them apart and puts them back together,
`exchange` has chains go on from better ones, `export` gives the best as routes. A sixth method, `evaluate`, is the
parallel form of `rebuild`: K reconstructions of the same solution, where `rebuild` makes K in sequence, each of what
the last one left.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from ndsvrp.problem import Problem
from ndsvrp.solution import Solution

Ints = npt.NDArray[np.int32]
Rule = Literal["string", "related", "random"]


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How solutions are taken apart and put back together; `Settings` says what each field is."""

    rule: Rule | None = None  #: None: the customers to remove are given
    removals: int = 15
    orders: int = 1
    sorted_orders: bool = False
    all_routes: bool = False
    blink: float = 0.0
    open_route: float = 0.5
    string_average: float = 10.0
    string_longest: int = 10
    string_split: float = 0.5
    string_depth: float = 0.01


class View(NamedTuple):
    """The current solutions as arrays (chains, N+1) int32: what a policy looks at.

    Customers that are not served have the depot (0) on both sides and route -1; so has padding.
    """

    previous: Ints
    next: Ints
    route: Ints


class Numbers(NamedTuple):
    """What a search wants to know of all chains after every step; see `State`."""

    costs: npt.NDArray[np.float64]
    best_costs: npt.NDArray[np.float64]
    missing: Ints
    made: int  #: reconstructions by the last `rebuild`, of all chains; fewer than asked for if time was up


class Sized(Protocol):
    """What is asked of a problem once its chains have started."""

    @property
    def customers(self) -> int:
        """How many there are."""
        ...

    @property
    def vehicles(self) -> int | None:
        """How many there may be; None: any number."""
        ...


class State(Protocol):
    """Solutions in the hands of an engine: one current and one best per chain."""

    which: Ints  #: (chains,) the problem of each chain

    @property
    def problems(self) -> Sequence[Sized]:
        """What the chains work on."""
        ...

    def costs(self) -> npt.NDArray[np.float64]:
        """(chains,) cost of the current solutions, in units of the problem. Required customers left out count a lot."""
        ...

    def best_costs(self) -> npt.NDArray[np.float64]:
        """(chains,) cost of the best solution each chain has seen."""
        ...

    def missing(self) -> Ints:
        """(chains,) required customers that those best solutions leave out: a limited fleet could not take them yet."""
        ...

    def numbers(self) -> Numbers:
        """All of these, in one look: a GPU is waited for once."""
        ...

    def snapshot(self) -> Callable[[], Numbers]:
        """The numbers as they will be when all that has been asked for is done. Whoever calls what is returned waits
        for that, and for nothing that is asked for later."""
        ...


class Engine(Protocol):
    """Five verbs, one of them in two forms. A `state` is what `start` of the same engine returned.

    `deadline` is a time of `time.perf_counter`: long work ends there, unfinished.
    """

    name: str
    runs_ahead: bool  #: whether verbs return before their work is done, as on a GPU

    def start(
        self,
        problems: Sequence[Problem],
        which: npt.ArrayLike,
        init: Solution | None = None,
        *,
        first: int | Ints = 0,
        soon: Recipe | None = None,
    ) -> State:
        """Chains of problems, chain i belonging to `problems[which[i]]`, each with a first solution: the given one, or
        one route per customer, or, where the fleet is limited, nobody served. Random numbers are drawn as for chains
        `first`, `first + 1`, …, or, if it is an array (chains,), as for the chains it names: part of a batch then goes
        the way it would go within the whole, and a problem within a batch the way it would go alone. By `soon`, if
        anything, will be rebuilt: what a GPU needs for it is compiled beside all that comes before."""
        ...

    def view(self, state: Any) -> View:
        """The current solutions, for a policy."""
        ...

    def device_view(self, state: Any) -> Any:
        """The same three, where the engine has them: tensors on the GPU, for a network there; arrays on a CPU."""
        ...

    def rebuild(
        self,
        state: Any,
        recipe: Recipe,
        removed: Any,
        temperature: npt.NDArray[np.float64],
        seed: int,
        iteration: int,
        *,
        deadline: float | None = None,
    ) -> None:
        """K reconstructions in sequence per chain, accepted by annealing; `Numbers.made` tells how many were made.

        removed: (chains, K, M) customers to take out, an array or a tensor where the engine is; or None with a rule in
        the recipe;
        temperature: (chains, K) float64, in units of the problem; if it is the same for all steps of a chain, best as
        `np.broadcast_to` makes it of one number per chain, which is then all that a GPU is sent.
        """
        ...

    def evaluate(
        self,
        state: Any,
        recipe: Recipe,
        removed: Any,
        rollouts: int,
        seed: int,
        iteration: int,
        keep_best: bool,
    ) -> npt.NDArray[np.float64]:
        """The parallel form of `rebuild`: (chains, K) change of cost by each of K reconstructions of the same solution.

        There is no annealing: with `keep_best`, the best of the K is kept if it is better than that solution.
        """
        ...

    def exchange(self, state: Any, reach: npt.NDArray[np.float64], seed: int, iteration: int) -> None:
        """Chains too far behind the others of their problem go on from the current solution of one that is not.

        reach: (problems,) float64, how far above the lowest cost of its chains one may be, in units of the problem.
        Those beyond draw among those within, by random numbers of their own.
        """
        ...

    def export(self, state: Any, chain: int, *, best: bool = True) -> Solution:
        """The best (or the current) solution of a chain as routes."""
        ...
