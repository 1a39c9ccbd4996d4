"""Settings of a search. Defaults live here alone; command help and reference page are generated from them.

What solvers and presets set differently is in presets.py.
"""

from dataclasses import dataclass, fields, replace
from typing import Any, Literal, get_args

from ndsvrp.engine.base import Recipe
from ndsvrp.errors import NdsError
from ndsvrp.records import documented, require_record
from ndsvrp.ruin import RULES

RuinName = Literal["string", "related", "random", "policy", "function"]
Scope = Literal["touched", "all"]
TemperatureScale = Literal["side", "absolute"]
SISR_BLINK = 0.01  # of Christiaens & Vanden Berghe (2020)


@dataclass(frozen=True, kw_only=True)
class Settings:
    """A configuration of augmented simulated annealing. SISRs, NDS and the hybrid of rules are three of them.

    docs/settings.md lists all fields with their values for each solver.
    """

    ruin: RuinName = documented(
        "string", "How customers are chosen for removal: a rule by name, the learned policy, or your own function."
    )
    chains: int = documented(
        8,
        "A: chains searched side by side, one per augmentation of the instance; on a GPU 128 by default, 256 with "
        "hybrid.",
    )
    regions: int = documented(
        1,
        "Chains that improve one solution together, each in a region of its own; a divisor of chains. For large "
        "problems, with rules and with the learned policy.",
    )
    rollouts: int = documented(200, "K: ruin and recreate steps per chain and iteration, in sequence.")
    population: int = documented(
        0,
        "Solutions that are annealed side by side, then recombined by crossover, on a CPU and with rules; 0: none. "
        "Chains are then the children of an iteration.",
    )
    islands: int = documented(
        0,
        "Groups of chains that are annealed without exchange between them; their best solutions are then recombined, "
        "and every chain improves a child at a time. With rules and the learned policy; 0: none.",
    )
    anneal_share: float = documented(
        0.3, "Share of a search that anneals the population, or the islands, before they are recombined."
    )
    tournament: int = documented(1, "Solutions of the population drawn for each parent of a child; the cheapest is it.")
    child_steps: int = documented(10, "Steps that improve a child, per customer.")
    warm: float = documented(0.005, "Temperature at which the steps of a child start, if it is above cold.")
    least_apart: float = documented(
        0.2,
        "Solutions of the population are too close if they differ in less than this share of the pairs of a customer "
        "and its neighbour; it falls to 0 at the end of the search.",
    )
    rule_steps: int = documented(
        0,
        "Steps per chain and iteration by string removal, as SISRs makes them, after the K steps of the learned policy "
        "or of your own function.",
    )
    removals: int = documented(
        15, "M: customers removed by one ruin, or all if there are fewer; string removal uses string_average instead."
    )
    orders: int = documented(5, "Insertion orders tried per ruin; the best reconstruction counts.")
    sorted_orders: bool = documented(False, "Insert in SISRs' sort orders, not in the ruin's order and random ones.")
    scope: Scope = documented("touched", "Routes considered for insertion: those with removed customers, or all.")
    insert_near: int = documented(
        0,
        "Scope all: a customer is inserted beside one of so many nearest ones; if it has to be served and fits beside "
        "none of them, beside any of its 256 nearest; 0: at any position.",
    )
    blink: float = documented(0.0, "Probability that insertion skips a position, as in SISRs.")
    open_route: float = documented(0.5, "Probability that an optional customer may open a route that does not pay.")
    open_cheaper: float = documented(
        0.0, "Probability that a reconstruction opens a route for a customer if that is cheaper than any position."
    )
    tails: int = documented(
        0, "Nearest customers of a random one with whose routes its route may exchange tails; 0: none."
    )
    tails_share: float = documented(1.0, "Share of the steps before which an exchange of tails is tried.")
    serve_bonus: float = documented(
        0.0, "Bonus for each optional customer that is served, times the temperature; costs are without it."
    )
    weigh_unserved: bool = documented(
        False,
        "Where vehicles are too few for all required customers, rather leave those of small demand unserved, which "
        "fit sooner.",
    )
    unserved_price: float = documented(
        0.0,
        "What leaving a required customer unserved costs at first when steps are accepted, in sides of the bounding "
        "box: it adapts, so that the search crosses the limit on vehicles again and again; 0: more than all else.",
    )
    start_served: bool = documented(False, "Start from a solution that serves as many optional customers as possible.")
    start_savings: bool = documented(
        False, "Start from savings (Clarke & Wright); done anyway if there is little time for the size."
    )
    start_packed: bool = documented(
        False,
        "Where vehicles are too few for all required customers at the start, pack these by their demands; only where "
        "nothing but the capacity limits routes, and without a given first solution.",
    )
    count_absences: bool = documented(
        False,
        "Where vehicles are too few for all required customers at the start, search for a solution that serves them: "
        "those that stay unserved in many steps have priority. At most half of the time.",
    )
    fewest_vehicles: bool = documented(
        False,
        "Minimize the number of vehicles first, then the cost: fewer and fewer of them are tried in at most half of "
        "the time. Not if all customers are optional.",
    )
    start_rounds: int = documented(
        100, "Rounds that improve the start, each with a random quarter of the customers; 0: one route per customer."
    )
    free_fleet: float = documented(
        0.0, "Share of a search that ignores the limit on vehicles, if no customer is required."
    )
    hot: float = documented(0.1, "Temperature at the start, for a bounding box of side 1.")
    cold: float = documented(0.001, "Temperature at the end, for a bounding box of side 1.")
    temperature_scale: TemperatureScale = documented(
        "side", "Unit of the temperatures: the side of the bounding box, or absolute, the unit of lengths."
    )
    threshold: float = documented(
        15.0, "delta: a chain that is worse than the best by more than delta x temperature is replaced."
    )
    string_average: float = documented(10.0, "String removal: mean number of customers removed.")
    string_longest: int = documented(10, "String removal: longest string removed from one route.")
    string_split: float = documented(0.5, "String removal: probability that a substring stays in its route.")
    string_depth: float = documented(0.01, "String removal: probability of making that substring one customer longer.")

    @property
    def solutions(self) -> int:
        """Return how many solutions are held: one per chain, one per group that shares regions, or a population."""
        return self.population or self.chains // self.regions

    def recipe(self, customers: int, *, by_rule: bool) -> Recipe:
        """Return what an engine needs of these settings, for a number of customers."""
        shared = {f.name: getattr(self, f.name) for f in fields(Recipe) if hasattr(self, f.name)}
        shared |= {"removals": min(self.removals, customers), "all_routes": self.scope == "all"}
        return Recipe(rule=self.ruin if by_rule else None, **shared)  # type: ignore[arg-type]

    def rule_recipe(self, customers: int) -> Recipe:
        """Return what an engine needs for `rule_steps`."""
        by_sisr = {"rule": "string", "orders": 1, "sorted_orders": True, "all_routes": True, "blink": SISR_BLINK}
        return replace(self.recipe(customers, by_rule=False), **by_sisr)  # type: ignore[arg-type]

    def __post_init__(self) -> None:
        require_record(self, RANGES)
        if not 0 < self.cold <= self.hot < float("inf"):
            raise NdsError(f"temperatures must satisfy 0 < cold <= hot, got {self.cold} and {self.hot}")
        if self.chains % self.regions:
            raise NdsError(f"chains must be a multiple of regions, got {self.chains} and {self.regions}")
        if self.population > 0 and self.ruin not in RULES:
            raise NdsError(f"a population is for rules, not for the ruin '{self.ruin}'")
        if self.population > 0 and self.regions > 1:
            raise NdsError(f"a population has whole solutions: regions must be 1, got {self.regions}")
        if self.population > 0 and self.unserved_price > 0:
            raise NdsError("a population keeps the limit on vehicles: give either population or unserved_price")
        if self.population == 1:
            raise NdsError("a population has at least 2 solutions, got 1")
        if self.islands > 0 and self.population > 0:
            raise NdsError("islands and population are two ways to the same: give one of them")
        if self.islands == 1 or (self.islands > 0 and self.solutions % self.islands):
            raise NdsError(f"islands are at least 2 and divide the {self.solutions} solutions, got {self.islands}")
        if self.rule_steps > 0 and self.ruin in RULES:
            raise NdsError(f"rule_steps are for the learned policy or a function, not for the ruin '{self.ruin}'")


RANGES: dict[str, tuple[Any, ...]] = {
    "ruin": get_args(RuinName), "scope": get_args(Scope), "chains": (1, 2**20), "regions": (1, 2**10),
    "temperature_scale": get_args(TemperatureScale), "start_rounds": (0, 2**20),
    "rollouts": (1, 2**20), "rule_steps": (0, 2**20), "population": (0, 256), "islands": (0, 256),
    "anneal_share": (0, 0.99), "tournament": (1, 3), "child_steps": (1, 1000), "warm": (0, 1000), "least_apart": (0, 1),
    "removals": (1, 2**20), "orders": (1, 64), "blink": (0, 0.999), "open_route": (0, 1),
    "open_cheaper": (0, 1), "insert_near": (0, 256), "free_fleet": (0, 1), "serve_bonus": (0, 1000),
    "unserved_price": (0, 2), "tails": (0, 256),
    "tails_share": (0, 1), "threshold": (0, float("inf")),
    "string_average": (1, 2**20), "string_longest": (1, 2**20), "string_split": (0, 1), "string_depth": (0, 0.999),
}  # fmt: skip
