"""The core against the slow reference: route by route, tick by tick, numbering of routes and random draws included."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from ndsvrp import Problem, Solution
from ndsvrp.engine.base import Recipe
from ndsvrp.engine.cpu import CpuEngine, CpuState
from ndsvrp.engine.shared import make_instance
from ndsvrp.engine.ticks import Ticks
from ndsvrp.search.start import start
from parity.problems import SOURCES, VARIANTS, random_problem
from parity.reference import REQUIRED, Chain, Numbers, chain_key, minus_log

RULES = ("string", "related", "random")
COMBINATIONS = list(itertools.product(VARIANTS, SOURCES))
SOME_STEPS = Recipe(rule="random", removals=9, all_routes=True, open_route=0.3)


def assert_same(state: CpuState, chain: int, reference: Chain) -> None:
    engine = CpuEngine()
    assert [list(route) for route in engine.export(state, chain, best=False).routes] == reference.routes
    assert state.chains.costs()[chain] == reference.cost()
    assert [list(route) for route in engine.export(state, chain).routes] == reference.best
    assert state.chains.costs(best=True)[chain] == reference.best_cost


def in_ticks(problem: Problem, temperatures: np.ndarray) -> list[float]:
    return [float(t) for t in temperatures * Numbers(problem).per_unit]


def warmed_up(problem: Problem, seed: int) -> tuple[CpuState, Chain]:
    """A solution that a few hot steps have stirred, in both, seen as a fresh start."""
    engine = CpuEngine()
    state = start(engine, [problem], [0], seed, rounds=2)
    engine.improve(state, SOME_STEPS, None, np.full((1, 8), problem.side() * 0.1), seed, 0)
    routes = engine.export(state, 0, best=False)
    reference = Chain(Numbers(problem))
    reference.set_routes(routes.routes)
    return start(engine, [problem], [0], seed, init=routes), reference


# --- given removals ----------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(("variant", "source"), COMBINATIONS)
def test_given_removals(variant: str, source: str) -> None:
    engine = CpuEngine()
    for seed, (limited, scope) in enumerate(itertools.product((False, True), (False, True, False, True, False))):
        problem = random_problem(100 + seed, variant, source, vehicles=limited)
        state, reference = warmed_up(problem, seed)
        assert_same(state, 0, reference)
        rng = np.random.default_rng(seed)
        removals = int(rng.integers(1, problem.customers + 1))
        removed = np.array([[1 + rng.permutation(problem.customers)[:removals] for _ in range(6)]], np.int32)
        recipe = Recipe(removals=removals, orders=1 + seed % 3, all_routes=scope, open_route=0.5)
        temperatures = np.full((1, 6), problem.side() * [0.0, 0.1, 1e9][seed % 3])
        engine.improve(state, recipe, removed, temperatures, seed, 1)
        reference.improve(recipe, removed[0].tolist(), in_ticks(problem, temperatures[0]), chain_key(seed, 1, 0))
        assert_same(state, 0, reference)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("scope", [False, True])
def test_everybody_is_removed(variant: str, scope: bool) -> None:
    for seed, source in enumerate(SOURCES):
        problem = random_problem(200 + seed, variant, source, vehicles=seed % 2 == 0)
        state, reference = warmed_up(problem, seed)
        n = problem.customers
        order = 1 + np.random.default_rng(seed).permutation(n)
        removed = order.astype(np.int32).reshape(1, 1, n)
        recipe = Recipe(removals=n, all_routes=scope)
        CpuEngine().improve(state, recipe, removed, np.full((1, 1), 1e30), seed, 0)
        reference.improve(recipe, removed[0].tolist(), [1e300], chain_key(seed, 0, 0))
        assert_same(state, 0, reference)


# --- trajectories ------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(("variant", "source"), COMBINATIONS)
@pytest.mark.parametrize(
    ("limited", "limits", "cost"),
    [(False, False, False), (True, False, False), (False, True, False), (True, True, False), (False, False, True),
     (True, True, True)],
)  # fmt: skip
def test_short_trajectories(variant: str, source: str, limited: bool, limits: bool, cost: bool) -> None:
    """Start and steps of every kind, on problems of all sizes, also with limits on routes and a cost of vehicles."""
    engine = CpuEngine()
    for seed in range(6):
        problem = random_problem(seed, variant, source, vehicles=limited, limits=limits, vehicle_cost=cost)
        reference = Chain(Numbers(problem))
        state = start(engine, [problem], [0], seed, rounds=3)
        reference.start(seed, 0, 3, limited)
        assert_same(state, 0, reference)
        recipe = Recipe(
            rule=RULES[seed % 3],
            removals=1 + 2 * seed,
            orders=1 + seed % 2,
            sorted_orders=seed % 4 > 1,
            all_routes=seed % 2 == 1,
            insert_near=[0, 3, 5, 0, 0, 30][seed],
            blink=[0.0, 0.01, 0.3][seed // 2],
            open_route=[0.5, 0.0, 1.0][seed % 3],
            open_cheaper=[0.0, 1.0, 0.5, 0.0, 0.0, 0.5][seed],
            serve_bonus=[0.0, 0.7, 0.0, 0.2, 3.0, 0.0][seed],
            weigh_unserved=seed % 3 > 0,
            tails=[0, 0, 20, 3, 7, 1][seed],
            tails_share=[1.0, 0.5][seed % 2],
            string_average=[10.0, 3.7][seed % 2],
            string_depth=[0.01, 0.6][seed // 3],
        )
        temperatures = np.full((1, 12), problem.side() * 0.03)
        for iteration in (1, 2):
            if limited:
                set_price(engine, state, reference, problem.side() * [0.3, 0.002, np.inf][(seed + iteration) % 3])
            engine.improve(state, recipe, None, temperatures, seed, iteration)
            reference.improve(recipe, None, in_ticks(problem, temperatures[0]), chain_key(seed, iteration, 0))
            assert_same(state, 0, reference)


def set_price(engine: Any, state: Any, reference: Chain, price: float) -> None:
    """Set the price of unserved required customers in both."""
    engine.set_prices(state, np.array([price]))
    ticks = int(min(price * reference.numbers.per_unit, 2.0**57))
    reference.relief = max(0, reference.numbers.missing - ticks)


@pytest.mark.parametrize(("variant", "source"), [("cvrp", "round"), ("vrptw", "dimacs"), ("pcvrptw", "asymmetric")])
def test_a_price_lets_required_customers_stay_unserved(variant: str, source: str) -> None:
    """Cheap at first, dear at last: solutions lose required customers and serve them again."""
    engine, missing, recipe = CpuEngine(), [], replace(LONG[0][1], tails=20)
    for seed in range(3):
        problem = random_problem(seed, variant, source, customers=24, vehicles=8, mixed=True)
        reference = Chain(Numbers(problem))
        state: Any = start(engine, [problem], [0], seed, rounds=1)
        reference.start(seed, 0, 1, True)
        for iteration, price in enumerate((0.001, 0.1, 100.0)):
            set_price(engine, state, reference, price * problem.side())
            temperatures = np.full((1, 15), 0.05 * problem.side())
            engine.improve(state, recipe, None, temperatures, seed, iteration)
            reference.improve(recipe, None, in_ticks(problem, temperatures[0]), chain_key(seed, iteration, 0))
            assert_same(state, 0, reference)
            missing.append(int(state.stats().missing_now[0]))
    assert sum(missing[::3]) > sum(missing[2::3])


@pytest.mark.parametrize(("variant", "source"), [("cvrp", "round"), ("vrptw", "dimacs"), ("pcvrptw", "asymmetric")])
def test_absences(variant: str, source: str) -> None:
    """Steps judged by who was absent how often, until all are served or steps are over, in two calls.

    An absence of 2^50 or 2^56 ticks halves the counts now and then, or in most steps, so that no sum overflows.
    """
    engine, recipe, seed, made = CpuEngine(), LONG[2][1], 5, []
    for number, unit in enumerate((1 << 36, 1 << 50, 1 << 56)):
        problem = random_problem(number, variant, source, customers=24, vehicles=3, mixed=True)
        state = engine.start([problem], [0, 0], Solution([]), first=3)
        reference = [Chain(Numbers(problem)), Chain(Numbers(problem))]
        hot = np.full(2, 0.1 * problem.side())
        for steps in (range(20), range(20, 60)):
            engine.serve_required(state, recipe, hot, unit, steps, seed)
        for chain, slow in enumerate(reference):
            slow.set_routes([])
            made.append(slow.serve_required(recipe, float(hot[0] * state.per_unit[0]), unit, 60, seed, 3 + chain))
            routes = engine.export(state, chain, best=False).routes
            assert [list(route) for route in routes] == slow.routes
            assert state.chains.missing()[chain] == sum(slow.numbers.prize[c] == REQUIRED for c in slow.absent)
    assert max(made) == 60


def test_long_routes_with_windows() -> None:
    """Routes of more than `kShort` customers (scan.hpp), of which few positions are in time."""
    random = np.random.default_rng(5)
    ready = random.uniform(1.0, 10.0, 50)
    problem = Problem(
        demand=np.r_[0.0, np.ones(50)], capacity=40.0, coordinates=random.random((51, 2)),
        windows=np.vstack([[0.0, 20.0], np.stack([ready, np.minimum(18.0, ready + random.uniform(4.0, 12.0, 50))], 1)]),
        service=np.r_[0.0, np.full(50, 0.01)],
    )  # fmt: skip
    recipe = Recipe(rule="string", sorted_orders=True, all_routes=True, blink=0.01, tails=20)
    engine, reference = CpuEngine(), Chain(Numbers(problem))
    state = start(engine, [problem], [0], 1, rounds=3)
    reference.start(1, 0, 3, False)
    temperatures = np.full((1, 60), problem.side() * 0.01)
    for iteration in (1, 2):
        engine.improve(state, recipe, None, temperatures, 1, iteration)
        reference.improve(recipe, None, in_ticks(problem, temperatures[0]), chain_key(1, iteration, 0))
        assert_same(state, 0, reference)
    assert max(map(len, engine.export(state, 0).routes)) > 20


LONG = [
    ("sisr", Recipe(rule="string", sorted_orders=True, all_routes=True, blink=0.01)),
    ("paper", Recipe(rule="related", removals=15, orders=5)),
    (
        "tails",
        Recipe(
            rule="string", sorted_orders=True, all_routes=True, blink=0.01, tails=20, open_cheaper=0.5, serve_bonus=0.3
        ),
    ),
    ("random", Recipe(rule="random", removals=6, orders=2, sorted_orders=True, blink=0.1, open_route=0.2)),
    (
        "near",
        Recipe(
            rule="string",
            sorted_orders=True,
            all_routes=True,
            insert_near=8,
            blink=0.1,
            tails=20,
            open_cheaper=0.5,
        ),
    ),
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "recipe"), LONG, ids=[name for name, _ in LONG])
@pytest.mark.parametrize(
    ("variant", "source", "limited"),
    [
        ("cvrp", "none", False),
        ("cvrp", "round", True),
        ("vrptw", "dimacs", False),
        ("vrptw", "durations", True),
        ("pcvrp", "trunc", False),
        ("pcvrptw", "none", False),
        ("pcvrptw", "asymmetric", True),
    ],
)
def test_annealed_trajectories(name: str, recipe: Recipe, variant: str, source: str, limited: bool) -> None:
    """Hundreds of steps of a cooling search, with as many chains as there are recipes to take turns."""
    engine, steps, seed = CpuEngine(), 200 if name == "sisr" else 100, 7
    problem = random_problem(3, variant, source, customers=35, vehicles=limited, layout="uniform", scale=1000.0)
    state = start(engine, [problem], [0, 0], seed, rounds=2)
    temperatures = problem.side() * 0.1 * 0.01 ** (np.arange(2 * steps).reshape(2, steps) / (2 * steps))
    engine.improve(state, recipe, None, temperatures, seed, 5)
    accepted = []
    for chain in (0, 1):
        reference = Chain(Numbers(problem))
        reference.start(seed, chain, 2, limited)
        accepted.append(
            reference.improve(recipe, None, in_ticks(problem, temperatures[chain]), chain_key(seed, 5, chain)),
        )
        assert_same(state, chain, reference)
    assert accepted[0] != steps, "a test of acceptance needs refusals"
    assert sum(accepted) > 0


@pytest.mark.slow
def test_long_routes_are_scanned_whole() -> None:
    """Routes of more places than the core prices at once."""
    for seed, (variant, source) in enumerate([("cvrp", "none"), ("cvrp", "round"), ("pcvrp", "asymmetric")]):
        problem = random_problem(seed, variant, source, customers=150, layout="grid")
        problem = problem.replace(demand=np.r_[0.0, np.ones(150)], capacity=140.0)
        routes = [list(range(1, 138)), list(range(138, 151))]
        state, reference = start(CpuEngine(), [problem], [0], 0, init=Solution(routes)), Chain(Numbers(problem))
        reference.set_routes(routes)
        recipe = Recipe(rule="related", removals=8, orders=2, all_routes=True, blink=[0.0, 0.5][seed % 2])
        temperatures = np.full((1, 12), problem.side() * 0.02)
        CpuEngine().improve(state, recipe, None, temperatures, seed, 1)
        reference.improve(recipe, None, in_ticks(problem, temperatures[0]), chain_key(seed, 1, 0))
        assert_same(state, 0, reference)
        assert max(map(len, reference.routes)) > 64


@pytest.mark.parametrize("customers", [1, 2, 3, 4, 11, 29])
def test_full_vehicles(customers: int) -> None:
    """Each customer fills a vehicle: as many routes are emptied as are opened, all the time."""
    for source in ("none", "round", "asymmetric"):
        problem = random_problem(customers, "cvrp", source, customers=customers)
        problem = problem.replace(demand=np.r_[0.0, np.full(customers, 5.0)], capacity=5.0)
        reference, state = Chain(Numbers(problem)), start(CpuEngine(), [problem], [0], 1, rounds=1)
        reference.start(1, 0, 1, False)
        recipe = Recipe(rule="random", removals=customers, all_routes=True)
        temperatures = np.full((1, 40), problem.side())
        CpuEngine().improve(state, recipe, None, temperatures, 1, 1)
        assert reference.improve(recipe, None, in_ticks(problem, temperatures[0]), chain_key(1, 1, 0)) > 20
        assert_same(state, 0, reference)
        assert sorted(reference.routes) == [[c] for c in range(1, customers + 1)]


def test_nobody_is_served() -> None:
    """All prizes are too small: everybody stays out, and is tried again."""
    coordinates = np.random.default_rng(1).random((12, 2)) + 1.0
    coordinates[0] = 0
    prize = np.r_[0, np.full(11, 1e-2)]
    problem = Problem(coordinates=coordinates, demand=np.r_[0, np.ones(11)], capacity=3, prize=prize)
    recipe = Recipe(rule="string", open_route=0.0)
    state, reference = start(CpuEngine(), [problem], [0], 0, init=Solution([])), Chain(Numbers(problem))
    temperatures = np.full((1, 20), 0.1)
    CpuEngine().improve(state, recipe, None, temperatures, 0, 0)
    reference.improve(recipe, None, in_ticks(problem, temperatures[0]), chain_key(0, 0, 0))
    assert_same(state, 0, reference)
    assert reference.routes == []
    assert state.stats().costs[0] == pytest.approx(11e-2, rel=1e-5)
    CpuEngine().improve(state, replace(recipe, open_route=1.0), None, np.full((1, 1), 1e30), 0, 1)
    reference.improve(replace(recipe, open_route=1.0), None, [1e300], chain_key(0, 1, 0))
    assert_same(state, 0, reference)
    assert len(reference.routes) >= 1


# --- evaluate ----------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(("variant", "source"), COMBINATIONS)
def test_evaluate(variant: str, source: str) -> None:
    engine = CpuEngine()
    for seed in range(3):
        problem = random_problem(300 + seed, variant, source, vehicles=seed == 2)
        state, reference = warmed_up(problem, seed)
        recipe = Recipe(rule=RULES[seed], removals=5, orders=2, all_routes=seed == 1)
        before, routes = state.chains.costs()[0], engine.export(state, 0, best=False)
        deltas = engine.evaluate(state, recipe, None, 7, seed, 3, keep_best=False)
        ticks = np.rint(deltas * Numbers(problem).per_unit).astype(np.int64)
        assert ticks[0].tolist() == reference.evaluate(recipe, None, 7, chain_key(seed, 3, 0), keep_best=False)
        assert engine.export(state, 0, best=False) == routes, "evaluation changes nothing"

        # Each is what rebuilding with the same draws brings: step k starts from the same solution if no other is taken.
        for k in range(7):
            temperatures = np.zeros((1, k + 1))
            temperatures[0, k] = 1e9 * problem.side()
            again = start(engine, [problem], [0], 0, init=routes)
            never = -1e9 * problem.side()  # below zero: not accepted
            only_last = np.where(np.arange(k + 1) == k, temperatures, never)
            engine.improve(again, recipe, None, only_last, seed, 3)
            if ticks[0, k] < Numbers(problem).per_unit * 1e6 * problem.side():
                assert again.chains.costs()[0] - before == ticks[0, k]

        engine.evaluate(state, recipe, None, 7, seed, 3, keep_best=True)
        reference.evaluate(recipe, None, 7, chain_key(seed, 3, 0), keep_best=True)
        assert_same(state, 0, reference)
        assert state.chains.costs()[0] == before + min(0, ticks[0].min())


@pytest.mark.parametrize("always", [False, True])
def test_evaluate_given(always: bool) -> None:
    problem = random_problem(8, "pcvrptw", "exact", customers=20, layout="uniform", scale=1000.0)
    state, reference = warmed_up(problem, 1)
    removed = np.array([[[3, 1, 4], [15, 9, 2], [6, 5, 20]]], np.int32)
    recipe = Recipe(removals=3, all_routes=True)
    deltas = CpuEngine().evaluate(state, recipe, removed, 3, 0, 0, keep_best=True, always=always)
    expected = reference.evaluate(recipe, removed[0].tolist(), 3, chain_key(0, 0, 0), keep_best=True, always=always)
    assert np.rint(deltas[0] * 1000).tolist() == expected
    assert_same(state, 0, reference)


# --- the numbers underneath --------------------------------------------------------------------


@pytest.mark.parametrize("source", SOURCES)
def test_neighbours(source: str) -> None:
    for seed, layout in enumerate(["uniform", "clusters", "grid", "decimals", "line", "one place"]):
        for customers in (1, 2, 60):
            problem = random_problem(seed, "cvrp", source, customers=customers, layout=layout)
            near = make_instance(Ticks(problem)).near
            assert near.shape == (customers + 1, customers - 1)
            assert near[1:].tolist() == Numbers(problem).near[1:]


def test_neighbours_are_truncated() -> None:
    """600 customers, lists of 256: by distance, ties by number."""
    rng = np.random.default_rng(5)
    for coordinates in (rng.random((601, 2)), rng.integers(0, 12, (601, 2)), rng.random((601, 2)) * [1.0, 1e-3]):
        problem = Problem(coordinates=coordinates, demand=np.r_[0, np.ones(600)], capacity=9)
        near = make_instance(Ticks(problem)).near
        points = (problem.coordinates - problem.coordinates.min(axis=0)).astype(np.float32)
        square = ((points[:, None] - points[None]) ** 2).sum(axis=-1, dtype=np.float32)
        np.fill_diagonal(square, np.inf)
        square[:, 0] = np.inf
        assert np.array_equal(near[1:], np.argsort(square, axis=1, kind="stable")[1:, :256])


@pytest.mark.parametrize("source", SOURCES)
def test_lengths_are_those_of_the_problem(source: str) -> None:
    """Ticks say what `Problem.length` says: exactly under an integer metric, to 1e-6 of the largest under `none`."""
    for seed in range(12):
        problem = random_problem(seed, "cvrp", source, customers=13)
        numbers = Numbers(problem)
        nodes = np.arange(14)
        lengths = problem.length(nodes[:, None], nodes[None]) * numbers.per_unit
        if problem.metric.is_integer:
            assert np.rint(lengths).astype(int).tolist() == numbers.length
            assert np.allclose(lengths, np.rint(lengths), atol=1e-6)
        else:
            assert np.max(np.abs(lengths - numbers.length)) <= 1.0 + 2.0**-22 * lengths.max()


def test_minus_log() -> None:
    for k in [*range(50), 2**12, 2**23 - 1, 2**23, 2**24 - 2, 2**24 - 1, *range(1000, 2**24, 99991)]:
        assert minus_log(k) == pytest.approx(-math.log((k + 1) / 2**24), abs=2e-9)


# --- builds ------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(("variant", "source"), COMBINATIONS)
def test_both_instruction_sets_agree(variant: str, source: str) -> None:
    problem = random_problem(11, variant, source, customers=120, layout="uniform", scale=1000.0)
    states = []
    for isa in ("base", "avx2"):
        engine = CpuEngine(isa=isa)
        try:
            state = start(engine, [problem], [0, 0], 3, rounds=5)
        except ValueError:
            pytest.skip("this machine has no AVX2")
        assert state.chains.isa == f"isa_{isa}"
        recipe = Recipe(rule="string", sorted_orders=True, all_routes=True, blink=0.02)
        engine.improve(state, recipe, None, np.full((2, 1500), problem.side() * 0.02), 3, 1)
        recipe = Recipe(rule="related", orders=3)
        engine.improve(state, recipe, None, np.full((2, 500), problem.side() * 0.02), 3, 2)
        states.append([engine.export(state, chain, best=best) for chain in (0, 1) for best in (True, False)])
    assert states[0] == states[1]
