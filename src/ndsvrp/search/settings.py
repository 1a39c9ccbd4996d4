"""Settings of a search: defaults live here alone; command help and reference page are made from them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, get_args

from ndsvrp.errors import NdsError
from ndsvrp.problem import Problem
from ndsvrp.records import documented, require_record

Ruin = Literal["string", "related", "random", "policy", "function"]
Scope = Literal["touched", "all"]


@dataclass(frozen=True, kw_only=True)
class Settings:
    """One configuration of augmented simulated annealing. SISRs and NDS are two of them."""

    ruin: Ruin = documented(
        "string", "What takes solutions apart: a rule by name, the learned policy, or a function of one's own."
    )
    chains: int = documented(
        8, "A: solutions searched side by side, one per augmentation of the instance; on a GPU 128 by default."
    )
    rollouts: int = documented(200, "K: deconstructions applied in sequence by one improvement step.")
    removals: int = documented(
        15,
        "M: customers taken out by one deconstruction (fewer if there are fewer); "
        "string removal goes by string_average instead.",
    )
    orders: int = documented(5, "Reinsertion orders tried per deconstruction; the best reconstruction counts.")
    sorted_orders: bool = documented(False, "Reinsert in SISRs' sort orders instead of the ruin's own and random ones.")
    scope: Scope = documented("touched", "Routes considered for reinsertion: those customers left, or all.")
    blink: float = documented(0.0, "Probability with which reinsertion overlooks a position.")
    open_route: float = documented(0.5, "Probability with which an optional customer opens a route that does not pay.")
    hot: float = documented(0.1, "Temperature at the start, for a bounding box of side 1.")
    cold: float = documented(0.001, "Temperature at the end, for a bounding box of side 1.")
    threshold: float = documented(
        15.0, "delta: a chain worse than the best by more than delta x temperature is replaced."
    )
    string_average: float = documented(10.0, "String removal: customers taken out on average.")
    string_longest: int = documented(10, "String removal: longest string taken out of one route.")
    string_split: float = documented(0.5, "String removal: probability of leaving a stretch inside a string in place.")
    string_depth: float = documented(
        0.01, "String removal: probability of lengthening that stretch by one more customer."
    )

    def __post_init__(self) -> None:
        require_record(self, RANGES)
        if not 0 < self.cold <= self.hot < float("inf"):
            raise NdsError(f"temperatures must satisfy 0 < cold <= hot, got {self.cold} and {self.hot}")


RANGES: dict[str, tuple[Any, ...]] = {
    "ruin": get_args(Ruin),
    "scope": get_args(Scope),
    "chains": (1, 2**20),
    "rollouts": (1, 2**20),
    "removals": (1, 2**20),
    "orders": (1, 64),
    "blink": (0, 0.999),
    "open_route": (0, 1),
    "threshold": (0, float("inf")),
    "string_average": (1, 2**20),
    "string_longest": (1, 2**20),
    "string_split": (0, 1),
    "string_depth": (0, 0.999),
}


def paper(problem: Problem) -> Settings:
    """The paper's test configuration (its section 5.2), with a rule that takes out M customers as its policy does."""
    return Settings(ruin="related", chains=128 if problem.has_prizes else 8)


def sisr() -> Settings:
    """SISRs (Christiaens & Vanden Berghe 2020): its ruin, recreate and schedule."""
    return Settings(ruin="string", chains=1, rollouts=1000, orders=1, sorted_orders=True, scope="all", blink=0.01)


PRESETS: dict[str, Callable[[Problem], Settings]] = {"default": lambda problem: Settings(), "paper": paper}
