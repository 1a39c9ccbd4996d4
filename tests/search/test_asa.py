"""The search on fake engines that record their calls: exchange, temperatures, trace, pipelining."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest

from ndsvrp import Problem, Progress, Ruin, RuinRequest, Settings, generate, solve
from ndsvrp.engine.base import ChainStats
from ndsvrp.ruin import FunctionRuin
from ndsvrp.search.asa import BY_RULE, Search
from ndsvrp.search.stopping import Budget


class FakeState:
    def __init__(self, costs: list[float], missing: int = 0) -> None:
        self.all = np.array(costs)
        self.left_out = missing
        self.made = 0

    def stats(self) -> ChainStats:
        left_out = np.full(len(self.all), self.left_out, np.int32)
        return ChainStats(self.all, self.all, left_out, left_out, self.made)

    def snapshot(self) -> Any:
        stats = self.stats()
        return lambda: stats


class FakeEngine:
    name = "fake"
    runs_ahead = False
    threads = 1

    def __init__(self, costs: list[float]) -> None:
        self.state = FakeState(costs)
        self.reaches: list[list[float]] = []  #: of all calls
        self.temperatures: list[float] = []
        self.last_temperatures: np.ndarray | None = None  #: of the last call

    def start(self, problems: Any, problem_of: Any, init: Any, *, first: Any, precompile: Any) -> FakeState:
        chains = len(self.state.all) // len(problems)
        assert problem_of.tolist() == [i for i in range(len(problems)) for _ in range(chains)]
        assert first.tolist() == list(range(chains)) * len(problems)
        assert init is None
        self.state.problems, self.state.problem_of = problems, problem_of
        return self.state

    def improve(self, state: Any, recipe: Any, removed: Any, temperature: np.ndarray, *_: Any, **__: Any) -> None:
        assert (np.ptp(temperature, axis=1) == 0).all()
        self.last_temperatures = temperature
        self.temperatures.append(float(temperature[0, 0]))
        self.state.made = int(temperature.shape[1])

    def exchange(self, state: Any, reach: np.ndarray, seed: int, iteration: int, *, groups: int) -> None:
        assert (seed, iteration) == (1, len(self.reaches) + 1)
        self.reaches.append(reach.tolist())


SIDES = (100.0, 1.0, 1000.0)


def run_on(engine: FakeEngine, iterations: int = 1, problems: int = 1, callback: Any = None, **settings: Any) -> Search:
    """On so many problems, in boxes of sides 100, 1, 1000."""
    places = np.array([[0, 0], [0.4, 0.1], [0.1, 1]])
    boxes = [Problem(coordinates=places * side, demand=[0, 1, 1], capacity=2) for side in SIDES[:problems]]
    chosen = Settings(chains=len(engine.state.all) // problems, rollouts=3, start_rounds=0, **settings)
    budget = Budget(iterations=iterations)
    search = Search(boxes, engine, chosen, budget, seed=1, callback=callback)  # type: ignore[arg-type]
    search.run()
    return search


def course(search: Search) -> list[list[tuple[int, float]]]:
    return [[(point.iteration, point.cost) for point in trace] for trace in search.traces]


def test_reach_of_the_exchange() -> None:
    """Sides 100, 1, 1000 and δ = 15: at T = 0.1 chains may be behind by 150, 1.5 and 1500, at T = 0.01 by a tenth."""
    engine = FakeEngine([1.0] * 6)
    run_on(engine, iterations=2, problems=3, hot=0.1, cold=0.001)
    assert engine.reaches == [pytest.approx([150.0, 1.5, 1500.0]), pytest.approx([15.0, 0.15, 150.0])]


def test_absolute_temperatures() -> None:
    """T = 0.1 and a reach of 1.5 whatever the sides 100, 1, 1000 of the boxes; then a tenth of it."""
    engine = FakeEngine([1.0] * 6)
    run_on(engine, iterations=2, problems=3, hot=0.1, cold=0.001, temperature_scale="absolute")
    assert engine.temperatures == pytest.approx([0.1, 0.01])
    assert engine.last_temperatures == pytest.approx(np.full((6, 3), 0.01))
    assert engine.reaches == [pytest.approx([1.5] * 3), pytest.approx([0.15] * 3)]


@pytest.mark.parametrize(("in_time", "reconstructions"), [(True, 2 * (3 * 5 + 7)), (False, 0)])
def test_steps_by_a_rule_come_last(in_time: bool, reconstructions: int) -> None:
    """They draw random numbers of their own. If there was no time for them, nothing of the iteration counts."""
    calls: list[tuple[Any, ...]] = []

    class Noting(FakeEngine):
        view = staticmethod(lambda state, on_device: None)

        def improve(self, state: Any, recipe: Any, removed: Any, temperature: np.ndarray, *when: Any, **_: Any) -> None:
            calls.append((recipe.rule, recipe.orders, temperature.shape[1], *when))
            super().improve(state, recipe, removed, temperature)
            if recipe.rule is not None and not in_time:
                self.state.made = 0

    problem = Problem(coordinates=[[0, 0], [1, 1]], demand=[0, 1], capacity=2)
    settings = Settings(ruin="function", chains=1, rollouts=3, rule_steps=7, orders=5, start_rounds=0)
    ruin = FunctionRuin(lambda request: np.ones((1, 3, 1), np.int32))
    search = Search([problem], Noting([5.0]), settings, Budget(iterations=2), 1, ruin)  # type: ignore[arg-type]
    search.run()
    assert calls == [
        (None, 5, 3, 1, 1), ("string", 1, 7, 1, BY_RULE + 1), (None, 5, 3, 1, 2), ("string", 1, 7, 1, BY_RULE + 2)
    ]  # fmt: skip
    assert search.reconstructions == reconstructions


def test_each_problem_has_its_temperature_and_trace() -> None:
    engine = FakeEngine([5.0, 6.0, 8.0, 7.0, 9.0, 9.0])
    told: list[Progress] = []
    exported: list[int] = []

    def exchange(*_: Any, **__: Any) -> None:
        engine.state.all = np.array([5.0, 6.0, 6.5, 7.0, 9.0, 8.0])

    engine.exchange = exchange  # type: ignore[method-assign]
    engine.export = lambda state, chain: exported.append(chain)  # type: ignore[attr-defined]
    search = run_on(engine, problems=3, callback=told.append)
    assert engine.last_temperatures is not None
    assert engine.last_temperatures == pytest.approx(np.repeat([10.0, 10.0, 0.1, 0.1, 100.0, 100.0], 3).reshape(6, 3))
    assert course(search) == [[(0, 5.0)], [(0, 7.0), (1, 6.5)], [(0, 9.0), (1, 8.0)]]
    assert (told[1].best, told[1].unserved) == (6.5, 0)
    assert told[1].temperature == pytest.approx((10.0 + 0.1 + 100.0) / 3)
    search.best()
    assert exported == [0, 2, 5]


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

    def improve(*_: Any, **__: Any) -> None:
        engine.state.all = np.array([next(costs)])

    engine.improve = improve  # type: ignore[method-assign]
    search = run_on(engine, iterations=5)
    assert course(search) == [[(0, 5.0), (3, 4.0), (5, 3.0)]]


def test_trace_waits_until_all_are_served() -> None:
    engine = FakeEngine([5.0])
    engine.state.left_out = 1
    assert run_on(engine, iterations=3).traces == [[]]


def test_trace_has_what_an_interrupted_iteration_found() -> None:
    engine = FakeEngine([5.0])
    search = run_on(engine, iterations=3)
    engine.state.all = np.array([4.0])
    search.note_best()
    search.note_best()  # nothing better since
    assert course(search) == [[(0, 5.0), (3, 4.0)]]


class OnGpuFor40Ms(Ruin):
    """A network on a GPU: a call takes 40 ms by the clock of the test, also after the deadline."""

    on_device = True

    def __init__(self, clock: list[float]) -> None:
        self.clock = clock

    def __call__(self, request: RuinRequest) -> np.ndarray:
        self.clock[0] += 0.04
        return np.ones((1, 3, 1), np.int32)

    def expected_seconds(self) -> float:
        return 0.04


@pytest.mark.parametrize(
    ("seconds", "iterations", "ends"),
    [
        (0.35, 4, 0.35),  # enough time for one more call, and for some reconstructions
        (0.25, 3, 0.25),
        (0.23, 2, 0.20),  # the network would end after the deadline
        (0.21, 2, 0.20),
        (0.03, 1, 0.04),  # its duration is not known yet
    ],
)
def test_a_network_on_a_gpu_is_not_begun_too_late(
    clock: list[float], seconds: float, iterations: int, ends: float
) -> None:
    """40 ms for the network, 60 ms for reconstructions, which end at the deadline."""

    class Cut(FakeEngine):
        view = staticmethod(lambda state, on_device: None)

        def improve(self, *args: Any, deadline: float, **_: Any) -> None:
            clock[0] = max(clock[0], min(clock[0] + 0.06, deadline))
            super().improve(*args)

    problem = Problem(coordinates=[[0, 0], [1, 1]], demand=[0, 1], capacity=2)
    budget = Budget(seconds=seconds, began=clock[0])
    settings = Settings(chains=1, rollouts=3, start_rounds=0)
    search = Search([problem], Cut([5.0]), settings, budget, 1, OnGpuFor40Ms(clock))  # type: ignore[arg-type]
    assert search.run() == "time"
    assert search.iteration == iterations
    assert budget.elapsed() == pytest.approx(ends)


class Gpu(FakeEngine):
    """Work that ends later, by the clock of the test: 40 ms for the network, then `steps` for reconstructions, which
    end at the deadline. Launching takes 1 ms of the CPU."""

    runs_ahead = True

    def __init__(self, clock: list[float], steps: float | list[float] = 0.06) -> None:
        super().__init__([5.0])
        self.clock, self.steps, self.free = clock, steps, clock[0]
        self.idle: list[float] = []  #: idle seconds of the GPU before each network
        self.networks: list[float] = []  #: when each ended
        self.ended: list[float] = []  #: when all that was launched before each snapshot was done
        self.state.snapshot = self.snapshot  # type: ignore[method-assign]

    def view(self, state: Any, *, on_device: bool) -> None:
        return None

    def network(self, request: RuinRequest) -> np.ndarray:
        self.clock[0] += 0.001
        self.idle.append(max(0.0, self.clock[0] - self.free))
        self.free = max(self.free, self.clock[0]) + 0.04
        self.networks.append(self.free)
        return np.ones((1, 3, 1), np.int32)

    def improve(self, *args: Any, deadline: float | None = None, **_: Any) -> None:
        takes = self.steps if isinstance(self.steps, float) else self.steps[min(len(self.ended), len(self.steps)) - 1]
        self.free = max(self.free, self.clock[0])
        self.free = max(self.free, min(self.free + takes, np.inf if deadline is None else deadline))
        super().improve(*args)

    def snapshot(self) -> Any:
        stats, ends = self.state.stats(), self.free
        self.ended.append(ends)

        def seen() -> ChainStats:
            self.clock[0] = max(self.clock[0], ends)
            return stats

        return seen


class Silent(Ruin):
    """A ruin without a duration estimate."""

    on_device = True

    def __init__(self, gpu: Gpu) -> None:
        self.gpu = gpu

    def __call__(self, request: RuinRequest) -> np.ndarray:
        return self.gpu.network(request)


class OnGpu(Silent):
    """A ruin with one."""

    def expected_seconds(self) -> float:
        return 0.04


def search_on(gpu: Gpu, ruin: type[Ruin] | None = OnGpu, **limits: Any) -> Search:
    problem = Problem(coordinates=[[0, 0], [1, 1]], demand=[0, 1], capacity=2)
    budget, settings = Budget(began=gpu.clock[0], **limits), Settings(chains=1, rollouts=3, start_rounds=0)
    asked = None if ruin is None else ruin(gpu)  # type: ignore[call-arg]
    return Search([problem], gpu, settings, budget, 1, asked)  # type: ignore[arg-type]


def test_a_gpu_is_never_idle(clock: list[float]) -> None:
    """Except for the first two iterations: 1 ms for launching."""
    gpu = Gpu(clock)
    search = search_on(gpu, iterations=9)
    told: list[tuple[int, int]] = []
    search.callback = lambda progress: told.append((progress.iteration, search.iteration))
    assert search.run() == "iterations"
    assert gpu.idle == pytest.approx([0.001] * 2 + [0.0] * 7, abs=1e-9)
    assert told == [(0, 0), (1, 1), (2, 3), (3, 4), (4, 5), (5, 6), (6, 7), (7, 8), (8, 9), (9, 9)]
    assert clock[0] == pytest.approx(100.0 + 2 * 0.001 + 9 * 0.1)
    assert search.reconstructions == 9 * 3 * 5


@pytest.mark.parametrize("limits", [{"patience": 50}, {"target": 1.0}])
def test_searches_that_results_can_end_do_not_run_ahead(clock: list[float], limits: Any) -> None:
    gpu = Gpu(clock)
    assert search_on(gpu, iterations=9, **limits).run() == "iterations"
    assert gpu.idle == pytest.approx([0.001] * 9)


@pytest.mark.parametrize("seconds", np.arange(0.2, 1.5, 0.037).tolist())
@pytest.mark.parametrize("steps", [0.06, 0.004, [0.06, 0.06, 0.06, 0.09], [0.06, 0.06, 0.09, 0.03]])
def test_an_iteration_ahead_ends_in_time(clock: list[float], seconds: float, steps: Any) -> None:
    """No network ends after the limit, also if iterations get longer or shorter, and no time is wasted before it."""
    gpu = Gpu(clock, steps)
    search = search_on(gpu, seconds=seconds)
    assert search.run() == "time"
    assert max(gpu.networks) <= 100.0 + seconds + 1e-9
    assert max(gpu.ended) <= 100.0 + seconds + 1e-9
    assert clock[0] <= 100.0 + seconds + 0.0011
    assert clock[0] >= 100.0 + seconds - 0.041 - 1e-9, "there was no time for the network"
    assert sum(idle > 1e-9 for idle in gpu.idle) <= 6, "only the first and the last ones"


def test_without_a_duration_estimate_no_call_runs_ahead(clock: list[float]) -> None:
    """Two of its calls could end after the limit; without a limit nothing can."""
    gpu = Gpu(clock)
    assert search_on(gpu, Silent, seconds=1.0).run() == "time"
    assert gpu.idle == pytest.approx([0.001] * len(gpu.idle)) and len(gpu.idle) > 5
    assert clock[0] < 101.0 + 0.041 + 1e-9, "one call at most"
    gpu = Gpu(clock)
    assert search_on(gpu, Silent, iterations=9).run() == "iterations"
    assert gpu.idle == pytest.approx([0.001] * 2 + [0.0] * 7, abs=1e-9)


def test_rules_end_in_time(clock: list[float]) -> None:
    gpu = Gpu(clock, 0.1)
    assert search_on(gpu, None, seconds=0.95).run() == "time"
    assert max(gpu.ended) == clock[0] == pytest.approx(100.95)


def test_an_interruption_while_waiting(clock: list[float]) -> None:
    """The traces have the iteration that was waited for, and the one after it."""
    gpu = Gpu(clock)
    search = search_on(gpu, iterations=9)
    snapshot, costs = gpu.snapshot, iter([5.0, 4.0, 3.0, 2.0, 1.0])
    waits: list[int] = []

    def interrupted() -> Any:
        gpu.state.all = np.array([next(costs)])
        seen, number = snapshot(), len(gpu.ended) - 1

        def wait() -> ChainStats:
            waits.append(number)
            if waits == [0, 1, 2]:
                raise KeyboardInterrupt
            return seen()

        return wait

    gpu.state.snapshot = interrupted  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        search.run()
    search.note_best()
    assert waits == [0, 1, 2, 2, 3]
    assert course(search) == [[(0, 5.0), (1, 4.0), (2, 3.0), (3, 2.0)]]
    assert search.reconstructions == 3 * 3 * 5


@pytest.mark.slow
def test_improving_the_start_takes_a_tenth_of_the_time_at_most() -> None:
    # 100 rounds of 8 chains with 4,000 customers take longer than 0.2 s, and the search must still get its share.
    problem = generate("cvrp", 4000, seed=1)[0]
    result = solve(problem, time=2, seed=1, solver="nds", threads=1)
    assert result.iterations >= 1


def test_a_search_is_freed_at_once() -> None:
    """Without the garbage collector: the state of a search holds memory of a GPU."""
    search = run_on(FakeEngine([5.0]))
    freed = weakref.ref(search)
    gc.disable()
    try:
        del search
        assert freed() is None
    finally:
        gc.enable()
