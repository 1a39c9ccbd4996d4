"""Random numbers, selections by them, and the policy as a ruin."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from ndsvrp import Problem, RuinRequest
from ndsvrp.engine.base import Regions
from ndsvrp.engine.cpu import CpuEngine
from ndsvrp.errors import EngineError
from ndsvrp.generate import generate
from ndsvrp.policy import Network, NetworkConfig, Policy, rollout
from ndsvrp.policy.inputs import Inputs, static_inputs
from ndsvrp.policy.random_numbers import RandomNumbers
from ndsvrp.policy.rollout import Sampler, invert, sample
from ndsvrp.search.augment import augmentations
from ndsvrp.search.start import start

TINY = NetworkConfig(width=8, heads=2, feed_forward=8, layers_before=1, layers_after=1, seed_bits=5, seed_width=4)
BELOW_ONE = float(np.nextafter(np.float32(1), np.float32(0)))


def tiny(seed: int = 0, **changes: Any) -> Network:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return Network(replace(TINY, **changes))


def ruin_request(problem: Problem, chains: int = 3, **changes: Any) -> RuinRequest:
    engine = CpuEngine()
    state = start(engine, [problem], np.zeros(chains, int), 0, rounds=5)
    usual = {"rollouts": 6, "removals": 4, "random": np.random.default_rng(1)}
    return RuinRequest(problem, augmentations(problem, chains), engine.view(state), **usual | changes)


# --- random numbers ------------------------------------------------------------------------------------


def seed_numbers(numbers: RandomNumbers) -> np.ndarray:
    """Return the seed vectors as integers, (B, K)."""
    return (numbers.seeds.numpy().astype(int) << np.arange(numbers.seeds.shape[-1])).sum(-1)


@pytest.mark.parametrize("rollouts", [1, 7, 31, 32])
def test_seeds_are_distinct_while_they_last(rollouts: int) -> None:
    numbers = RandomNumbers.from_generator(np.random.default_rng(0), 300, rollouts, 3, 5)
    assert numbers.seeds.shape == (300, rollouts, 5) and numbers.uniforms.shape == (300, rollouts, 3)
    assert set(numbers.seeds.unique().tolist()) == {0.0, 1.0}
    found = seed_numbers(numbers)
    assert all(len(set(row)) == rollouts for row in found)
    assert set(found.ravel()) == set(range(32)), "all seeds occur"
    assert rollouts == 1 or not np.array_equal(found[0], found[1]), "in different orders"


def test_seeds_repeat_when_there_are_too_few() -> None:
    found = seed_numbers(RandomNumbers.from_generator(np.random.default_rng(0), 40, 33, 1, 5))
    assert found.min() == 0 and found.max() == 31
    assert all(len(set(row)) < 33 for row in found)
    counts = np.bincount(found.ravel(), minlength=32)
    expected = 40 * 33 / 32
    assert ((counts - expected) ** 2 / expected).sum() < 61.1  # chi-square, 31 degrees of freedom, 0.1 %


def test_seeds_of_the_default_network() -> None:
    """Without replacement up to 1024, with it beyond."""
    assert [
        len(set(seed_numbers(RandomNumbers.from_generator(np.random.default_rng(0), 1, k, 1, 10))[0]))
        for k in (128, 1024)
    ] == [128, 1024]
    assert len(set(seed_numbers(RandomNumbers.from_generator(np.random.default_rng(0), 1, 1025, 1, 10))[0])) < 1000


def test_uniforms() -> None:
    uniforms = RandomNumbers.from_generator(np.random.default_rng(0), 20, 30, 50, 5).uniforms
    assert uniforms.dtype == torch.float32
    assert 0 <= float(uniforms.min()) < 1e-3 and 0.999 < float(uniforms.max()) < 1
    assert float(uniforms.mean()) == pytest.approx(0.5, abs=0.01)


@pytest.mark.parametrize("rollouts", [8, 40])
def test_numbers_follow_from_the_generator(rollouts: int) -> None:
    first, again = (RandomNumbers.from_generator(np.random.default_rng(7), 2, rollouts, 3, 5) for _ in range(2))
    other = RandomNumbers.from_generator(np.random.default_rng(8), 2, rollouts, 3, 5)
    assert torch.equal(first.seeds, again.seeds) and torch.equal(first.uniforms, again.uniforms)
    assert not torch.equal(first.seeds, other.seeds) and not torch.equal(first.uniforms, other.uniforms)


# --- selection by a uniform number -----------------------------------------------------------------------


def inverted(probabilities: list[float], *uniforms: float) -> list[int]:
    table = torch.tensor(probabilities).expand(1, len(uniforms), len(probabilities))
    return invert(table, torch.tensor([uniforms]))[0].tolist()  # type: ignore[no-any-return]


def test_invert_by_hand() -> None:
    # Running sums 0.125, 0.125, 0.625, 0.875, 1: exact in binary, and the boundary belongs to the next.
    probabilities = [0.125, 0.0, 0.5, 0.25, 0.125]
    assert inverted(probabilities, 0.0, 0.12, 0.125, 0.3, 0.62, 0.625, 0.86, 0.875, 0.99) == [0, 0, 2, 2, 2, 3, 3, 4, 4]


@pytest.mark.parametrize(
    ("probabilities", "first", "last"),
    [
        ([1.0], 0, 0),
        ([0.0, 1.0], 1, 1),
        ([1.0, 0.0], 0, 0),
        ([0.0, 0.0, 0.5, 0.5, 0.0, 0.0], 2, 3),
        ([0.0, 0.1, 0.2, 0.3, 0.4, 0.0], 1, 4),  # 0.1 + … + 0.4 is not quite 1
        ([0.0, 1e-30, 1.0, 0.0], 1, 2),
        ([0.0, 0.7, 1e-20, 0.0], 1, 1),  # too small for a float32 sum
    ],
)
def test_invert_never_selects_a_zero(probabilities: list[float], first: int, last: int) -> None:
    assert inverted(probabilities, 0.0, BELOW_ONE, 1.0) == [first, last, last]


def test_invert_never_selects_a_zero_among_many() -> None:
    """Softmax sums differ from 1 in float32; zeros are never selected, not even at the ends."""
    random = np.random.default_rng(0)
    logits = torch.from_numpy(random.normal(0, 8, (64, 1, 700)).astype(np.float32))
    masked = torch.from_numpy(random.random((64, 1, 700)) < 0.6)
    masked[:, :, :40] = masked[:, :, -40:] = True
    probabilities = torch.softmax(logits.masked_fill(masked, -torch.inf), dim=-1).expand(64, 50, 700)
    uniforms = torch.from_numpy(random.random((64, 50), np.float32))
    uniforms[:, :3] = torch.tensor([0.0, BELOW_ONE, 1.0])
    found = invert(probabilities, uniforms)
    assert int(found.max()) < 660 and int(found.min()) >= 40
    assert float(probabilities.gather(2, found[..., None]).min()) > 0


def test_invert_gives_the_frequencies() -> None:
    probabilities = np.array([0.05, 0.0, 0.25, 0.4, 0.1, 0.2, 0.0])
    uniforms = torch.from_numpy(np.random.default_rng(0).random((1, 20_000), np.float32))
    found = invert(torch.from_numpy(probabilities.astype(np.float32)).expand(1, 20_000, 7), uniforms)
    counts = np.bincount(found[0].numpy(), minlength=7)
    assert counts[1] == counts[6] == 0
    expected = 20_000 * probabilities[probabilities > 0]
    assert ((counts[probabilities > 0] - expected) ** 2 / expected).sum() < 18.5  # chi-square, 4 degrees, 0.1 %


def test_sampling_gives_the_frequencies() -> None:
    """Pairs of customers are as frequent as their probabilities by teacher forcing."""
    problem = generate("cvrp", 4, seed=3)[0]
    network = tiny(seed_bits=1)
    inputs = static_inputs([problem], augmentations(problem, 1), "cpu").showing(ruin_request(problem, 1).view)
    pairs = [(a, b) for a in range(1, 5) for b in range(1, 5) if a != b]
    uniforms = torch.from_numpy(np.random.default_rng(5).random((1, 20_000, 2), np.float32))
    rollouts = sample(network, inputs, RandomNumbers(torch.ones(1, 20_000, 1), uniforms))
    assert rollouts is not None
    with torch.no_grad():
        expected = 20_000 * network(inputs, torch.tensor([pairs]), torch.ones(1, 12, 1))[0].exp().numpy()
    assert expected.min() > 5
    counts = np.array([int((rollouts.removed[0] == torch.tensor(pair)).all(-1).sum()) for pair in pairs])
    assert counts.sum() == 20_000
    assert ((counts - expected) ** 2 / expected).sum() < 31.3  # chi-square, 11 degrees, 0.1 %


# --- rollouts --------------------------------------------------------------------------------------------


def test_rollouts_are_independent() -> None:
    """A rollout depends on its own seed and numbers only."""
    problem = generate("cvrp", 12, seed=1)[0]
    inputs = static_inputs([problem], augmentations(problem, 1), "cpu").showing(ruin_request(problem, 1).view)
    network, numbers = tiny(), RandomNumbers.from_generator(np.random.default_rng(0), 1, 9, 5, 5)
    whole = sample(network, inputs, numbers)
    part = sample(network, inputs, RandomNumbers(numbers.seeds[:, [7, 2]], numbers.uniforms[:, [7, 2]]))
    assert whole is not None and part is not None
    assert torch.equal(whole.removed[:, [7, 2]], part.removed)
    assert torch.allclose(whole.log_probability[:, [7, 2]], part.log_probability, rtol=0, atol=1e-5)


def test_a_rollout_begins_with_the_shorter_one() -> None:
    problem = generate("cvrp", 12, seed=1)[0]
    inputs = static_inputs([problem], augmentations(problem, 1), "cpu").showing(ruin_request(problem, 1).view)
    network, numbers = tiny(), RandomNumbers.from_generator(np.random.default_rng(0), 1, 9, 5, 5)
    whole = sample(network, inputs, numbers)
    part = sample(network, inputs, RandomNumbers(numbers.seeds, numbers.uniforms[:, :, :2]))
    assert whole is not None and part is not None
    assert torch.equal(whole.removed[:, :, :2], part.removed)


def test_sampling_needs_no_gradient() -> None:
    problem = generate("cvrp", 6, seed=1)[0]
    inputs = static_inputs([problem], augmentations(problem, 1), "cpu").showing(ruin_request(problem, 1).view)
    rollouts = sample(tiny(), inputs, RandomNumbers.from_generator(np.random.default_rng(0), 1, 2, 3, 5))
    assert rollouts is not None and not rollouts.log_probability.requires_grad


def test_deadline() -> None:
    problem = generate("cvrp", 6, seed=1)[0]
    inputs = static_inputs([problem], augmentations(problem, 1), "cpu").showing(ruin_request(problem, 1).view)
    numbers = RandomNumbers.from_generator(np.random.default_rng(0), 1, 2, 3, 5)
    assert sample(tiny(), inputs, numbers, deadline=time.perf_counter()) is None
    assert sample(tiny(), inputs, numbers, deadline=time.perf_counter() + 3600) is not None


# --- the policy ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("variant", ["cvrp", "vrptw", "pcvrp", "pcvrptw"])
def test_policy(variant: str) -> None:
    problem = generate(variant, 9, seed=1)[0]
    removed = Policy(tiny())(ruin_request(problem, removals=7))
    assert removed.shape == (3, 6, 7) and removed.dtype == np.int32
    ordered = np.sort(removed, axis=-1)
    assert ordered.min() >= 1 and ordered.max() <= 9
    assert np.all(ordered[..., 1:] > ordered[..., :-1]), "no customer twice"
    assert len({tuple(one) for chain in removed.tolist() for one in chain}) > 6


def test_policy_follows_from_the_generator() -> None:
    problem = generate("cvrp", 9, seed=1)[0]
    first, again, other = (
        Policy(tiny())(ruin_request(problem, random=np.random.default_rng(seed))) for seed in (4, 4, 5)
    )
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_policy_removes_all_customers() -> None:
    problem = generate("cvrp", 5, seed=1)[0]
    removed = Policy(tiny())(ruin_request(problem, removals=5))
    assert np.array_equal(np.sort(removed, axis=-1), np.broadcast_to(np.arange(1, 6), (3, 6, 5)))
    alone = generate("cvrp", 1, seed=1)[0]
    assert np.array_equal(Policy(tiny())(ruin_request(alone, removals=1)), np.ones((3, 6, 1)))


@pytest.fixture
def sampled(monkeypatch: pytest.MonkeyPatch) -> list[Inputs]:
    """The inputs of the network, part by part."""
    seen: list[Inputs] = []
    real = rollout.sample

    def watching(network: Network, inputs: Inputs, *rest: Any) -> Any:
        seen.append(inputs)
        return real(network, inputs, *rest)

    monkeypatch.setattr(rollout, "sample", watching)
    return seen


@pytest.mark.parametrize(
    ("part", "sizes"), [(1, [1] * 5), (54, [1] * 5), (108, [2, 2, 1]), (216, [4, 1]), (10**9, [5])]
)
@pytest.mark.parametrize("threads", [1, 2, 7])
def test_policy_in_parts(
    monkeypatch: pytest.MonkeyPatch, sampled: list[Inputs], part: int, sizes: list[int], threads: int
) -> None:
    """Five chains of six rollouts over nine customers, in parts of 1, 2, 4 and 5, on any number of cores."""
    problem = generate("cvrp", 9, seed=1)[0]
    monkeypatch.setattr(rollout, "PART", 10**9)
    whole = Policy(tiny())(ruin_request(problem, chains=5))
    sampled.clear()
    monkeypatch.setattr(rollout, "PART", part)
    assert np.array_equal(Policy(tiny())(ruin_request(problem, chains=5, threads=threads)), whole)
    assert sorted(len(inputs.nodes) for inputs in sampled) == sorted(sizes)


def test_too_little_memory_for_the_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """The message says how many chains would fit."""
    policy = Policy(tiny())

    def full(*arguments: Any, **options: Any) -> Any:
        raise torch.cuda.OutOfMemoryError

    for name in ("customers", "customers_in_regions"):
        monkeypatch.setattr(policy.sampler, name, full)
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: None)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda: (2**20, 2**30))
    problem = generate("cvrp", 12, seed=1)[0]
    fit = int(0.9 * 2**20) // (13 * 40 * policy.network.config.width)
    with pytest.raises(EngineError, match=rf"3 chains of 12 customers: about {fit} would fit$"):
        policy(ruin_request(problem))
    problem = generate("cvrp", 60, seed=1)[0]
    parts = Regions(np.full(12, 15, np.int32), np.ones((12, 60), np.int32))
    fit = int(0.9 * 2**20) // (33 * 40 * policy.network.config.width)
    with pytest.raises(EngineError, match=rf"12 chains of 32 customers: about {fit} would fit$"):  # a window each
        policy(ruin_request(problem, regions=parts))


def test_threads_change_no_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = generate("cvrp", 30, seed=1)[0]
    inputs = static_inputs([problem], augmentations(problem, 8), "cpu").showing(ruin_request(problem, 8).view)
    monkeypatch.setattr(rollout, "PART", 3 * 16 * 30)
    numbers = RandomNumbers.from_generator(np.random.default_rng(0), 8, 16, 5, 5)
    found = [Sampler(tiny())(inputs, numbers, threads=threads) for threads in (1, 2, 3, 16)]
    for other in found[1:]:
        assert torch.equal(found[0].removed, other.removed)
        assert torch.equal(found[0].log_probability, other.log_probability)
    customers = Sampler(tiny()).customers(inputs, numbers)
    assert customers is not None and customers.dtype == torch.int32
    assert torch.equal(customers, found[0].removed)


def test_threads_of_torch_are_restored(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = generate("cvrp", 9, seed=1)[0]
    torch.set_num_threads(2)
    try:
        Policy(tiny())(ruin_request(problem))
        assert torch.get_num_threads() == 2
        monkeypatch.setattr(rollout, "sample", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            Policy(tiny())(ruin_request(problem))
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(1)


def test_policy_when_time_is_up() -> None:
    problem = generate("cvrp", 9, seed=1)[0]
    removed = Policy(tiny())(ruin_request(problem, deadline=time.perf_counter()))
    assert removed.shape == (3, 0, 4) and removed.dtype == np.int32


def test_policy_on_a_cpu_ends_at_the_deadline() -> None:
    policy = Policy(tiny())
    policy(ruin_request(generate("cvrp", 9, seed=1)[0]))
    assert policy.expected_seconds() == 0.0


def test_duration_of_a_call_is_known_after_its_end() -> None:
    """Three calls of 1, 2 and 3 ms; the last ones may still run."""

    class Event:
        def __init__(self, at: float, done: bool = True) -> None:
            self.at, self.done = at, done

        def query(self) -> bool:
            return self.done

        def elapsed_time(self, other: Event) -> float:
            return other.at - self.at

    policy = Policy(tiny())
    calls = [(Event(0.0), Event(1.0)), (Event(5.0), Event(7.0, done=False)), (Event(7.0), Event(10.0, done=False))]
    policy._marks.extend(calls)
    assert [policy.expected_seconds(), policy.expected_seconds()] == [1e-3, 1e-3]
    calls[1][1].done = True
    assert policy.expected_seconds() == 2e-3
    calls[2][1].done = True
    assert [policy.expected_seconds(), policy.expected_seconds()] == [3e-3, 3e-3]


def test_policy_takes_views_in_one_tensor() -> None:
    now = ruin_request(generate("cvrp", 9, seed=1)[0])
    whole = torch.from_numpy(np.stack(now.view))
    removed = Policy(tiny())(replace(now, view=whole, random=np.random.default_rng(1)))
    assert removed.dtype == torch.int32
    assert np.array_equal(removed.numpy(), Policy(tiny())(now))


@pytest.mark.parametrize("threads", [1, 2])
def test_policy_when_time_is_up_between_two_parts(monkeypatch: pytest.MonkeyPatch, threads: int) -> None:
    """All chains get rollouts, or none."""
    problem = generate("cvrp", 9, seed=1)[0]
    real, calls = rollout.sample, []

    def slowing(network: Network, inputs: Inputs, numbers: RandomNumbers, deadline: float | None = None) -> Any:
        calls.append(deadline)
        return real(network, inputs, numbers, time.perf_counter() if len(calls) == 3 else deadline)

    monkeypatch.setattr(rollout, "PART", 1)
    monkeypatch.setattr(rollout, "sample", slowing)
    late = time.perf_counter() + 3600
    assert Policy(tiny())(ruin_request(problem, threads=threads, deadline=late)).shape == (3, 0, 4)
    assert calls == [late] * 3


def test_policy_reads_the_solution() -> None:
    problem = generate("cvrp", 9, seed=1)[0]
    now = ruin_request(problem, chains=1, rollouts=32)
    other = start(CpuEngine(), [problem], [0], 0, rounds=0)
    then = replace(now, view=CpuEngine().view(other), random=np.random.default_rng(1))
    policy = Policy(tiny())
    assert not np.array_equal(policy(now), policy(then))


def test_policy_serves_several_problems() -> None:
    first, second = generate("cvrp", 9, count=2, seed=1)
    policy = Policy(tiny())
    results = [policy(ruin_request(problem)) for problem in (first, second, first)]
    assert np.array_equal(results[0], results[2])
    assert np.array_equal(results[1], Policy(tiny())(ruin_request(second)))
    larger = generate("vrptw", 15, seed=1)[0]
    assert np.array_equal(policy(ruin_request(larger, chains=2)), Policy(tiny())(ruin_request(larger, chains=2)))


def test_policy_serves_other_chains() -> None:
    """The same problem with another number of chains, or other augmentations."""
    problem = generate("cvrp", 9, seed=1)[0]
    policy = Policy(tiny())
    policy(ruin_request(problem, chains=3))
    assert np.array_equal(policy(ruin_request(problem, chains=5)), Policy(tiny())(ruin_request(problem, chains=5)))
    turned = replace(ruin_request(problem, chains=3), coordinates=augmentations(problem, 8)[5:])
    fresh = replace(turned, random=np.random.default_rng(1))
    assert np.array_equal(policy(turned), Policy(tiny())(fresh))


def test_policy_reads_a_matrix_in_units_of_its_side(sampled: list[Inputs]) -> None:
    far = np.array([[0, 10, 20], [10, 0, 80], [20, 40, 0]], float)
    problem = Problem(distance=far, demand=[0, 1, 1], capacity=3)
    Policy(tiny())(ruin_request(problem, chains=2, removals=2))
    assert sampled[0].matrix is not None
    assert sampled[0].matrix.numpy() == pytest.approx(far / (80 / np.sqrt(2)), rel=1e-6)
    assert sampled[0].nodes.shape == (2, 3, 10)
