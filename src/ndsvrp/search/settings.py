"""Settings of a search. Defaults live here alone; command help and reference page are generated from them."""

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, get_args

import numpy as np

from ndsvrp.engine.base import Recipe
from ndsvrp.errors import NdsError
from ndsvrp.problem import Problem
from ndsvrp.records import documented, require_record
from ndsvrp.ruin import RULES

RuinName = Literal["string", "related", "random", "policy", "function"]
Scope = Literal["touched", "all"]


@dataclass(frozen=True, kw_only=True)
class Settings:
    """A configuration of augmented simulated annealing. SISRs, NDS and the hybrid of rules are three of them."""

    ruin: RuinName = documented(
        "string", "How customers are chosen for removal: a rule by name, the learned policy, or your own function."
    )
    chains: int = documented(
        8, "A: chains searched side by side, one per augmentation of the instance; on a GPU 128 by default."
    )
    regions: int = documented(
        1,
        "Chains that improve one solution together, each in a region of its own; a divisor of chains. For rules and "
        "large problems.",
    )
    rollouts: int = documented(200, "K: ruin and recreate steps per chain and iteration, in sequence.")
    removals: int = documented(
        15, "M: customers removed by one ruin, or all if there are fewer; string removal uses string_average instead."
    )
    orders: int = documented(5, "Insertion orders tried per ruin; the best reconstruction counts.")
    sorted_orders: bool = documented(False, "Insert in SISRs' sort orders, not in the ruin's order and random ones.")
    scope: Scope = documented("touched", "Routes considered for insertion: those with removed customers, or all.")
    blink: float = documented(0.0, "Probability that insertion skips a position, as in SISRs.")
    open_route: float = documented(0.5, "Probability that an optional customer may open a route that does not pay.")
    open_cheaper: float = documented(
        0.0, "Probability that a reconstruction opens a route for a customer if that is cheaper than any position."
    )
    tails: int = documented(
        0, "Nearest customers of a random one with whose routes its route may exchange tails; 0: none."
    )
    tails_share: float = documented(1.0, "Share of the steps before which an exchange of tails is tried.")
    start_served: bool = documented(False, "Start from a solution that serves as many optional customers as possible.")
    start_savings: bool = documented(
        False, "Start from savings (Clarke & Wright), on a CPU; done anyway if there is little time for the size."
    )
    hot: float = documented(0.1, "Temperature at the start, for a bounding box of side 1.")
    cold: float = documented(0.001, "Temperature at the end, for a bounding box of side 1.")
    threshold: float = documented(
        15.0, "delta: a chain that is worse than the best by more than delta x temperature is replaced."
    )
    string_average: float = documented(10.0, "String removal: mean number of customers removed.")
    string_longest: int = documented(10, "String removal: longest string removed from one route.")
    string_split: float = documented(0.5, "String removal: probability that a substring stays in its route.")
    string_depth: float = documented(0.01, "String removal: probability of making that substring one customer longer.")

    @property
    def solutions(self) -> int:
        """Return how many solutions the chains hold: one each, or one per group that shares regions."""
        return self.chains // self.regions

    def recipe(self, customers: int, *, by_rule: bool) -> Recipe:
        """Return what an engine needs of these settings, for so many customers."""
        shared = {f.name: getattr(self, f.name) for f in fields(Recipe) if hasattr(self, f.name)}
        shared |= {"removals": min(self.removals, customers), "all_routes": self.scope == "all"}
        return Recipe(rule=self.ruin if by_rule else None, **shared)  # type: ignore[arg-type]

    def __post_init__(self) -> None:
        require_record(self, RANGES)
        if not 0 < self.cold <= self.hot < float("inf"):
            raise NdsError(f"temperatures must satisfy 0 < cold <= hot, got {self.cold} and {self.hot}")
        if self.chains % self.regions:
            raise NdsError(f"chains must be a multiple of regions, got {self.chains} and {self.regions}")
        if self.regions > 1 and self.ruin not in RULES:
            raise NdsError(f"regions are for rules ({', '.join(RULES)}), not for the ruin '{self.ruin}'")


RANGES: dict[str, tuple[Any, ...]] = {
    "ruin": get_args(RuinName), "scope": get_args(Scope), "chains": (1, 2**20), "regions": (1, 2**10),
    "rollouts": (1, 2**20), "removals": (1, 2**20), "orders": (1, 64), "blink": (0, 0.999), "open_route": (0, 1),
    "open_cheaper": (0, 1), "tails": (0, 256), "tails_share": (0, 1), "threshold": (0, float("inf")),
    "string_average": (1, 2**20), "string_longest": (1, 2**20), "string_split": (0, 1), "string_depth": (0, 0.999),
}  # fmt: skip


def paper(problem: Problem) -> Settings:
    """Return the paper's test configuration (section 5.2), with a rule that removes M customers as its policy does."""
    return Settings(ruin="related", chains=128 if problem.has_prizes else 8)


def sisr() -> Settings:
    """Return SISRs (Christiaens & Vanden Berghe 2020): its ruin, recreate and schedule."""
    return Settings(ruin="string", chains=1, rollouts=1000, orders=1, sorted_orders=True, scope="all", blink=0.01)


LONG_ROUTE = 25  # customers that a vehicle carries; with windows, shorter routes may cost less


TAILS: dict[str, Any] = {"tails": 20, "tails_share": 0.3}
GPU_CHAINS = 128  # one thread block each: about as many as large GPUs have multiprocessors


def has_long_windows(problem: Problem) -> bool:
    """Return whether there are windows, and vehicles may carry many customers."""
    carried = problem.capacity * problem.customers / max(float(np.sum(problem.demand)), 1e-300)
    return problem.has_windows and carried > LONG_ROUTE


def hybrid(problem: Problem) -> Settings:
    """Return SISRs with exchanges of tails, and with what long routes and prizes need: docs/findings.md."""
    opens = 0.5 if has_long_windows(problem) else 0.0
    return replace(sisr(), **TAILS, open_cheaper=opens, start_served=problem.has_prizes)


def on_gpu(settings: Settings, is_learned: bool) -> Settings:
    """Return the settings with as many chains as a GPU takes, and with exchanges of tails beside a learned policy."""
    return replace(settings, chains=GPU_CHAINS, **(TAILS if is_learned else {}))


PRESETS: dict[str, Callable[[Problem], Settings]] = {"default": lambda problem: Settings(), "paper": paper}
