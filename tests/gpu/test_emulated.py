"""The GPU engine without a GPU: its own code over its own kernels, compiled for the CPU, each thread a fiber.

What only a card can show (compilers, clocks, memory that is late) is left to `tests/gpu/run.py`.
"""

from __future__ import annotations

import time
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from gpu import agree
from gpu.emulated import EmulatedDevice
from ndsvrp import Problem, Ruin, RuinRequest, Settings, Solution
from ndsvrp.engine import cuda as cuda_engine
from ndsvrp.engine import device as device_module
from ndsvrp.engine.base import Recipe
from ndsvrp.engine.cpu import CpuEngine
from ndsvrp.engine.cuda import CudaEngine
from ndsvrp.engine.device import Device
from ndsvrp.generate import generate
from ndsvrp.policy import Network, NetworkConfig, Policy
from ndsvrp.ruin import FunctionRuin
from ndsvrp.search import asa
from ndsvrp.search.asa import Search
from ndsvrp.search.start import start
from ndsvrp.search.stopping import Budget
from ndsvrp.train import config as train_config
from ndsvrp.train.data import recipe_of
from ndsvrp.train.gpu_batch import draw_on_gpu
from ndsvrp.train.own_instances import OwnInstances
from ndsvrp.train.states import prepare
from ndsvrp.train.trainer import Trainer
from parity.problems import random_problem

pytestmark = pytest.mark.emulator

CASES = [  # every rule, distance and placement at least once; a limited fleet only where it needs no more kernels
    ("cvrp", "none", "auto", False),
    ("cvrp", "none", "drafts", False),
    ("cvrp", "none", "global", True),
    ("pcvrptw", "dimacs", "auto", True),
    ("pcvrptw", "dimacs", "global", True),
    ("pcvrp", "durations", "auto", True),
    ("vrptw+limits", "none", "auto", True),
    ("pcvrp+cost", "durations", "auto", True),
    ("pcvrptw+limits+cost", "dimacs", "auto", True),
]


def engine(placement: Any, **limits: int) -> CudaEngine:
    return CudaEngine(placement=placement, device=EmulatedDevice(**limits))  # type: ignore[arg-type]


def near(cuda: CudaEngine) -> set[tuple[str, str]]:
    """Kernels that ran, and what they had in shared memory."""
    launched = cuda.device.launched  # type: ignore[attr-defined]
    return {(name, "".join(v for k, v in macros if "NEAR" in k)) for name, macros, _ in launched}


@pytest.mark.parametrize(("variant", "source", "placement", "fleet"), CASES)
def test_same_routes_as_the_cpu(variant: str, source: str, placement: str, fleet: bool) -> None:
    cuda = engine(placement, exact=(variant, placement) == ("cvrp", "auto"))
    for n, vehicles in ((4, False), (17, fleet)):
        problem = agree.drawn(701, variant, source, n, vehicles)
        agree.compare([problem], [0, 0], 1, 1, cuda)
    where = {"auto": "111", "drafts": "100", "global": "000"}[placement]
    assert {("improve_chains", where), ("keep_best", where)} <= near(cuda)


def test_kinds_mixed_in_one_batch() -> None:
    mixed = [random_problem(i, v, "none", customers=6 + i) for i, v in enumerate(("cvrp", "pcvrp", "cvrp"))]
    agree.compare(mixed, [1, 0, 2, 1], 2, 1, engine("global"))


SEARCH = Settings(ruin="related", chains=3, rollouts=3, removals=4, orders=2, threshold=1.0, start_rounds=2)


def search(engine: Any, problems: list[Any], ruin: Any = None, told: Any = None) -> list[Any]:
    """Best solution, trace and costs of every problem."""
    budget = Budget(seconds=600, iterations=4)
    it = Search(problems, engine, SEARCH, budget, 1, ruin, callback=told)
    if engine.name == "cuda":
        it.rehearse()
    assert it.run() == "iterations"
    state = it.state
    assert state is not None
    numbers = state.stats()
    for one, other in zip(numbers[:3], state.snapshot()()[:3], strict=True):
        assert np.array_equal(one, other) and one.dtype == other.dtype
    courses = [[(point.iteration, point.cost) for point in trace] for trace in it.traces]
    return list(zip(it.best(), courses, numbers.costs.reshape(len(problems), -1).tolist(), strict=True))


@pytest.mark.parametrize("kinds", [("cvrp", "cvrp"), ("cvrp", "pcvrp", "cvrp")])
def test_a_batch_is_searched_as_on_the_cpu_alone(kinds: tuple[str, ...]) -> None:
    problems = [random_problem(i, kind, "none", customers=9) for i, kind in enumerate(kinds)]
    cuda = engine("global")
    assert search(cuda, problems) == [one for problem in problems for one in search(CpuEngine(), [problem])]
    assert "replace_chains" in {name for name, _ in near(cuda)}


def policy() -> Policy:
    torch.manual_seed(0)
    return Policy(Network(NetworkConfig(width=8, heads=2, feed_forward=8, seed_bits=4, seed_width=4)))


def test_a_batch_is_searched_with_the_policy_as_on_the_cpu() -> None:
    problems = [random_problem(i, "cvrp", "none", customers=9) for i in range(2)]
    assert search(engine("global"), problems, policy()) == search(CpuEngine(), problems, policy())


@pytest.mark.parametrize("learned", [False, True])
def test_an_iteration_ahead_finds_the_same(learned: bool) -> None:
    """Routes, traces, and what a callback is told."""
    problems = [random_problem(i, "cvrp", "none", customers=9) for i in range(2)]
    found, told = [], []
    for ahead in (False, True):
        cuda, said = engine("global"), list[Any]()
        cuda.runs_ahead = ahead
        found.append(search(cuda, problems, policy() if learned else None, said.append))
        told.append([progress._replace(seconds=0.0) for progress in said])
    assert found[0] == found[1]
    assert [progress.iteration for progress in told[0]] == [0, 1, 2, 3, 4]
    assert [progress._replace(temperature=0.0) for progress in told[0]] == [
        progress._replace(temperature=0.0) for progress in told[1]
    ]
    first, second = ([progress.temperature for progress in each] for each in told)
    assert first == pytest.approx(second, rel=0.02)  # it follows the clock


class Operations(TorchDispatchMode):
    """The operations of torch that would be kernels or copies on a GPU, while it is active."""

    FREE = ("empty", "view", "select", "slice", "unbind", "expand", "unsqueeze", "detach", "alias")
    EMULATION = ("fill_", "lift_fresh")  # rubbish in what is empty, arrays sent

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = function.overloadpacket.__name__
        if not name.startswith(self.FREE + self.EMULATION):
            self.names.append(name)
        return function(*args, **(kwargs or {}))


@pytest.mark.parametrize("seconds", [600.0, None])
def test_what_an_iteration_asks_of_the_gpu(seconds: float | None) -> None:
    """Four launches and a small kernel of torch, two small arrays sent, and the numbers asked for. What the one before
    found is waited for only then: nobody waits between one iteration and the next."""
    problem, cuda, chains, rollouts = random_problem(1, "cvrp", "none", customers=9), engine("auto"), 3, 4
    device: Any = cuda.device
    lists = torch.arange(1, 5, dtype=torch.int32).expand(chains, rollouts, 4).contiguous()
    operations = Operations()

    class Given(Ruin):
        on_device = True

        def __call__(self, request: RuinRequest) -> Any:
            assert all(isinstance(part, torch.Tensor) and part.shape == (chains, 10) for part in request.view)
            return lists

        def expected_seconds(self) -> float:
            return 0.0

    settings = Settings(chains=chains, rollouts=rollouts, removals=4, orders=2, threshold=0.0, start_rounds=0)
    budget = Budget(seconds, iterations=6)
    search = Search(
        [problem], cuda, settings, budget, 1, Given(),
        callback=lambda progress: device.log.append(f"told of {progress.iteration}"),
    )  # fmt: skip
    search.rehearse()
    for each in (device.log, device.sent, device.copied):
        each.clear()
    with operations:
        search.run()
    launches = ["view_chains", "improve_chains", "choose_sources", "replace_chains", "read"]
    expected = ["start_chains", "read", "wait", "told of 0", *launches, "wait", "told of 1", *launches]
    for iteration in (3, 4, 5, 6):
        expected += [*launches, "wait", f"told of {iteration - 1}"]
    assert device.log == [*expected, "wait", "told of 6"]
    assert device.sent[-10:] == [8 * chains, 8 * chains] * 5, (
        "a temperature for each chain, and how far it may be behind; before the first, plans and what begins the chains"
    )
    assert device.copied == [8 * (6 * chains + 2)] * 7
    assert operations.names[-6:] == ["clone"] * 6, "the temperatures, for every step"


def test_the_same_temperature_for_all_steps() -> None:
    """Said in one number per chain, or in one per step: the same routes."""
    problem = random_problem(3, "cvrp", "none", customers=20)
    each, ends = np.array([0.02, 0.3]) * problem.side(), []
    for temperatures in (np.broadcast_to(each[:, None], (2, 9)), np.repeat(each[:, None], 9, axis=1)):
        for one in (engine("auto"), CpuEngine()):
            state = start(one, [problem], [0, 0], 1, rounds=0)
            one.improve(state, Recipe(rule="related", removals=5, orders=2), None, temperatures, 1, 1)
            ends.append(agree.everything(one, state))
    assert ends[0] == ends[1] == ends[2] == ends[3]


def test_numbers_are_read_anew_after_every_change() -> None:
    problem = random_problem(3, "cvrp", "none", customers=20)
    cuda, cpu = engine("auto"), CpuEngine()
    recipe, temperatures = Recipe(rule="related", removals=5, orders=2), np.full((3, 4), 0.3 * problem.side())
    states: list[Any] = [start(one, [problem], [0, 0, 0], 1, rounds=0) for one in (cuda, cpu)]
    changes: list[Any] = [
        lambda one, state: one.improve(state, recipe, None, temperatures, 1, 1),
        lambda one, state: one.improve(state, recipe, None, temperatures, 1, 2, deadline=time.perf_counter() + 600),
        lambda one, state: one.exchange(state, np.zeros(1), 1, 2),
        lambda one, state: one.evaluate(state, recipe, None, 8, 1, 3, keep_best=True),
    ]
    for change in changes:
        before = states[1].stats().costs
        for one, state in zip((cuda, cpu), states, strict=True):
            change(one, state)
        assert not np.array_equal(before, states[1].stats().costs)
        assert np.array_equal(states[0].stats().costs, states[1].stats().costs)
        cuda.device.copied.clear()  # type: ignore[attr-defined]
        assert np.array_equal(states[0].stats().best_costs, states[1].stats().best_costs)
        assert cuda.device.copied == [], "and only then"  # type: ignore[attr-defined]


def test_a_copy_arrives_later(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is ordered when it is asked for; whoever waits for long makes pauses, and can be interrupted."""
    asked, pauses = [False] * 5 + [True], list[float]()

    class Event:
        def record(self) -> None:
            order.append("event")

        def query(self) -> bool:
            order.append("query")
            return asked.pop(0)

    def empty(shape: Any, dtype: Any, pin_memory: bool) -> torch.Tensor:
        order.append("memory")
        assert pin_memory
        return torch.empty(shape, dtype=dtype)

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 3:
            raise KeyboardInterrupt

    order: list[str] = []
    gpu = Device.__new__(Device)
    gpu.torch = SimpleNamespace(empty=empty, cuda=SimpleNamespace(Event=Event))
    monkeypatch.setattr(device_module, "SPIN", -1.0)
    monkeypatch.setattr(device_module.time, "sleep", pause)
    tensor = torch.tensor([1, 2, 3])
    arrived = gpu.read(tensor)
    assert order == ["memory", "event"]
    tensor.fill_(9)  # what is launched later
    with pytest.raises(KeyboardInterrupt):
        arrived()
    assert arrived().tolist() == [1, 2, 3]
    assert pauses == [device_module.PAUSE] * 5


def test_rollouts_that_do_not_fit_are_weighed_in_global_memory() -> None:
    problem = random_problem(5, "cvrp", "none", customers=130, layout="uniform")
    problem = problem.replace(demand=np.r_[0.0, np.ones(100), np.full(30, 90.0)], capacity=100.0)
    long = Solution([list(range(1, 101)), *([c] for c in range(101, 131))])  # routes of full vehicles have five
    cuda, cpu = engine("auto"), CpuEngine()
    recipe = Recipe(rule="related", removals=1, orders=2)
    listed: list[int] = []
    launch = cuda.device.launch

    def counted(kernel: Any, grid: int, threads: int, shared: int, *arguments: Any) -> None:
        launch(kernel, grid, threads, shared, *arguments)
        if kernel[0] == "evaluate_rollouts":
            listed.append(int(arguments[-1][0]))

    cuda.device.launch = counted  # type: ignore[method-assign]
    ends = []
    for each in (cuda, cpu):
        state = start(each, [problem], [0, 0], 1, init=long)
        ends.append(each.evaluate(state, recipe, None, 12, 1, 1, keep_best=True).tolist())
        ends[-1].append(agree.everything(each, state))
    assert ends[0] == ends[1]
    assert 0 < listed[0] < 24


def test_a_deadline_drops_what_is_under_way() -> None:
    problem = random_problem(2, "cvrp", "none", customers=60, layout="uniform")
    cuda = engine("auto")
    state = start(cuda, [problem], [0, 0], 1, rounds=0)
    before = cuda.export(state, 0, best=False)
    recipe = Recipe(rule="random", removals=60, all_routes=True, orders=2)
    cuda.improve(state, recipe, None, np.full((2, 1000), -1e9), 1, 1, deadline=time.perf_counter() + 0.3)
    assert 0 <= state.stats().made < 2000
    assert cuda.export(state, 0, best=False) == before


def test_compiling_begins_before_it_is_asked_for() -> None:
    """What takes longest to compile is named first, and without the parts that only other calls need."""
    problem, cuda = random_problem(1, "cvrp", "none", customers=9), engine("auto")
    device: Any = cuda.device
    for blink in (0.0, 0.5):
        device.asked.clear(), device.precompiled.clear()
        settings = Settings(chains=2, rollouts=3, removals=4, orders=2, ruin="related", blink=blink)
        Search([problem], cuda, settings, Budget(None, iterations=1), 1).run()
        improving = {macros for file, macros in device.asked if file == "improve"}
        assert [file for file, _ in device.precompiled] == ["improve"] and device.precompiled[0][1] in improving
        ways = {(dict(macros)["NDS_GAPS"], dict(macros)["NDS_BLINKS"]) for macros in improving}
        assert ways == {("0", "0"), ("1", str(int(blink > 0)))}, "the start goes through all routes, without gaps"
    device.asked.clear(), device.precompiled.clear()
    settings = Settings(chains=2, rollouts=3, removals=4, orders=2, ruin="function", rule_steps=3)
    ruin = FunctionRuin(lambda request: np.tile(np.arange(1, 5, dtype=np.int32), (2, 3, 1)))
    Search([problem], cuda, settings, Budget(None, iterations=1), 1, ruin).run()
    assert len(set(device.precompiled)) == 2 and set(device.precompiled) <= device.asked, "of the ruin and of the rule"


def test_steps_of_several_launches(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a deadline no launch reinserts many, and no more than two are under way; steps made add up."""
    problem, recipe = random_problem(2, "cvrp", "none", customers=20), Recipe(rule="related", removals=5, orders=2)
    monkeypatch.setattr(cuda_engine, "LAUNCH", 10)
    temperatures, ends = np.full((2, 7), 0.1 * problem.side()), []
    for each in (engine("auto"), CpuEngine()):
        state = start(each, [problem], [0, 0], 1, rounds=0)
        each.improve(state, recipe, None, temperatures, 1, 1, deadline=time.perf_counter() + 600)
        assert state.stats().made == 14
        ends.append(agree.everything(each, state))
        if each.name == "cuda":
            log: Any = each.device.log  # type: ignore[attr-defined]
            launch = "improve_chains"
            assert log[log.index(launch) :][:7] == [launch, launch, "wait", launch, "wait", launch, "read"]
        each.improve(state, recipe, None, temperatures[:, :0], 1, 2, deadline=time.perf_counter() + 600)
        assert state.stats().made == 0
        each.improve(state, recipe, None, temperatures, 1, 3, deadline=time.perf_counter())
        assert state.stats().made <= (2 if each.name == "cuda" else 0), "none; a GPU may begin one per chain"
    assert ends[0] == ends[1]


@pytest.mark.parametrize("ahead", [False, True])
def test_a_search_ends_in_time(ahead: bool) -> None:
    problem, cuda = random_problem(2, "cvrp", "none", customers=20), engine("auto")
    cuda.runs_ahead = ahead
    budget = Budget(seconds=0.5)
    settings = Settings(ruin="related", chains=2, rollouts=4, removals=4, orders=2, start_rounds=1)
    it = Search([problem], cuda, settings, budget, 1)
    it.rehearse()
    budget.restart()
    began = time.process_time()
    assert it.run() == "time"
    assert budget.elapsed() >= 0.5
    assert time.process_time() - began < 0.5 + 0.5
    assert it.iteration > 1 and 0 < it.reconstructions <= it.iteration * 2 * 4 * 2


@pytest.mark.parametrize("limits", [{"target": 1e9}, {"patience": 2}, {}])
def test_an_interrupted_search_has_seen_all(limits: Any) -> None:
    """Also what was under way. What results can end is never ahead of them."""
    problem, cuda = random_problem(1, "cvrp", "none", customers=9), engine("auto")
    ahead: list[int] = []

    def told(progress: Any) -> None:
        ahead.append(it.iteration - progress.iteration)
        if progress.iteration == 3:
            raise KeyboardInterrupt

    settings = replace(SEARCH, start_rounds=0)
    it = Search([problem], cuda, settings, Budget(iterations=20, **limits), 1, callback=told)
    if limits.get("target"):
        assert it.run() == "target" and (it.iteration, ahead) == (0, [0])
        return
    with pytest.raises(KeyboardInterrupt):
        it.run()
    it.note_best()
    assert ahead == ([0, 0, 0, 0] if limits else [0, 0, 1, 1])
    assert it.iteration == (3 if limits else 4)
    assert it.reconstructions == it.iteration * 3 * 3 * 2
    assert it.traces[0][-1].cost == it.state.stats().best_costs.min()  # type: ignore[union-attr]


def test_small_cards_keep_the_solution_outside() -> None:
    problem = random_problem(3, "cvrp", "none", customers=60, layout="uniform")
    seen: set[str] = set()
    for limit in (8_200, 12_000, 60_000):
        cuda = engine("auto", shared_limit=limit)
        state, other = (start(each, [problem], [0], 1, rounds=0) for each in (cuda, CpuEngine()))
        for each, chains in ((cuda, state), (CpuEngine(), other)):
            each.improve(chains, Recipe(rule="related", removals=6, orders=2), None, np.full((1, 3), 0.1), 1, 1)
        assert agree.everything(cuda, state) == agree.everything(CpuEngine(), other)
        seen |= {placed for name, placed in near(cuda) if name == "improve_chains"}
    assert seen == {"100", "110", "111"}, seen


@pytest.mark.parametrize("own", [False, True], ids=["generated", "own"])
@pytest.mark.parametrize("variant", ["cvrp", "pcvrptw"])
def test_training_starts_from_what_was_drawn(variant: str, own: bool) -> None:
    """Start, improvement steps and what the network sees: as with problems, and as on the CPU."""
    cuda, source = engine("auto"), train_config.Source(problem=variant, customers=(17,))
    drawn = OwnInstances(variant, generate(variant, 20, count=3), []).recipe(17) if own else recipe_of(source, 17)
    there = draw_on_gpu(cuda, torch.device("cpu"), drawn, 4, 5, 3)
    problems = drawn.problems(4, 5, 3)
    recipe = train_config.Recipe(start_rounds=2, improvement_steps=2, warm_up_rollouts=3, removals=4, orders=2)
    seen = []
    for each, given in ((cuda, there), (engine("auto"), problems), (CpuEngine(), problems)):
        learning = prepare(each, given, recipe, 7, 5, torch.device("cpu"))
        seen.append([part.tolist() for part in learning.shown().tensors()] + [learning.state.stats().costs.tolist()])
    assert seen[0] == seen[1] == seen[2]


def test_training_on_what_the_device_draws() -> None:
    """The trajectory of a CPU, which draws the same instances. Within a batch the CPU waits for nothing but the few
    numbers of its problems, which were requested a batch before."""
    network = NetworkConfig(width=8, heads=2, feed_forward=8, seed_bits=4, seed_width=4)
    recipe = train_config.Recipe(
        batch=4, iterations=2, rollouts=4, removals=3, orders=2, start_rounds=1, improvement_steps=1,
        warm_up_rollouts=3, learning_rate=1e-2,
    )  # fmt: skip
    source = train_config.Source(problem="pcvrptw", customers=(9,))
    config = train_config.TrainConfig(network=network, train=recipe, data=(source,))
    trainers = []
    for each in (engine("auto"), CpuEngine()):
        torch.manual_seed(0)
        trainers.append(Trainer(config, Network(network), each, torch.device("cpu")))
    there, here = trainers
    device: Any = there.engine.device  # type: ignore[attr-defined]
    for number in range(3):
        device.log.clear()
        found = there.train_batch()
        log, begin = list(device.log), 4 if number == 0 else 2
        assert log[:begin] == ["place_clustered", "read"] * (begin // 2), "of the next batch; to begin with, of both"
        assert log[begin : begin + 2] == ["wait", "start_chains"]
        assert log.count("keep_best") == 2 and log.count("wait") == 3
        assert log[-3:] == ["wait", "read", "wait"] and log[-4] == "keep_best", "when there is something to report"
        expected = here.train_batch()
        for row in (found, expected):
            row.pop("seconds")
        assert found == expected
        for one, other in zip(there.network.parameters(), here.network.parameters(), strict=True):
            assert torch.equal(one, other)
    there.batches = 7
    assert (there.train_batch()["batch"], there._batches._next.number) == (8, 8)  # type: ignore[union-attr]
    for each in trainers:
        each.close()


def test_steps_that_touch_no_route() -> None:
    """Customers that nobody serves make routes of their own, where distances come from a matrix."""
    n = 20
    matrix = np.random.default_rng(1).uniform(0.1, 1.0, (n + 1, n + 1))
    np.fill_diagonal(matrix, 0.0)
    problem = Problem(demand=np.r_[0.0, np.ones(n)], capacity=8.0, distance=matrix, prize=np.r_[0.0, np.full(n, 5.0)])
    removed = np.array([[[10, 11, 12, 13]]], np.int32)
    ends = []
    for each in (engine("auto"), CpuEngine()):
        state = start(each, [problem], [0], 1, init=Solution([[1, 2, 3]]))
        each.improve(state, Recipe(removals=4, orders=2), removed, np.zeros((1, 1)), 1, 1)
        ends.append(agree.everything(each, state))
    assert ends[0] == ends[1]


@pytest.mark.parametrize("variant", ["cvrp", "vrptw"])
@pytest.mark.parametrize("removals", [2, 6, 14])
def test_registers_of_all_sizes(variant: str, removals: int) -> None:
    """Steps that touch few and many places of long routes, kept whatever they cost."""
    n, size = 440, 20 if variant == "vrptw" else 40
    problem = random_problem(42, variant, "none", customers=n, layout="uniform")
    problem = problem.replace(demand=np.r_[0.0, np.ones(n)], capacity=size + 2.0)
    if variant == "vrptw":
        problem = problem.replace(windows=np.tile([0.0, 30.0 * problem.side()], (n + 1, 1)), service=np.zeros(n + 1))
    long = Solution([list(range(c, c + size)) for c in range(1, n + 1, size)])
    recipe, ends = Recipe(rule="random", removals=removals, orders=3), []
    for each in (engine("auto"), CpuEngine()):
        state = start(each, [problem], [0], 1, init=long)
        each.improve(state, recipe, None, np.full((1, 8), problem.side()), 1, 1)
        ends.append(agree.everything(each, state))
    assert ends[0] == ends[1]


def test_savings_are_those_of_the_cpu() -> None:
    """Of problems of several kinds, whose chains are not in the order of the kinds; one is larger than its lists."""
    kinds = ("cvrp", "pcvrp", "cvrp")
    problems = [random_problem(i, kind, "none", customers=10 + i) for i, kind in enumerate(kinds)]
    problems += generate("vrptw", 300, seed=0)
    found = []
    for each in (engine("auto"), CpuEngine()):
        state: Any = each.start(problems, [2, 0, 1, 2, 3])
        alone = state.stats().costs
        assert each.construct(state, None)
        assert np.all(state.stats().costs <= alone) and np.any(state.stats().costs < alone)
        found.append([agree.everything(each, state), state.stats().best_costs.tolist()])
    assert found[0] == found[1]


def test_problems_are_converted_for_savings_before_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rehearsal does it, also if only the time limit asks for savings."""
    problem, cuda, log = random_problem(1, "cvrp", "none", customers=9), engine("auto"), []
    begin, construct = CpuEngine.start, CudaEngine.construct
    monkeypatch.setattr(CpuEngine, "start", lambda *a, **k: log.append("converted") or begin(*a, **k))
    monkeypatch.setattr(CudaEngine, "construct", lambda *a: log.append("savings") or construct(*a))
    monkeypatch.setattr(asa, "CONSTRUCT", 1000.0)
    search = Search([problem], cuda, Settings(chains=2, rollouts=3, removals=4), Budget(600.0, iterations=1), 1)
    search.rehearse()
    assert log == ["savings", "converted"]
    search.run()
    assert log == ["savings", "converted", "savings"]
