"""The protocols of an engine: what search and training ask of it, and of the solutions that it holds."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from ndsvrp.problem import Problem
from ndsvrp.solution import Solution

Ints = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float64]
Array = Any  #: an array of numpy, or a tensor of torch on the device of the engine
Init: TypeAlias = Solution | Sequence[Solution] | None  #: first solution of all problems, or one for each
Rule = Literal["string", "related", "random"]


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How an engine call ruins and recreates; `Settings` explains each field. The core has the same fields."""

    rule: Rule | None = None  #: None: the customers to remove are given
    removals: int = 15
    orders: int = 1
    sorted_orders: bool = False
    all_routes: bool = False
    insert_near: int = 0
    blink: float = 0.0
    open_route: float = 0.5
    open_cheaper: float = 0.0
    tails: int = 0
    tails_share: float = 1.0
    serve_bonus: float = 0.0
    weigh_unserved: bool = False
    serve_all: bool = False  #: insert optional customers as if they were required
    regions: int = 1  #: parts into which `improve` splits each solution; it makes K steps in each, and merges them
    string_average: float = 10.0
    string_longest: int = 10
    string_split: float = 0.5
    string_depth: float = 0.01


class View(NamedTuple):
    """The current solutions, for a policy: (chains, N+1) int32, arrays or tensors.

    Unserved customers have the depot (0) on both sides and route -1; padding has the same.
    """

    previous: Array
    next: Array
    route: Array


class Regions(NamedTuple):
    """The parts of the current solutions, while `Engine.improve` works in regions. Arrays or tensors, int32.

    Parts `c * regions` … are those of chain c.
    """

    counts: Array  #: (parts,) customers that each part has
    customers: Array  #: (parts, N) route by route, the unserved ones last; without meaning from `counts` on


Removals: TypeAlias = Array | Callable[[Regions], Array] | None


class ChainStats(NamedTuple):
    """Numbers of all chains after an engine call. Costs are in units of the problem.

    An unserved required customer costs more than any solution that serves it.
    """

    costs: Floats  #: (chains,) of the current solutions
    best_costs: Floats  #: (chains,) of the best solutions
    missing: Ints  #: (chains,) required customers that the best solutions leave unserved
    missing_now: Ints  #: (chains,) those that the current solutions leave unserved
    made: int  #: reconstructions by the last `improve`, of all chains; fewer than asked for if time was up


class Sized(Protocol):
    """The part of a problem that is needed after its chains have started."""

    @property
    def customers(self) -> int: ...
    @property
    def vehicles(self) -> int | None: ...


class State(Protocol):
    """The chains that an engine holds: a current and a best solution each."""

    problem_of: Ints  #: (chains,) index of the problem of each chain

    @property
    def problems(self) -> Sequence[Sized]: ...

    def stats(self) -> ChainStats:
        """Return the numbers of all chains. Waits for a GPU."""

    def snapshot(self) -> Callable[[], ChainStats]:
        """Return a function that waits for the calls made so far, not for later ones, and returns their stats."""


S = TypeVar("S", bound=State)


class EngineOf(Protocol[S]):
    """Verbs over a batch of chains. A `state` is what `start` of the same engine returned.

    `deadline` is a time of `time.perf_counter` at which long work ends, unfinished.
    """

    name: str
    runs_ahead: bool  #: whether verbs return before their work is done, as on a GPU

    def start(
        self, problems: Sequence[Problem], problem_of: npt.ArrayLike, init: Init = None, *,
        first: int | Ints = 0, precompile: Sequence[Recipe] = (),
    ) -> S:  # fmt: skip
        """Return chains with a first solution each; chain i belongs to `problems[problem_of[i]]`.

        The first solution is `init`, or its solution for the problem; if it is None, one route per customer, or, if
        the fleet is limited, no route.

        first: chains draw random numbers as chains `first`, `first + 1`, … of a batch, or, if it is an array
        (chains,), as the chains that it names. Part of a batch then finds what it would find within the batch.
        precompile: recipes of later calls. A GPU engine compiles their kernels in the background; a CPU engine
        allocates the memory of regions.
        """

    def construct(self, state: S, deadline: float | None) -> bool:
        """Replace the first solutions by savings in near-linear time. Return False, without effect, if it cannot."""

    def view(self, state: S, *, on_device: bool = False) -> View:
        """Return the current solutions, for a policy; `on_device`: as one tensor (3, chains, N+1), if it is a GPU."""

    def improve(
        self, state: S, recipe: Recipe, removed: Removals, temperature: Floats, seed: int, iteration: int, *,
        deadline: float | None = None,
    ) -> None:  # fmt: skip
        """Make K steps in sequence per chain, accepted by annealing; `ChainStats.made` counts them.

        With regions, K steps in each part of each solution. Part i of chain c draws random numbers as chain
        `c * regions + i`.

        removed: (chains, K, M) customers to remove, or None if the recipe has a rule. Zeros at the end of a list of M
        stand for none: it is shorter. With regions and without a rule: a function of the parts that returns
        (parts, up to K, M). Customers of other parts in a list are not removed.
        temperature: (chains, K) float64, in units of the problem. If all steps of a chain have the same one, pass what
        `np.broadcast_to` returns: then a GPU is sent one number per chain.
        """

    def evaluate(
        self, state: S, recipe: Recipe, removed: Array | None, rollouts: int, seed: int, iteration: int,
        keep_best: bool, *, always: bool = False,
    ) -> Array:  # fmt: skip
        """Return (chains, K) float64: by how much each of K steps from the same solution would change its cost.

        With `keep_best`, the best of the K is carried out if it improves the solution; with `always`, also if it does
        not. There is no annealing.
        """

    def exchange(self, state: S, reach: Floats, seed: int, iteration: int, *, groups: int = 1) -> None:
        """Let chains that are too far behind continue from the current solution of a better one of their problem.

        reach: (problems,) float64, how far above the lowest cost of its chains one may be, in units of the problem.
        A chain beyond that draws one of those within.
        groups: of the chains of a problem, all of one size; a chain exchanges within its group only.
        """

    def set_prices(self, state: S, prices: Floats) -> None:
        """From now on judge steps, rollouts and exchanges as if an unserved required customer cost so much.

        prices: (problems,) float64 above 0, in units of the problem; infinity for the cost that it has, which is more
        than all else. Costs of solutions, and which one is the best, do not change.
        """

    def tours(self, state: S, *, best: bool = True) -> list[Ints]:
        """Return the best (or the current) solution of each chain: its routes one after another, each ended by a 0."""

    def restart(self, state: S, tours: Sequence[Ints | None]) -> None:
        """Make feasible tours the current and the best solutions of the chains, one each; None leaves a chain as it
        is."""

    def export(self, state: S, chain: int, *, best: bool = True) -> Solution:
        """Return the best (or the current) solution of a chain as routes."""


Engine: TypeAlias = EngineOf[Any]  #: an engine with states of any type
