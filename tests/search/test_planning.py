"""From a request to a plan: what `auto` chooses, and the settings of solvers by problem, device, time and cores."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ndsvrp import NdsError, Problem, Settings, Solver, generate, models, solve, solve_set
from ndsvrp.constraints.fleet import fewest_vehicles
from ndsvrp.search import planning
from ndsvrp.search.planning import Request, plan

# --- solver, ruin, device --------------------------------------------------------------------------


def test_preset_paper() -> None:
    """The rule removes exactly M = 15 customers. `auto` means the solver nds."""
    problem = generate("cvrp", 20, seed=1)[0]
    for solver in ("auto", "nds"):
        chosen = Solver(preset="paper", solver=solver).plan(problem)
        assert (chosen.solver, chosen.settings) == ("nds", Settings(ruin="related", removals=15, chains=8))
    assert Solver(preset="paper", ruin="random").plan(problem).settings.ruin == "random"
    assert Solver(preset="paper").plan(problem.replace(prize=np.r_[0, np.ones(20)])).settings.chains == 128
    assert Solver().plan(problem).solver == "hybrid"


def test_policy_by_itself_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """For problems like those it was trained on, unless something else was asked for; otherwise rules."""
    ours, windows, prizes = (generate(variant, 100, seed=1)[0] for variant in ("cvrp", "vrptw", "pcvrp"))

    def chosen(problem: Problem = ours, **how: Any) -> tuple[str, str, str, int]:
        found = Solver(**how).plan(problem)
        return found.solver, found.settings.ruin, found.device, found.settings.chains

    hybrid = ("hybrid", "string", "cpu", 4)
    assert chosen() == hybrid, "there is no GPU"
    monkeypatch.setattr(planning, "_has_gpu", lambda: True)
    assert chosen() == chosen(windows) == chosen(prizes) == chosen(device="cuda") == ("nds", "policy", "cuda", 128)
    assert chosen(chains=5) == ("nds", "policy", "cuda", 5)
    for asked in ({"threads": 2}, {"string_average": 20.0}, {"blink": 0.1}):
        assert chosen(**asked)[:2] == ("hybrid", "string"), "what was asked for is for rules"
    assert chosen(device="cpu") == chosen(solver="hybrid", device="cpu") == hybrid
    assert chosen(ruin="related", solver="nds") == ("nds", "related", "cuda", 128)
    assert chosen(preset="paper") == ("nds", "related", "cuda", 8)
    matrix = np.hypot(*(ours.coordinates[:, None] - ours.coordinates[None]).transpose(2, 0, 1))
    others = (
        generate("cvrp", 99, seed=1)[0], generate("cvrp", 2001, seed=1)[0], generate("vrptw", 2001, seed=1)[0],
        windows.replace(capacity=float(windows.demand.sum()) / 3),  # 33 customers per vehicle
        generate("pcvrptw", 100, seed=1)[0], ours.replace(vehicles=40),
        Problem(distance=matrix, demand=ours.demand, capacity=ours.capacity),
    )  # fmt: skip
    assert {chosen(problem) for problem in others} == {("hybrid", "string", "cuda", 256)}
    near = [plan(problem, Request()).settings.insert_near for problem in others]
    assert near == [32, 32, 0, 0, 0, 0, 0], "routes are linked for CVRP with coordinates"
    assert plan(ours, Request(solver="hybrid", device="cuda")).settings.insert_near == 32
    assert plan(ours, Request(solver="hybrid", device="cpu")).settings.insert_near == 0
    for setting in (
        {"orders": 2},
        {"scope": "touched"},
        {"string_average": 20.0},
        {"ruin": "related"},
        {"insert_near": 0},
    ):
        request = Request.of(solver="hybrid", device="cuda", **setting)
        assert plan(ours, request).settings.insert_near == 0, "routes cannot be linked"
    assert chosen(solver="sisr") == ("sisr", "string", "cpu", 1), "a single chain"


def test_options_among_the_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """`chains` and `ruin` mean the same wherever they are given."""
    problem = generate("cvrp", 100, seed=1)[0]
    for has_gpu in (False, True):
        monkeypatch.setattr(planning, "_has_gpu", lambda gpu=has_gpu: gpu)
        for given in ({"chains": 6}, {"ruin": "related"}, {"chains": 6, "ruin": "policy"}):
            both = Request(**given), Request(settings=given)
            assert both[0] == both[1]
            assert plan(problem, both[0]) == plan(problem, both[1])
    few = plan(problem, Request(device="cpu", settings={"chains": 6, "hot": 0.2}))
    assert (few.settings.chains, few.settings.population, few.settings.hot) == (6, 0, 0.2)
    with pytest.raises(NdsError, match="chains is given twice, as an option and as a setting"):
        Request(chains=5, settings={"chains": 6})


# --- chains and regions ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("customers", "capacity", "cpu", "gpu"),
    [
        (100, 50, (4, 1), (256, 1)),
        (400, 50, (2, 2), (256, 2)),
        (1000, 50, (6, 6), (256, 4)),
        (1000, 300, (2, 2), (256, 2)),  # 60 customers per vehicle, 17 routes
        (1000, 1000, (4, 1), (256, 1)),  # 5 routes
        (6000, 50, (32, 32), (256, 32)),
    ],
)
def test_chains_and_regions_by_size(
    customers: int, capacity: int, cpu: tuple[int, int], gpu: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """They do not depend on the number of cores."""
    problem = Problem(
        demand=np.r_[0, np.full(customers, 5)], capacity=capacity, coordinates=np.eye(customers + 1)[:, :2]
    )

    def chosen(**how: Any) -> tuple[int, int]:
        settings = Solver(solver="hybrid", **how).plan(problem).settings
        return settings.chains, settings.regions

    assert chosen() == chosen(threads=1) == chosen(threads=16) == cpu
    assert chosen(chains=7) == (7, 1), "chains that were asked for have a solution each"
    assert chosen(chains=8, regions=4) == (8, 4)
    assert chosen(ruin=lambda request: None)[1] == 1, "regions are for rules"
    monkeypatch.setattr(planning, "_has_gpu", lambda: True)
    assert chosen() == gpu


@pytest.mark.parametrize(
    ("customers", "cores", "expected"),
    [
        (120, 1, (4, 1)), (120, 3, (4, 1)), (120, 6, (6, 1)), (500, 2, (3, 3)), (500, 5, (3, 3)), (500, 6, (6, 3)),
        (500, 16, (15, 3)), (2500, 64, (15, 15)),
    ],
)  # fmt: skip
def test_timed_searches_have_a_chain_for_each_core(
    customers: int, cores: int, expected: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As many solutions as their regions leave cores for, unless something fixes the number of chains."""
    monkeypatch.setattr(planning, "usable_cores", lambda: cores)
    problem = Problem(demand=np.r_[0, np.full(customers, 5)], capacity=100, coordinates=np.eye(customers + 1)[:, :2])

    def chosen(seconds: float | None = 1.0, together: int = 1, **how: Any) -> tuple[int, int]:
        settings = Solver(**{"device": "cpu"} | how).plan(problem, together, seconds=seconds).settings
        return settings.chains, settings.regions

    assert chosen() == chosen(threads=cores) == expected
    few = chosen(None)
    assert few == chosen(threads=1) == chosen(together=cores), "the batch fills the cores"
    assert chosen(chains=7) == (7, 1)
    assert chosen(solver="sisr") == (1, 1)
    own: dict[str, Any] = {"ruin": lambda request: None}
    assert chosen(**own) == chosen(None, **own), "as many as without a time limit"
    plan = Solver(device="cpu").plan(problem, seconds=1.0)
    assert plan.threads == min(cores, expected[0])


def test_only_a_time_limit_adds_chains(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "usable_cores", lambda: 6)
    problem = generate("cvrp", 20, seed=1)[0]

    def chains(**limits: Any) -> int:
        return int(solve(problem, device="cpu", **limits).settings["chains"])

    assert [chains(time=0.02), chains(iterations=1), chains(time=5, iterations=1)] == [6, 4, 4]
    assert [r.settings["chains"] for r in solve_set([problem] * 2, time=0.02, device="cpu")] == [4, 4]


def test_regions_beside_the_policy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four or more regions have the policy's steps and those of a rule; fewer are not worth it."""

    def chosen(problem: Problem, **how: Any) -> tuple[int, int, int]:
        settings = Solver(**how).plan(problem).settings
        return settings.chains, settings.regions, settings.rule_steps

    small, large = generate("vrptw", 500, seed=1)[0], generate("vrptw", 1000, seed=1)[0]
    assert chosen(large, ruin="policy") == (8, 1, 0), "on a CPU the policy is for experiments"
    monkeypatch.setattr(planning, "_has_gpu", lambda: True)
    assert (chosen(small), chosen(large)) == ((128, 1, 0), (128, 4, 400))
    assert chosen(large, model="all") == chosen(large, model=models.load("all", "cpu")) == (128, 4, 400)
    assert chosen(large, chains=16) == chosen(large, chains=16, ruin="policy") == (16, 1, 0)
    assert chosen(large, ruin="policy", rule_steps=7, regions=8) == (128, 8, 7)
    assert chosen(large, model=lambda request: None) == (128, 1, 0), "own ruins choose for whole solutions"
    assert chosen(large, ruin="policy", preset="paper") == (8, 1, 0)


# --- other settings --------------------------------------------------------------------------------


def test_exchanges_of_tails_beside_the_policy(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = generate("cvrp", 100, seed=1)[0]
    assert Solver(ruin="policy").plan(problem).settings.tails == 0, "on a CPU the policy is for experiments"
    monkeypatch.setattr(planning, "_has_gpu", lambda: True)
    assert Solver().plan(problem).settings.tails == Solver(ruin="policy").plan(problem).settings.tails == 20
    assert Solver(ruin="related", solver="nds").plan(problem).settings.tails == 0
    assert Solver(ruin="policy", preset="paper").plan(problem).settings.tails == 0


def test_temperatures_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the policy, prizes start colder, others from savings; a large problem from savings, colder, as on a CPU."""
    monkeypatch.setattr(planning, "_has_gpu", lambda: True)

    def chosen(variant: str, n: int, **how: Any) -> tuple[bool, float]:
        settings = Solver(**how).plan(generate(variant, n, seed=1)[0]).settings
        return settings.start_savings, settings.hot

    assert chosen("cvrp", 100) == chosen("vrptw", 100) == (True, 0.1)
    assert chosen("pcvrp", 100) == (False, 0.03)
    assert chosen("cvrp", 100, start_savings=False) == chosen("cvrp", 100, ruin="policy", device="cpu") == (False, 0.1)
    assert chosen("pcvrp", 100, solver="hybrid") == chosen("pcvrp", 100, preset="paper") == (False, 0.1)
    assert chosen("cvrp", 2500) == (True, 0.03)


def test_large_problems_start_from_savings() -> None:
    small, large = (generate("cvrp", n, seed=1)[0] for n in (2400, 2500))
    assert (Settings.start_savings, Settings.hot) == (False, 0.1)
    found = [Solver().plan(problem).settings for problem in (small, large)]
    assert [(s.start_savings, s.hot) for s in found] == [(False, 0.1), (True, 0.03)]
    result = solve(large, iterations=1, rollouts=1, seed=1)
    plain = solve(large, iterations=1, rollouts=1, seed=1, start_savings=False)
    assert result.trace[0].cost < 0.5 * plain.trace[0].cost


# --- populations and islands -----------------------------------------------------------------------


def test_which_problems_have_a_population(monkeypatch: pytest.MonkeyPatch) -> None:
    def population(problem: Problem, **how: Any) -> int:
        return Solver(**how).plan(problem).settings.population

    small, below, middle = (generate("cvrp", n, seed=1)[0] for n in (100, 299, 300))
    others = [generate(name, 100, seed=1)[0] for name in ("vrptw", "pcvrp")]
    others += [small.replace(max_distance=9.0), middle]
    assert population(small) == population(small, threads=1) == population(below) == 16
    assert [population(problem) for problem in others] == [0] * 4
    fewest = int(np.ceil(small.demand.sum() / small.capacity))
    assert [population(small.replace(vehicles=count)) for count in (fewest, fewest + 1, 50)] == [0, 16, 16]
    long, long_middle = (generate("vrptw", n, seed=1, capacity=300)[0] for n in (299, 300))
    assert [population(problem) for problem in (long, long.replace(vehicles=250), long_middle)] == [16, 16, 0]
    assert population(long.replace(prize=np.r_[0.0, np.full(299, 0.5)])) == 0
    assert population(small, chains=4) == population(small, regions=2) == population(small, solver="sisr") == 0
    assert population(small, ruin=lambda request: None) == population(small, ruin="policy") == 0
    assert population(small, population=5) == 5
    assert population(small, regions=1) == 16
    with pytest.raises(NdsError, match="population is not for optional customers and limited vehicles: give populat"):
        population(generate("pcvrp", 100, seed=1)[0].replace(vehicles=50), population=5)
    assert population(generate("vrptw", 400, seed=1)[0], population=5) == 5, "in place of regions"
    monkeypatch.setattr(planning, "_has_gpu", lambda: True)
    assert population(small, solver="hybrid") == 0
    with pytest.raises(NdsError, match="a population is searched on a CPU: give device=cpu, or population=0"):
        population(small, solver="hybrid", population=5)


def test_a_population_from_300_customers_on_needs_time() -> None:
    """Its children are long, and it has a solution for each core."""
    problem, largest, large = (generate("cvrp", n, seed=1)[0] for n in (300, 500, 501))

    def settings(problem: Problem, seconds: float | None, threads: int = 1, together: int = 1, **how: Any) -> Settings:
        return plan(problem, Request.of(device="cpu", threads=threads, **how), together, seconds=seconds).settings

    by_cores = [settings(problem, 30.0, threads) for threads in (1, 8, 12, 100)]
    assert [(each.population, each.chains) for each in by_cores] == [(8, 4), (8, 8), (12, 12), (64, 100)]
    children = {(each.regions, each.anneal_share, each.child_steps, each.warm) for each in by_cores}
    assert children == {(1, 0.5, 100, 0.01)}
    assert settings(problem, 15.0, 2).population == 8, "seconds of all cores count"
    assert settings(problem, 30.0, 12, together=4).population == 8
    assert settings(largest, 50.0).population == 8
    without = [settings(problem, 29.9), settings(problem, None), settings(problem, 14.9, 2), settings(large, 1e6)]
    assert [(each.population, each.child_steps) for each in without] == [(0, 10)] * 4
    given = settings(problem, 30.0, population=3, anneal_share=0.9)
    assert (given.population, given.anneal_share, given.child_steps) == (3, 0.9, 100)
    assert settings(generate("vrptw", 300, seed=1)[0], 30.0).population == 0
    fewest = int(np.ceil(problem.demand.sum() / problem.capacity))
    fleets = [settings(problem.replace(vehicles=count), 30.0).population for count in (fewest, fewest + 1, 90)]
    assert fleets == [0, 8, 8]
    carried = [problem.replace(demand=np.r_[0, np.ones(300)], capacity=capacity) for capacity in (5, 6)]
    assert [settings(each, 30.0).population for each in carried] == [0, 8], "routes of five customers are too short"
    small = settings(generate("cvrp", 299, seed=1)[0], 0.1)
    assert (small.population, small.anneal_share, small.child_steps, small.warm) == (16, 0.3, 10, 0.005)


def test_what_is_given_beside_a_population() -> None:
    problem = generate("cvrp", 100, seed=1)[0]
    alone, both = (Solver(device="cpu", **how).plan(problem).settings for how in ({}, {"chains": 6, "population": 8}))
    assert (alone.chains, alone.population, alone.hot) == (4, 16, 0.03)
    assert (both.chains, both.population, both.hot) == (6, 8, 0.03)
    chains = Solver(device="cpu", population=0).plan(problem).settings
    assert (chains.chains, chains.population, chains.hot) == (4, 0, 0.1)


def test_children_fill_the_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "usable_cores", lambda: 12)
    problem = generate("cvrp", 100, seed=1)[0]
    assert Solver(device="cpu").plan(problem, seconds=1.0).settings.chains == 12
    plan = Solver(device="cpu").plan(problem)
    assert (plan.settings.chains, plan.threads) == (4, 12), "the 16 solutions are annealed on all cores"


def test_which_problems_have_islands(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "_has_gpu", lambda: True)

    def islands(problem: Problem, seconds: float | None, **how: Any) -> int:
        return plan(problem, Request.of(**how), seconds=seconds).settings.islands

    small, middle = (generate("cvrp", n, seed=1)[0] for n in (100, 500))
    large = generate("vrptw", 2000, seed=1)[0]
    assert islands(small, 2.0) == islands(middle, 10.0) == islands(generate("vrptw", 500, seed=1)[0], 10.0) == 16
    assert islands(generate("pcvrp", 500, seed=1)[0], 10.0) == 16
    assert islands(large, 40.0) == 8, "16 solutions of eight regions"
    assert islands(small, 1.9) == islands(middle, 9.9) == islands(large, 39.0) == 0, "too little time"
    assert islands(small, None) == 0, "a limit on iterations"
    assert islands(small, 60.0, chains=8) == islands(small, 60.0, ruin="policy", regions=2) == 0
    assert islands(small, 60.0, ruin="policy", preset="paper") == islands(small, 60.0, solver="hybrid") == 0
    assert islands(small, 60.0, device="cpu") == islands(small, 60.0, ruin="policy", device="cpu") == 0
    fewest = fewest_vehicles(small)
    assert islands(small.replace(vehicles=fewest), 60.0, ruin="policy") == 0, "children would not fit the fleet"
    assert islands(small.replace(vehicles=fewest + 1), 60.0, ruin="policy") == 16
    settings = plan(small, Request.of(ruin="policy", islands=4, child_steps=7), seconds=None).settings
    assert (settings.islands, settings.anneal_share, settings.child_steps, settings.warm) == (4, 0.5, 7, 0.01)
    assert Solver(ruin="policy", islands=4, device="cpu").plan(small).settings.islands == 4
    few, long = (generate("vrptw", 500, seed=1, capacity=capacity)[0] for capacity in (100, 300))
    with_prizes = long.replace(prize=np.r_[0.0, np.full(500, 0.5)])
    by_rules: dict[str, Any] = {"solver": "hybrid"}
    assert islands(long, 15.0, **by_rules) == islands(with_prizes, 15.0) == 16, "a vehicle carries 60 customers"
    assert islands(long.replace(vehicles=90), 15.0) == 16, "with a fleet, rules are the default"
    assert islands(long, 14.9, **by_rules) == islands(few, 60.0, **by_rules) == 0
    assert islands(with_prizes.replace(vehicles=2), 15.0) == 16, "no customer is required"
    assert islands(long, 60.0, regions=2, **by_rules) == islands(long, 60.0, device="cpu") == 0


def test_islands_on_a_cpu() -> None:
    """Where vehicles are limited and no customer is required, if there is time: a chain for each core, or two each."""

    def found(problem: Problem, seconds: float | None, threads: int = 1, **how: Any) -> tuple[int, int, int]:
        settings = plan(problem, Request.of(device="cpu", threads=threads, **how), seconds=seconds).settings
        return settings.islands, settings.chains, settings.regions

    few = generate("pcvrp", 400, seed=1)[0].replace(vehicles=8, capacity=300.0)
    assert found(few, 6.0) == found(few, 3.0, threads=2) == (8, 16, 1)
    assert found(few, 6.0, threads=16) == (8, 16, 1)
    assert found(few, 6.0, threads=17) == (8, 24, 1)
    assert found(few, 5.9)[0] == found(few, None)[0] == found(few, 12.0, islands=0)[0] == 0
    assert found(few, 12.0, population=0)[0] == found(few, 12.0, chains=32)[0] == found(few, 12.0, regions=2)[0] == 0
    assert found(few.replace(vehicles=None), 60.0)[0] == found(few.replace(prize=None), 60.0)[0] == 0
    assert found(few.replace(capacity=100.0), 60.0) == (0, 2, 2), "routes enough for regions"
    assert found(generate("pcvrp", 601, seed=1)[0].replace(vehicles=8, capacity=900.0), 60.0)[0] == 0
    children = plan(few, Request.of(device="cpu", threads=1), seconds=12.0).settings
    assert (children.anneal_share, children.tournament, children.child_steps, children.warm) == (0.5, 2, 30, 0.01)
    result = solve(few.replace(vehicles=9), time=12.5, threads=1, device="cpu", stop=lambda: True)
    assert (result.settings["islands"], result.stopped) == (8, "stop")


def test_islands_in_place_of_a_population() -> None:
    settings = Solver(device="cpu", islands=2).plan(generate("cvrp", 60, seed=1)[0]).settings
    assert (settings.islands, settings.population) == (2, 0)
