"""From a problem to a result: it is feasible, stops for the right reason, and depends on the arguments only."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from clocks import FakeClock
from ndsvrp import (
    EngineError,
    InstanceError,
    NdsError,
    NoSolutionError,
    Problem,
    Progress,
    Result,
    RuinRequest,
    Settings,
    Solution,
    check,
    solve,
)
from ndsvrp.engine.cpu import CpuEngine
from ndsvrp.search.asa import Search

FOUR = {"coordinates": [[0, 0], [3, 4], [6, 8], [-3, 4], [0, -12]], "demand": [0, 2, 3, 4, 5], "capacity": 7}


def uniform(customers: int, seed: int = 0, **fields: Any) -> Problem:
    rng = np.random.default_rng(seed)
    base = {
        "coordinates": rng.random((customers + 1, 2)),
        "demand": np.r_[0, rng.integers(1, 10, customers)],
        "capacity": 40,
    }
    return Problem(**(base | fields))


def cheapest(problem: Problem) -> float:
    """Return the best cost by brute force: all subsets and orders of customers, cut into routes in all ways."""
    n, best = problem.customers, np.inf
    for count in range(n + 1):
        for order in itertools.permutations(range(1, n + 1), count):
            for cuts in itertools.product((0, 1), repeat=max(0, count - 1)):
                routes: list[list[int]] = [[]]
                for c, cut in zip(order, (0, *cuts), strict=False):
                    routes += [[]] if cut else []
                    routes[-1].append(c)
                report = check(problem, Solution(routes if count else []))
                if report.feasible:
                    best = min(best, report.cost)
    return best


# --- small problems are solved to the end --------------------------------------------------------


@pytest.mark.parametrize("solver", ["hybrid", "sisr", "nds"])
@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"metric": "dimacs"},
        {"vehicles": 2},
        {"windows": [[0, 40], [10, 20], [0, 17], [0, 9], [12, 28]], "service": [0, 2, 3, 1, 0], "metric": "round"},
        {"prize": [0, 0, 4, 12, 24]},
        {"prize": [0, 3, 4, 5, 6], "vehicles": 1},
        {"windows": [[0, 40], [10, 20], [0, 17], [0, 9], [12, 28]], "prize": [0, 0, 4, 12, 24]},
    ],
    ids=["cvrp", "dimacs", "fleet", "vrptw", "pcvrp", "pcvrp fleet", "pcvrptw"],
)
def test_four_customers(fields: dict[str, Any], solver: str) -> None:
    problem = Problem(**(FOUR | fields))
    result = solve(problem, iterations=5, seed=1, solver=solver, chains=2, rollouts=100)
    assert result.cost == pytest.approx(cheapest(problem), rel=1e-12)
    assert result.report.feasible
    assert check(problem, result.solution) == result.report


def test_four_customers_by_hand() -> None:
    # 0-1-2-0: 20, 0-3-0: 10, 0-4-0: 24
    result = solve(Problem(**FOUR), iterations=3, seed=0)
    assert result.cost == 54.0
    assert sorted(sorted(route) for route in result.solution.routes) == [[1, 2], [3], [4]]


def test_one_customer() -> None:
    problem = Problem(coordinates=[[0, 0], [3, 4]], demand=[0, 1], capacity=1)
    for solver, ruin in itertools.product(("sisr", "nds"), ("string", "related", "random")):
        result = solve(problem, iterations=2, solver=solver, ruin=ruin)
        assert (result.cost, result.solution.routes) == (10.0, ((1,),))


# --- stopping ------------------------------------------------------------------------------------


def test_iterations() -> None:
    seen: list[Progress] = []
    result = solve(uniform(30), iterations=3, seed=1, chains=2, rollouts=50, orders=1, callback=seen.append)
    assert (result.stopped, result.iterations) == ("iterations", 3)
    assert result.reconstructions == 3 * 2 * 50
    assert [progress.iteration for progress in seen] == [0, 1, 2, 3]
    assert [progress.best for progress in seen] == sorted((p.best for p in seen), reverse=True)
    assert seen[-1].best == pytest.approx(result.cost, rel=1e-6)
    assert [p.temperature for p in seen] == sorted((p.temperature for p in seen), reverse=True)
    assert result.trace[-1].cost == pytest.approx(result.cost, rel=1e-6)


def test_target() -> None:
    problem = uniform(40, metric="exact")
    good = solve(problem, iterations=30, seed=1).cost
    result = solve(problem, iterations=1000, seed=1, target=good * 1.05)
    assert result.stopped == "target"
    assert result.cost <= good * 1.05
    assert solve(problem, iterations=2, seed=1, target=0).stopped == "iterations"


def test_patience() -> None:
    result = solve(Problem(**FOUR), iterations=10_000, seed=1, patience=7, rollouts=20)
    assert result.stopped == "patience"
    assert result.iterations == result.trace[-1].iteration + 7


@pytest.mark.parametrize("solver", ["hybrid", "sisr", "nds"])
def test_time_for_one_customer(monkeypatch: pytest.MonkeyPatch, solver: str) -> None:
    problem, clock = Problem(coordinates=[[0, 0], [3, 4]], demand=[0, 1], capacity=1), FakeClock(monkeypatch, tick=5e-3)
    began = clock.now
    result = solve(problem, time=0.4, solver=solver)
    assert result.stopped == "time"
    assert 0.39 < result.seconds <= clock.now - began < 0.4 + 0.1


@pytest.mark.slow
def test_time_for_many_customers(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = uniform(3000, capacity=300)
    problem.length(0, 1)
    FakeClock(monkeypatch, tick=0.01)
    result = solve(problem, time=1.0, seed=1)
    assert result.stopped == "time"
    assert 0.9 < result.seconds < 1.0 + 0.1  # time is reserved for export and check
    assert result.report.feasible
    assert result.iterations > 0


def test_an_interrupted_search_returns_its_best() -> None:
    def stop(progress: Progress) -> None:
        if progress.iteration == 2:
            raise KeyboardInterrupt

    result = solve(uniform(30), iterations=100, seed=1, callback=stop)
    assert (result.stopped, result.iterations) == ("interrupted", 2)
    assert result.report.feasible
    assert result.cost == pytest.approx(result.trace[-1].cost, rel=1e-6)


def test_the_trace_has_what_an_interrupted_iteration_found(monkeypatch: pytest.MonkeyPatch) -> None:
    improve = CpuEngine.improve

    def interrupted(self: CpuEngine, *args: Any, **limits: Any) -> None:
        improve(self, *args, **limits)
        if args[-1] == 2:  # the iteration
            raise KeyboardInterrupt

    monkeypatch.setattr(CpuEngine, "improve", interrupted)
    result = solve(uniform(60, metric="exact"), iterations=100, seed=1, rollouts=50)
    assert (result.stopped, result.iterations) == ("interrupted", 2)
    assert result.trace[-1].iteration == 2
    assert result.trace[-1].cost == result.cost


def test_a_broken_rule_is_a_bug(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Search, "best", lambda self: [Solution([[1, 2, 3], [4]])])
    with pytest.raises(RuntimeError, match=r"please report this: .*load 9 is above the capacity 7"):
        solve(Problem(**FOUR), iterations=1)


# --- what decides the result -----------------------------------------------------------------------


def outcome(result: Result) -> tuple[Any, ...]:
    return result.solution, result.cost, [(point.iteration, point.cost) for point in result.trace]


@pytest.mark.parametrize("solver", ["hybrid", "sisr", "nds"])
def test_threads_do_not_matter(solver: str) -> None:
    problem = uniform(60, prize=np.r_[0, np.full(60, 0.3)])
    runs = [
        solve(problem, iterations=4, seed=5, solver=solver, chains=4, rollouts=60, threads=threads)
        for threads in (1, 2, 1)
    ]
    assert outcome(runs[0]) == outcome(runs[1]) == outcome(runs[2])
    assert outcome(runs[0]) != outcome(solve(problem, iterations=4, seed=6, solver=solver, chains=4, rollouts=60))


@pytest.mark.parametrize("factor", [1024.0, 2.0**-20])
@pytest.mark.parametrize("solver", ["hybrid", "sisr", "nds"])
def test_temperatures_are_free_of_scale(factor: float, solver: str) -> None:
    """A power of two changes nothing at all; the trajectory is the same to the bit."""
    rng = np.random.default_rng(3)
    base = uniform(50)
    n = base.customers
    lengths = base.length(np.zeros(n + 1, int), np.arange(n + 1))
    windows = np.stack([np.zeros(n + 1), lengths + rng.random(n + 1)], axis=1)
    windows[0] = [0, 4]
    extras = {"windows": windows, "service": np.r_[0, rng.random(n) * 0.1], "prize": np.r_[0, rng.random(n)]}
    for chosen in ([], ["windows", "service"], ["prize"], ["windows", "service", "prize"]):
        fields = {name: extras[name] for name in chosen}
        scaled = {name: values * factor for name, values in fields.items()}
        one = solve(base.replace(**fields), iterations=3, seed=2, solver=solver, chains=2, rollouts=100)
        other = solve(
            base.replace(coordinates=base.coordinates * factor, **scaled),
            iterations=3, seed=2, solver=solver, chains=2, rollouts=100,
        )  # fmt: skip
        assert one.solution == other.solution
        assert [(p.iteration, p.cost * factor) for p in one.trace] == [(p.iteration, p.cost) for p in other.trace]


def test_a_thousandfold_scale() -> None:
    """Not a power of two: lengths differ in their last bits, routes need not be the same, the search has to be."""
    problem = uniform(40)
    large = problem.replace(coordinates=problem.coordinates * 1000)
    costs = [solve(p, iterations=20, seed=2).cost for p in (problem, large)]
    assert costs[1] == pytest.approx(costs[0] * 1000, rel=0.02)


@pytest.mark.slow
def test_a_short_matrix_run_matches_its_coordinates() -> None:
    """A matrix of whole lengths is the same problem as the coordinates it came from."""
    problem = uniform(30, coordinates=np.random.default_rng(2).integers(0, 100, (31, 2)), metric="round")
    nodes = np.arange(31)
    matrix = problem.length(nodes[:, None], nodes[None])
    same = Problem(distance=matrix, demand=problem.demand, capacity=40, metric="round")
    costs = [solve(p, iterations=30, seed=1, ruin="random").cost for p in (problem, same)]
    assert costs[1] == pytest.approx(costs[0], rel=0.03)
    assert check(problem, solve(same, iterations=2, seed=1).solution).feasible


# --- ruin, init ------------------------------------------------------------------------------------


@pytest.mark.parametrize("ruin", ["string", "related", "random"])
def test_rules_improve(ruin: str) -> None:
    problem = uniform(60)
    alone = sum(2 * problem.length(0, c) for c in range(1, 61))
    assert solve(problem, iterations=5, seed=1, ruin=ruin).cost < 0.6 * alone


def test_own_ruin() -> None:
    problem, seen = uniform(25, vehicles=9), []

    def ruin(request: RuinRequest) -> np.ndarray:
        seen.append(request)
        chains = len(request.view.route)
        draws = [request.random.permutation(25)[: request.removals] + 1 for _ in range(chains * request.rollouts)]
        return np.array(draws, np.int32).reshape(chains, request.rollouts, request.removals)

    results = [
        solve(problem, iterations=3, seed=1, solver="nds", ruin=ruin, chains=3, rollouts=20, removals=4)
        for _ in range(2)
    ]
    assert outcome(results[0]) == outcome(results[1])
    assert results[0].settings["ruin"] == "function"
    assert len(seen) == 6
    assert (seen[0].rollouts, seen[0].removals, seen[0].view.route.shape) == (20, 4, (3, 26))
    assert seen[0].coordinates is not None
    assert seen[0].coordinates.shape == (3, 26, 2)
    assert results[0].reconstructions == 3 * 3 * 20 * 5


def test_own_ruin_is_checked() -> None:
    with pytest.raises(NdsError, match="removed twice"):
        solve(uniform(9), iterations=1, ruin=lambda s: np.ones((len(s.view.route), s.rollouts, s.removals), np.int32))


def test_a_ruin_states_all_of_its_capabilities() -> None:
    class Partial:
        batched = True

        def __call__(self, request: RuinRequest) -> np.ndarray:
            raise AssertionError

    needed = "a ruin with batched needs all of on_device, batched, in_regions, expected_seconds"
    with pytest.raises(NdsError, match=needed):
        solve(uniform(9), iterations=1, ruin=Partial())


def test_fewer_customers_than_removals() -> None:
    result = solve(uniform(3), iterations=2, solver="nds", ruin="random", removals=15)
    assert result.report.feasible


def test_init_is_never_worsened() -> None:
    problem = uniform(40)
    good = solve(problem, iterations=40, seed=1)
    for solver in ("sisr", "nds"):
        again = solve(problem, iterations=1, seed=2, solver=solver, init=good.solution, rollouts=5)
        assert again.cost <= good.cost
    with pytest.raises(InstanceError, match=r"initial solution is infeasible: route 1: customer 1 is served twice"):
        solve(Problem(**FOUR), iterations=1, init=Solution([(1, 1), (3,), (4,)]))


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"iterations": 1, "solver": "hgs"},
        {"iterations": 1, "ruin": "policy", "solver": "sisr"},
        {"iterations": 1, "ruin": "worst"},
        {"iterations": 1, "preset": "paper", "solver": "sisr"},
        {"iterations": 1, "preset": "slow"},
        {"iterations": 1, "device": "cuda"},
        {"iterations": 1, "chains": 0},
        {"iterations": 1, "temperature": 1},
        {"iterations": 1, "hot": 0.1, "cold": 0.2},
        {"iterations": 1, "seed": -1},
        {"iterations": 1, "threads": 0},
    ],
)
def test_bad_arguments(arguments: dict[str, Any]) -> None:
    with pytest.raises(NdsError):
        solve(Problem(**FOUR), **arguments)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"removals": 3.0}, "removals must be a whole number, got 3.0"),
        ({"chains": True}, "chains must be a whole number, got True"),
        ({"rollouts": "20"}, "rollouts must be a whole number, got '20'"),
        ({"blink": "0.1"}, "blink must be a number, got '0.1'"),
        ({"hot": None}, "hot must be a number, got None"),
        ({"threshold": False}, "threshold must be a number, got False"),
        ({"sorted_orders": "no"}, "sorted_orders must be True or False, got 'no'"),
        ({"blink": float("nan")}, "blink must be between 0 and 0.999, got nan"),
    ],
)
def test_settings_of_a_wrong_type(change: dict[str, Any], message: str) -> None:
    with pytest.raises(NdsError) as caught:
        Settings(**change)
    assert str(caught.value) == message


def test_settings_take_numbers_of_numpy() -> None:
    settings = {"chains": np.int64(2), "rollouts": np.int32(30), "removals": np.uint8(4), "orders": np.int16(2)}
    settings |= {"blink": np.float32(0.25), "hot": np.float64(0.1), "threshold": 15, "string_longest": np.int64(3)}
    plain = {name: value if isinstance(value, int) else value.item() for name, value in settings.items()}
    one, other = (solve(uniform(20), iterations=2, seed=1, **chosen) for chosen in (settings, plain))
    assert outcome(one) == outcome(other)


def test_limits_of_a_result() -> None:
    result = solve(Problem(**FOUR), iterations=2, target=1.0)
    assert result.settings["limits"] == {"time": None, "iterations": 2, "patience": None, "target": 1.0}


# --- limited fleets --------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("solver", ["hybrid", "sisr", "nds"])
def test_tight_fleets(solver: str) -> None:
    """Demands that fill all vehicles to the brim."""
    for seed in range(4):
        rng = np.random.default_rng(seed)
        loads = [rng.multinomial(30 - 4, [0.25] * 4) + 1 for _ in range(6)]  # six vehicles of 30, four customers each
        demand = np.r_[0, rng.permutation(np.concatenate(loads))]
        problem = Problem(coordinates=rng.random((25, 2)), demand=demand, capacity=30, vehicles=6)
        result = solve(problem, iterations=60, seed=seed, solver=solver, chains=2)
        assert result.report.feasible
        assert len(result.solution.routes) == 6


def test_tight_fleet_with_windows() -> None:
    """One vehicle, windows one after another: the only order is the one given."""
    order = np.random.default_rng(4).permutation(8) + 1
    windows = np.zeros((9, 2))
    windows[0] = [0, 100]
    windows[order] = np.stack([np.arange(8) * 10 + 5, np.arange(8) * 10 + 6], axis=1)
    problem = Problem(
        coordinates=np.random.default_rng(5).random((9, 2)), demand=np.r_[0, np.ones(8)], capacity=8,
        windows=windows, vehicles=1,
    )  # fmt: skip
    assert solve(problem, iterations=20, seed=1).solution.routes == (tuple(order.tolist()),)


def one_vehicle(prize: float) -> Problem:
    """Either the required customer or seven optional ones."""
    return Problem(
        coordinates=np.random.default_rng(0).random((9, 2)), demand=[0, 8] + [1] * 7, capacity=8,
        prize=[0, 0] + [prize] * 7, vehicles=1,
    )  # fmt: skip


@pytest.mark.parametrize("prize", [0.5, 50.0, 1e9])
def test_required_customers_come_before_any_prize(prize: float) -> None:
    assert solve(one_vehicle(prize), iterations=5, seed=1).solution.routes == ((1,),)


def test_impossible_fleet() -> None:
    problem = Problem(coordinates=np.eye(6, 2), demand=[0, 3, 3, 2, 2, 2], capacity=4, vehicles=3)  # 12 of 12
    with pytest.raises(NoSolutionError, match="3 vehicles leave 1 required customer unserved") as caught:
        solve(problem, iterations=5, seed=1)
    assert len(caught.value.unserved) == 1
    assert caught.value.unserved[0] in {1, 2, 3, 4, 5}


# --- never infeasible -------------------------------------------------------------------------------

NUMBERS = {
    "none": st.one_of(st.floats(0, 1), st.sampled_from([0.0, 0.1, 0.2, 0.3, 1 / 3, 1e-9, 1.0])),
    "round": st.integers(0, 20).map(float),
    "trunc": st.one_of(st.integers(0, 9).map(float), st.floats(0, 9)),
    "dimacs": st.one_of(st.integers(0, 60).map(lambda v: v / 10), st.floats(0, 9)),
    "exact": st.floats(0, 9),
}


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    """Any features at any scale: few distinct numbers, so that ties, equal points and full vehicles are common."""
    metric = draw(st.sampled_from(list(NUMBERS)))
    n = draw(st.integers(1, 9))
    size = draw(st.sampled_from([1.0, 1.0, 1e-12, 1e12, 1024.0])) if metric == "none" else 1.0
    ticks = {"none": 0, "dimacs": 10, "exact": 1000}.get(metric, 1)

    def many(count: int) -> np.ndarray:
        return np.array(draw(st.lists(NUMBERS[metric], min_size=count, max_size=count)))

    def whole(values: np.ndarray) -> np.ndarray:
        return np.ceil(values * ticks - 1e-9) / ticks if ticks else values

    fields: dict[str, Any] = {"metric": metric}
    if draw(st.booleans()):
        offset = draw(st.sampled_from([0.0, -7.0, 1e4])) if metric != "none" else draw(st.sampled_from([0.0, 100.0]))
        fields["coordinates"] = (many(2 * (n + 1)).reshape(n + 1, 2) + offset) * size
    else:
        fields["distance"] = whole(many((n + 1) ** 2).reshape(n + 1, n + 1) * size)
        if draw(st.booleans()):
            fields["duration"] = many((n + 1) ** 2).reshape(n + 1, n + 1) * draw(st.sampled_from([1.0, 1e-5, 1e5]))
    share = draw(st.sampled_from([1.0, 0.1, 1 / 3, 2.0**28, 1e-7]))
    demand = np.array([0, *draw(st.lists(st.integers(0, 5), min_size=n, max_size=n))]) * share
    fields |= {"demand": demand, "capacity": draw(st.sampled_from([5, 6, 11, 60])) * share}
    try:
        plain = Problem(**fields)
    except InstanceError as error:
        assume("too small" not in str(error))  # every length below 1e-150
        raise
    optional = np.zeros(n + 1, bool)
    if draw(st.booleans()):
        prize = whole(many(n + 1) * size * draw(st.sampled_from([1.0, 3.0, 1000.0])))
        prize[0] = 0
        optional = prize > 0
        fields["prize"] = prize
    if draw(st.booleans()):
        nodes, depot = np.arange(n + 1), np.zeros(n + 1, int)
        there, back = plain.travel_time(depot, nodes), plain.travel_time(nodes, depot)
        unit = float(np.max(there)) if "duration" in fields else size
        service, ready, width = (whole(many(n + 1) * unit * draw(st.sampled_from([0.0, 1.0]))) for _ in range(3))
        service[0] = ready[0] = 0
        due = whole(np.maximum(ready, there) + width)
        horizon = whole(np.array([np.max(due + service + back)]) + (2 / ticks if ticks else 0))[0]
        late = optional & np.array([False, *draw(st.lists(st.booleans(), min_size=n, max_size=n))])
        due[late] = ready[late]
        fields |= {"windows": np.stack([ready, due], axis=1), "service": service}
        if draw(st.sampled_from([False, False, True])):  # so late that thousandths of it are no longer exact
            horizon = np.ceil(horizon * 10**6) if ticks else horizon * 10**6
        fields["windows"][0] = [0, horizon]
    if draw(st.booleans()):
        fields["vehicles"] = draw(st.integers(1, n))
    return Problem(**fields)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:prizes above")
@settings(max_examples=500, deadline=None, derandomize=True)
@given(problem=problems(), seed=st.integers(0, 2**63 - 1), solver=st.sampled_from(["hybrid", "sisr", "nds"]))
def test_solutions_are_feasible(problem: Problem, seed: int, solver: str) -> None:
    more = {"chains": 1, "rollouts": 60} if solver == "sisr" else {"chains": 2, "rollouts": 15, "orders": 2}
    try:
        result = solve(problem, iterations=2, seed=seed, solver=solver, threads=1, **more)
    except EngineError as error:
        assert "no scale of whole ticks" in str(error)
        return
    except NoSolutionError as error:
        assert problem.vehicles is not None
        assert error.unserved or error.result is None
        assert all(problem.required[c] for c in error.unserved)
        return
    report = check(problem, result.solution)
    assert report.feasible
    assert result.cost == report.cost
    last = result.trace[-1].cost
    if problem.metric.is_integer:
        assert last == report.cost
    elif problem.prize is None:  # prizes beyond 64 lengths count as 64
        assert last == pytest.approx(report.cost, rel=1e-6, abs=1e-6 * problem.side())
