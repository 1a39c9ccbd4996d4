"""Settings of a search. Defaults live here alone; command help and reference page are generated from them."""

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, get_args

import numpy as np

from ndsvrp.constraints.fleet import fewest_vehicles
from ndsvrp.engine.base import Recipe
from ndsvrp.errors import NdsError
from ndsvrp.problem import Problem
from ndsvrp.records import documented, require_record
from ndsvrp.ruin import RULES
from ndsvrp.search.fleet import may_ignore_fleet
from ndsvrp.variants import variant_of

RuinName = Literal["string", "related", "random", "policy", "function"]
Scope = Literal["touched", "all"]
TemperatureScale = Literal["side", "absolute"]


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
        "and every chain improves a child at a time. For a GPU, with rules and the learned policy; 0: none.",
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
    start_served: bool = documented(False, "Start from a solution that serves as many optional customers as possible.")
    start_savings: bool = documented(
        False, "Start from savings (Clarke & Wright); done anyway if there is little time for the size."
    )
    start_packed: bool = documented(
        False,
        "Where vehicles are too few for all required customers at the start, pack these by their demands; only where "
        "nothing but the capacity limits routes, and without a given first solution.",
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
        """Return what an engine needs of these settings, for so many customers."""
        shared = {f.name: getattr(self, f.name) for f in fields(Recipe) if hasattr(self, f.name)}
        shared |= {"removals": min(self.removals, customers), "all_routes": self.scope == "all"}
        return Recipe(rule=self.ruin if by_rule else None, **shared)  # type: ignore[arg-type]

    def rule_recipe(self, customers: int) -> Recipe:
        """Return what an engine needs for `rule_steps`."""
        by_sisr = {"rule": "string", "orders": 1, "sorted_orders": True, "all_routes": True, "blink": sisr().blink}
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
    "open_cheaper": (0, 1), "free_fleet": (0, 1), "serve_bonus": (0, 1000), "tails": (0, 256), "tails_share": (0, 1),
    "threshold": (0, float("inf")),
    "string_average": (1, 2**20), "string_longest": (1, 2**20), "string_split": (0, 1), "string_depth": (0, 0.999),
}  # fmt: skip


def paper(problem: Problem) -> Settings:
    """Return the paper's test configuration (section 5.2), with a rule that removes M customers as its policy does."""
    return Settings(ruin="related", chains=128 if problem.has_prizes else 8)


def paper_text(problem: Problem) -> Settings:
    """Return the paper's test configuration, where text and code differ by its text: docs/paper.md."""
    return replace(paper(problem), scope="all", start_rounds=0, temperature_scale="absolute")


def paper_code(problem: Problem) -> Settings:
    """Return the paper's test configuration, where text and code differ by the authors' code: docs/paper.md."""
    return replace(paper(problem), scope="touched", start_rounds=100, temperature_scale="absolute")


def sisr() -> Settings:
    """Return SISRs (Christiaens & Vanden Berghe 2020): its ruin, recreate and schedule."""
    return Settings(
        ruin="string", chains=1, rollouts=1000, orders=1, sorted_orders=True, scope="all", blink=0.01, start_rounds=0
    )


TAILS: dict[str, Any] = {"tails": 20, "tails_share": 0.3}
SERVE_BONUS = 0.3  # with prizes and long routes: docs/findings.md
FREE_FLEET = 0.3  # with limited vehicles: docs/findings.md
LONG_ROUTE = 25  # customers that a vehicle carries; with windows, shorter routes may cost less
REGION = 150, 8  # customers and routes that a region should have at least
CPU_CHAINS = 4, 32  # without regions, and at most in regions; `fill_cores` adds others to timed searches
POPULATION, POPULATION_HOT = 16, 0.03  # solutions that are recombined, and where their annealing starts
SMALL = 300  # customers below which a population is better than chains: docs/findings.md
MIDDLE = 500  # customers up to which it is better if there is time, and routes are not too short
TIME_TO_RECOMBINE, SHORT_ROUTE = 0.1, 6  # from SMALL on: seconds of a core per customer, and customers of a vehicle
SOLUTIONS = 8, 64  # of such a population: at least, and at most, on so many cores
LONG_CHILDREN: dict[str, Any] = {"anneal_share": 0.5, "tournament": 2, "child_steps": 100, "warm": 0.01}
LARGE = 2500  # customers from which savings are a better start than one route per customer
POLICY_REGIONS = 4  # with fewer, a policy searches whole solutions: docs/findings.md
RULE_STEPS = 400  # in regions: about as long as the steps of a policy take, its network included
GPU_CHAINS = 128, 256  # with the scope `touched` and `all`: one or two blocks per multiprocessor of a large GPU
GPU_HOT = 0.03  # with a policy and prizes: docs/findings.md
GPU_TIME_TO_RECOMBINE = 0.02, 0.03  # seconds per customer from which islands pay, by policy and by rules
ISLANDS = 16  # at most: each has two chains or more
GPU_CHILDREN: dict[str, Any] = {"anneal_share": 0.5, "tournament": 2, "child_steps": 30, "warm": 0.01}


def hybrid(problem: Problem) -> Settings:
    """Return SISRs with exchanges of tails, and with what long routes, prizes and size need: docs/findings.md."""
    chains, most = CPU_CHAINS
    regions = min(_regions(problem), most)
    settings = replace(
        sisr(), **TAILS, open_cheaper=0.5 if has_long_windows(problem) else 0.0, start_served=problem.has_prizes,
        serve_bonus=SERVE_BONUS if problem.has_prizes and has_long_windows(problem) else 0.0,
        free_fleet=FREE_FLEET if may_ignore_fleet(problem) else 0.0, weigh_unserved=problem.vehicles is not None,
        start_packed=problem.vehicles is not None,
        chains=regions if regions > 1 else chains, regions=regions,
    )  # fmt: skip
    if problem.customers < LARGE:
        return settings
    return replace(settings, start_savings=True, hot=1.5 / problem.customers**0.5)


def population_for(problem: Problem, core_seconds: float | None = None, cores: int = 1) -> int:
    """Return the population by which `hybrid` searches a problem on a CPU; 0: chains find as much: docs/findings.md.

    `core_seconds`: time of all cores together, if only a time limit ends the search. Then the population may depend on
    the number of cores.
    """
    name, is_small = variant_of(problem).name, problem.customers < SMALL
    gains = name == "cvrp" or (name == "vrptw" and is_small and has_long_windows(problem))
    if not gains or problem.customers > MIDDLE or not _has_spare_vehicles(problem):
        return 0
    if is_small:
        return POPULATION
    if core_seconds is None or core_seconds < TIME_TO_RECOMBINE * problem.customers or _carried(problem) < SHORT_ROUTE:
        return 0
    few, most = SOLUTIONS
    return min(max(few, cores), most)


def with_population(settings: Settings, problem: Problem, size: int) -> Settings:
    """Return the settings with a population in place of chains or regions."""
    children = {} if problem.customers < SMALL else LONG_CHILDREN
    return replace(settings, chains=CPU_CHAINS[0], regions=1, population=size, hot=POPULATION_HOT, **children)


def fill_cores(settings: Settings, problem: Problem, cores: int) -> Settings:
    """Return the settings with more solutions, or more children, so that every core has a chain: docs/findings.md.

    Large problems have enough regions, and a start that takes long for each solution.
    """
    if settings.population > 0:
        return replace(settings, chains=max(settings.chains, cores))
    solutions = max(settings.solutions, cores // settings.regions)
    return settings if problem.customers >= LARGE else replace(settings, chains=solutions * settings.regions)


def on_gpu(settings: Settings, problem: Problem, is_learned: bool) -> Settings:
    """Return the settings with as many chains as a GPU takes, and with what a learned policy needs beside it."""
    few, many = GPU_CHAINS
    chains = many if settings.scope == "all" and not is_learned else few
    regions = min(_regions(problem), chains)
    regions = 1 << (regions.bit_length() - 1)  # divides the chains
    if is_learned:
        hot = GPU_HOT if problem.has_prizes else settings.hot
        # A hot search forgets its start, and rounds that improve it would take up to a tenth of the time.
        savings = not problem.has_prizes
        settings = replace(settings, ruin="policy", chains=chains, hot=hot, start_savings=savings, **TAILS)
        return settings if regions < POLICY_REGIONS else replace(settings, regions=regions, rule_steps=RULE_STEPS)
    return replace(settings, chains=chains, regions=regions if settings.regions > 1 else 1)


def islands_for(settings: Settings, problem: Problem, seconds: float | None) -> int:
    """Return the islands by which a problem is searched on a GPU; 0: there is too little to gain: docs/findings.md.

    `seconds`: the time, if only a time limit ends the search.
    """
    by_policy, by_rules = GPU_TIME_TO_RECOMBINE
    is_learned = settings.ruin == "policy"
    if not is_learned and not (has_long_windows(problem) and problem.customers < LARGE):
        return 0
    needed = (by_policy if is_learned else by_rules) * problem.customers
    if seconds is None or seconds < needed or not _has_spare_vehicles(problem):
        return 0
    islands = min(ISLANDS, settings.solutions // 2)
    return islands if islands > 1 and settings.solutions % islands == 0 else 0


def has_long_windows(problem: Problem) -> bool:
    """Return whether there are windows, and vehicles may carry many customers."""
    return problem.has_windows and _carried(problem) > LONG_ROUTE


def _has_spare_vehicles(problem: Problem) -> bool:
    """Return whether there are more vehicles than the demand takes: children of full ones hardly ever fit the fleet."""
    return problem.vehicles is None or problem.vehicles > fewest_vehicles(problem)


def _carried(problem: Problem) -> float:
    """Return how many customers a vehicle can carry."""
    return problem.capacity * problem.customers / max(float(np.sum(problem.demand)), 1e-300)


def _regions(problem: Problem) -> int:
    """Return the number of regions that are large enough, by customers and by routes."""
    customers, routes = REGION
    return max(1, min(problem.customers // customers, int(problem.customers / _carried(problem)) // routes))


PRESETS: dict[str, Callable[[Problem], Settings]] = {
    "default": lambda problem: Settings(), "paper": paper, "paper-text": paper_text, "paper-code": paper_code
}  # fmt: skip
