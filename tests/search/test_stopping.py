"""Budgets, cooling, exchange and augmentations, by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ndsvrp import NdsError, Problem, Progress, Settings
from ndsvrp.search import stopping
from ndsvrp.search.asa import Search
from ndsvrp.search.augment import augmentations
from ndsvrp.search.stopping import Budget, ExponentialCooling


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """A clock that stands still: its only entry is the time."""
    now = [100.0]
    monkeypatch.setattr(stopping.time, "perf_counter", lambda: now[0])
    return now


def budget(clock: list[float], **limits: Any) -> Budget:
    return Budget(**limits, began=clock[0])


def after(iteration: int, best: float, unserved: int = 0) -> Progress:
    return Progress(iteration, 0.0, best, 1.0, 0, unserved)


# --- budget ------------------------------------------------------------------------------------


def test_time(clock: list[float]) -> None:
    b = budget(clock, seconds=10)
    assert [b.elapsed(), b.out_of_time(), b.fraction(1)] == [0.0, False, 0.0]
    clock[0] = 102.5
    assert [b.elapsed(), b.out_of_time(), b.fraction(7)] == [2.5, False, 0.25]
    assert b.reason(after(7, 5.0)) is None
    clock[0] = 110.0
    assert [b.out_of_time(), b.fraction(8), b.reason(after(8, 5.0))] == [True, 1.0, "time"]
    clock[0] = 111.0
    assert b.fraction(9) == 1.0


def test_iterations(clock: list[float]) -> None:
    b = budget(clock, iterations=4)
    assert [b.fraction(i) for i in (1, 2, 3, 4)] == [0.0, 0.25, 0.5, 0.75]
    assert [b.reason(after(i, 5.0)) for i in (0, 1, 3, 4)] == [None, None, None, "iterations"]
    assert not b.out_of_time()


def test_the_larger_share_counts(clock: list[float]) -> None:
    b = budget(clock, seconds=10, iterations=10)
    clock[0] = 103.0
    assert b.fraction(2) == 0.3
    assert b.fraction(9) == 0.8


def test_target(clock: list[float]) -> None:
    b = budget(clock, iterations=100, target=7.0)
    assert [b.reason(after(1, 7.1)), b.reason(after(2, 7.0)), b.reason(after(3, 6.0))] == [None, "target", "target"]
    assert b.reason(after(4, 5.0, unserved=1)) is None, "a solution that leaves somebody out reaches no target"


def test_patience(clock: list[float]) -> None:
    b = budget(clock, iterations=100, patience=3)
    seen = [b.reason(after(i, cost)) for i, cost in enumerate([9.0, 8.0, 8.0, 7.5, 7.5, 7.5, 7.5])]
    assert seen == [None] * 6 + ["patience"]


@pytest.mark.parametrize(
    "limits", [{}, {"patience": 3}, {"target": 1.0}, {"seconds": 0}, {"iterations": 0}, {"seconds": 1, "patience": 0}]
)
def test_limits_are_needed_and_positive(limits: dict[str, Any]) -> None:
    with pytest.raises(NdsError, match=r"limit|above 0"):
        Budget(**limits)


# --- cooling -----------------------------------------------------------------------------------


def test_cooling() -> None:
    cooling = ExponentialCooling(0.1, 0.001)
    assert cooling(0.0) == pytest.approx(0.1, rel=1e-15)
    assert cooling(0.5) == pytest.approx(0.01, rel=1e-14)  # the geometric mean
    assert cooling(1.0) == pytest.approx(0.001, rel=1e-14)
    assert cooling(0.25) / cooling(0.5) == pytest.approx(cooling(0.5) / cooling(0.75), rel=1e-12)


# --- a search on an engine that only notes what it is told --------------------------------------


class FakeState:
    def __init__(self, costs: list[float], missing: int = 0) -> None:
        self.all = np.array(costs)
        self.left_out = missing

    def costs(self) -> np.ndarray:
        return self.all

    best_costs = costs

    def missing(self) -> np.ndarray:
        return np.full(len(self.all), self.left_out, np.int32)


class FakeEngine:
    name = "fake"
    threads = 1

    def __init__(self, costs: list[float]) -> None:
        self.state = FakeState(costs)
        self.moves: list[tuple[int, int]] = []
        self.temperatures: list[float] = []

    def start(self, problems: Any, which: Any, init: Any) -> FakeState:
        assert which.tolist() == [0] * len(self.state.all)
        assert init is None
        self.state.problems, self.state.which = problems, which
        return self.state

    def rebuild(self, state: Any, recipe: Any, removed: Any, temperature: np.ndarray, *_: Any, **__: Any) -> int:
        assert np.ptp(temperature) == 0
        self.temperatures.append(float(temperature[0, 0]))
        return int(temperature.shape[1])

    def replace(self, state: Any, source: np.ndarray, target: np.ndarray) -> None:
        self.moves += zip(source.tolist(), target.tolist(), strict=True)


def run_on(engine: FakeEngine, iterations: int = 1, **settings: Any) -> Search:
    problem = Problem(coordinates=[[0, 0], [40, 10], [10, 100]], demand=[0, 1, 1], capacity=2)
    chosen = Settings(chains=len(engine.state.all), rollouts=3, **settings)
    budget = Budget(iterations=iterations)
    search = Search(problem, engine, chosen, budget, seed=1, start_rounds=0)  # type: ignore[arg-type]
    search.run()
    return search


def test_exchange() -> None:
    """T = 0.1 · 100, δ = 15: the threshold is 1000 + 150. Only what is above goes, and only to what is not."""
    costs = [1000.0, 1150.0, 1150.1, 1300.0, 1100.0, 9999.0]
    for seed in range(20):
        engine = FakeEngine(costs)
        search = run_on(engine)
        search.seed = seed
        engine.moves.clear()
        search._exchange(engine.state.costs(), 10.0)
        assert [target for _, target in engine.moves] == [2, 3, 5]
        assert {source for source, _ in engine.moves} <= {0, 1, 4}


def test_exchange_draws_all_good_chains() -> None:
    engine = FakeEngine([1.0, 2.0, 1e9])
    run_on(engine, iterations=40)
    assert {source for source, _ in engine.moves} == {0, 1}
    assert {target for _, target in engine.moves} == {2}
    assert len(engine.moves) == 40


def test_no_exchange_below_the_threshold() -> None:
    engine = FakeEngine([1000.0, 1150.0, 1100.0])
    run_on(engine)
    assert engine.moves == []


def test_temperatures_follow_the_box() -> None:
    """The larger side of the bounding box is 100: T from 10 to 0.1, by a tenth of the way each iteration."""
    engine = FakeEngine([1.0])
    search = run_on(engine, iterations=10, hot=0.1, cold=0.001)
    assert engine.temperatures == pytest.approx([10 * 0.01 ** (i / 10) for i in range(10)], rel=1e-12)
    assert search.iteration == 10
    assert search.reconstructions == 10 * 3 * 1 * 5


def test_trace_has_better_solutions_only() -> None:
    engine = FakeEngine([5.0])
    costs = iter([5.0, 5.0, 4.0, 4.0, 3.0])

    def rebuild(*_: Any, **__: Any) -> int:
        engine.state.all = np.array([next(costs)])
        return 3

    engine.rebuild = rebuild  # type: ignore[method-assign]
    search = run_on(engine, iterations=5)
    assert [(point.iteration, point.cost) for point in search.trace] == [(0, 5.0), (3, 4.0), (5, 3.0)]


def test_trace_waits_until_all_are_served() -> None:
    engine = FakeEngine([5.0])
    engine.state.left_out = 1
    assert run_on(engine, iterations=3).trace == []


# --- augmentations -----------------------------------------------------------------------------


def test_augmentations() -> None:
    rng = np.random.default_rng(0)
    problem = Problem(coordinates=rng.random((8, 2)) * [3.0, 7.0] - 5.0, demand=np.r_[0, np.ones(7)], capacity=3)
    views = augmentations(problem, 11)
    assert views is not None
    assert views.shape == (11, 8, 2)
    assert np.allclose(views[0], problem.coordinates, rtol=0, atol=1e-14)
    assert np.array_equal(views[8:], views[:3])
    distances = np.linalg.norm(views[:, :, None] - views[:, None], axis=-1)
    assert np.allclose(distances, distances[0], rtol=0, atol=1e-13)
    # Each is a signed permutation of the axes around the centre of the box, and all eight are there.
    low, high = problem.coordinates.min(axis=0), problem.coordinates.max(axis=0)
    centred = problem.coordinates - (low + high) / 2
    found = {
        tuple(np.rint(np.linalg.lstsq(centred, view - (low + high) / 2)[0]).ravel().tolist()) for view in views[:8]
    }
    eight = {(a, 0, 0, b) for a in (1, -1) for b in (1, -1)} | {(0, a, b, 0) for a in (1, -1) for b in (1, -1)}
    assert found == eight


def test_no_augmentations_for_a_matrix() -> None:
    problem = Problem(distance=np.ones((3, 3)), demand=[0, 1, 1], capacity=2)
    assert augmentations(problem, 8) is None
