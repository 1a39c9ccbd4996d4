"""The settings of each solver and preset, for a problem and a device, with the measured constants behind them."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from ndsvrp.constraints import CAPACITY, constraints_of
from ndsvrp.constraints.fleet import fewest_vehicles
from ndsvrp.problem import Problem
from ndsvrp.search.fleet import may_ignore_fleet
from ndsvrp.search.settings import SISR_BLINK, Settings
from ndsvrp.variants import variant_of

# By rules, on any device. docs/findings.md says how each number was measured.
TAILS: dict[str, Any] = {"tails": 20, "tails_share": 0.3}
LONG_ROUTE = 25  # customers that a vehicle carries; with windows, shorter routes may cost less
OPEN_CHEAPER = 0.5  # with windows and long routes
SERVE_BONUS = 0.3  # with prizes, windows and long routes
FREE_FLEET = 0.3  # with limited vehicles and no required customer
UNSERVED_PRICE = 0.5  # with as few vehicles as possible, windows and short routes, without regions, on a CPU
LARGE = 2500  # customers from which savings are a better start than one route per customer
LARGE_HOT = 1.5  # times 1 / sqrt(N): where the annealing of such a start begins
REGION = 150, 8  # customers and routes that a region should have at least
CPU_CHAINS = 4, 32  # without regions, and at most in regions; `fill_cores` adds others to timed searches

# Populations, on a CPU.
SMALL = 300  # customers below which a population is better than chains
POPULATION, POPULATION_HOT = 16, 0.03  # solutions that are recombined, and where their annealing starts
MIDDLE = 500  # customers up to which a population is better if there is time, and routes are not too short
TIME_TO_RECOMBINE, SHORT_ROUTE = 0.1, 6  # from SMALL on: seconds of a core per customer, and customers of a vehicle
MIDDLE_POPULATION = 8, 64  # solutions from SMALL on: one per core, but at least and at most these
MIDDLE_CHILDREN: dict[str, Any] = {"anneal_share": 0.5, "tournament": 2, "child_steps": 100, "warm": 0.01}

# Islands on a CPU, with limited vehicles and no required customer.
CPU_ISLANDS, CPU_ISLAND_CHAINS = 8, 16  # chains: one per core, but at least these
MOST_ON_ISLANDS = 600  # customers up to which they were measured
CPU_ISLAND_TIME = 0.015  # seconds of a core per customer from which islands pay

# Searches on a GPU.
GPU_CHAINS = 128, 256  # with the scope `touched` and `all`: one or two blocks per multiprocessor of a large GPU
GPU_HOT = 0.03  # with a policy and prizes
INSERT_NEAR = 32  # by rules, for routes that a GPU can link
POLICY_REGIONS = 4  # with fewer, a policy searches whole solutions
RULE_STEPS = 400  # in regions: about as long as the steps of a policy take, its network included
GPU_TIME_TO_RECOMBINE = 0.02, 0.03  # seconds per customer from which islands pay, by policy and by rules
MOST_ISLANDS = 16  # each has two chains or more
ISLAND_CHILDREN: dict[str, Any] = {"anneal_share": 0.5, "tournament": 2, "child_steps": 30, "warm": 0.01}


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
        ruin="string",
        chains=1,
        rollouts=1000,
        orders=1,
        sorted_orders=True,
        scope="all",
        blink=SISR_BLINK,
        start_rounds=0,
    )


def hybrid(problem: Problem) -> Settings:
    """Return SISRs with exchanges of tails, and with what long routes, prizes and size need: docs/findings.md."""
    chains, most = CPU_CHAINS
    regions = min(_regions(problem), most)
    long_windows, is_limited = has_long_windows(problem), problem.vehicles is not None
    settings = replace(
        sisr(), **TAILS, chains=regions if regions > 1 else chains, regions=regions,
        open_cheaper=OPEN_CHEAPER if long_windows else 0.0, start_served=problem.has_prizes,
        serve_bonus=SERVE_BONUS if long_windows and problem.has_prizes else 0.0,
        free_fleet=FREE_FLEET if may_ignore_fleet(problem) else 0.0,
        weigh_unserved=is_limited, start_packed=is_limited, count_absences=is_limited,
    )  # fmt: skip
    if problem.customers < LARGE:
        return settings
    return replace(settings, start_savings=True, hot=LARGE_HOT / problem.customers**0.5)


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
    few, most = MIDDLE_POPULATION
    return min(max(few, cores), most)


def with_population(settings: Settings, problem: Problem, size: int) -> Settings:
    """Return the settings with a population in place of chains or regions."""
    children = {} if problem.customers < SMALL else MIDDLE_CHILDREN
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


def near_on_gpu(settings: Settings, problem: Problem) -> int:
    """Return `insert_near` of a search by rules on a GPU: where routes can be linked, they make more steps."""
    is_plain = constraints_of(problem) == (CAPACITY,) and problem.distance is None
    is_sisr = settings.ruin == "string" and settings.scope == "all" and settings.orders == 1
    return INSERT_NEAR if is_plain and is_sisr and 2 * settings.string_average <= INSERT_NEAR else 0


def islands_on_cpu(problem: Problem, core_seconds: float | None, cores: int) -> dict[str, int]:
    """Return islands and chains by which `hybrid` searches a problem on a CPU; nothing: regions or chains gain more.

    `core_seconds`: as for `population_for`.
    """
    is_whole = problem.customers <= MOST_ON_ISLANDS and _regions(problem) == 1
    if (
        not (is_whole and may_ignore_fleet(problem))
        or core_seconds is None
        or core_seconds < CPU_ISLAND_TIME * problem.customers
    ):
        return {}
    chains = max(CPU_ISLAND_CHAINS, -(-cores // CPU_ISLANDS) * CPU_ISLANDS)
    return {"islands": CPU_ISLANDS, "chains": chains, "regions": 1}


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
    islands = min(MOST_ISLANDS, settings.solutions // 2)
    return islands if islands > 1 and settings.solutions % islands == 0 else 0


def price_for(problem: Problem) -> float:
    """Return the price of unserved customers with which a search with the fewest vehicles begins; 0: it gains nothing
    by one."""
    is_whole = _regions(problem) == 1
    return UNSERVED_PRICE if problem.has_windows and not has_long_windows(problem) and is_whole else 0.0


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
