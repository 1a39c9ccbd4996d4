"""The policy and its training on a GPU: captured graphs agree with eager operations, bfloat16 with float32."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from gpu.test_training_gpu import NETWORK, nobody_waits
from ndsvrp.check import check
from ndsvrp.engine import base
from ndsvrp.engine.cpu import CpuEngine
from ndsvrp.errors import NdsWarning
from ndsvrp.generate import generate
from ndsvrp.policy import Network, NetworkConfig, Policy
from ndsvrp.policy.graphs import low_precision
from ndsvrp.policy.inputs import Inputs, static_inputs
from ndsvrp.policy.random_numbers import RandomNumbers
from ndsvrp.policy.rollout import Sampler, sample
from ndsvrp.ruin import RuinRequest
from ndsvrp.search.augment import augmentations
from ndsvrp.search.plane import plane
from ndsvrp.search.start import start
from ndsvrp.train.checkpoint import load_checkpoint
from ndsvrp.train.config import Recipe, Source, TrainConfig, Validation
from ndsvrp.train.run import train
from ndsvrp.train.trainer import Trainer

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU"),
]


def inputs_on(device: str, customers: int, batch: int) -> Inputs:
    problems = generate("pcvrp", customers, count=batch, seed=3)
    return static_inputs(problems, np.stack([plane(problem) for problem in problems]), device)


def network() -> Network:
    torch.manual_seed(1)
    return Network(NETWORK).cuda()


@pytest.mark.parametrize("customers", [12, 150])
def test_captured_rollouts(customers: int) -> None:
    """A captured graph selects the same as eager operations, call after call.

    Its probabilities are those of teacher forcing, to the precision of bfloat16.
    """
    policy, inputs = network(), inputs_on("cuda", customers, 4)
    sampler = Sampler(policy)
    with pytest.warns(NdsWarning, match="no kernel selects customers for a network of this shape"):
        assert sampler._fused is None
    for seed in (1, 2, 1):
        numbers = RandomNumbers.from_generator(np.random.default_rng(seed), 4, 16, 8, NETWORK.seed_bits).to(
            torch.device("cuda")
        )
        captured = sampler(inputs, numbers)
        with low_precision(torch.device("cuda")):
            plain = sample(policy, inputs, numbers)
            assert captured is not None and plain is not None
            with torch.no_grad():
                forced = policy(inputs, captured.removed, numbers.seeds)
        assert torch.equal(captured.removed, plain.removed)
        assert (captured.removed.sort(dim=-1).values.diff(dim=-1) > 0).all(), "no customer is selected twice"
        assert (captured.log_probability - forced).abs().max() < 0.05 * 8


@pytest.mark.parametrize("customers", [1, 9, 150, 1000])
def test_fused_rollouts(customers: int) -> None:
    """The fused decoder selects no customer twice, agrees with teacher forcing, and is deterministic."""
    torch.manual_seed(1)
    policy = Network(NetworkConfig()).cuda()
    batch, removals = 3, min(15, customers)
    inputs = inputs_on("cuda", customers, batch)
    sampler = Sampler(policy)
    numbers = RandomNumbers.from_generator(np.random.default_rng(1), batch, 200, removals, 10).to(torch.device("cuda"))
    first, again = sampler(inputs, numbers), sampler(inputs, numbers)
    assert first is not None and again is not None and sampler._fused is not None
    with low_precision(torch.device("cuda")), torch.no_grad():
        forced = policy(inputs, first.removed, numbers.seeds)
    assert torch.equal(first.removed, again.removed)
    assert first.removed.min() >= 1 and first.removed.max() <= customers
    assert (first.removed.sort(dim=-1).values.diff(dim=-1) > 0).all()
    assert (first.log_probability - forced).abs().max() < 0.05 * removals
    assert (first.log_probability - forced).abs().mean() < 0.01 * removals


def test_frequencies_of_fused_rollouts() -> None:
    """A chi-square test of the second selection, over many rollouts of one seed."""
    torch.manual_seed(1)
    policy, inputs = Network(NetworkConfig(clip=3.0)).cuda(), inputs_on("cuda", 30, 1)
    rollouts = 200_000
    seeds = torch.zeros(1, rollouts, 10, device="cuda")
    uniforms = torch.rand(1, rollouts, 2, device="cuda", generator=torch.Generator("cuda").manual_seed(1))
    drawn = Sampler(policy)(inputs, RandomNumbers(seeds, uniforms))
    assert drawn is not None
    pairs = torch.cartesian_prod(torch.arange(1, 31), torch.arange(1, 31)).cuda()
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    with low_precision(torch.device("cuda")), torch.no_grad():
        probabilities = policy(inputs, pairs[None], seeds[:, : len(pairs)])[0].double().exp().cpu()
    counts = torch.zeros(31, 31, dtype=torch.float64)
    counts.index_put_(tuple(drawn.removed[0].T.cpu()), torch.ones(rollouts, dtype=torch.float64), accumulate=True)
    seen, expected = counts[tuple(pairs.T.cpu())], probabilities / probabilities.sum() * rollouts
    likely = expected > 10
    # bfloat16 changes a probability by some thousandths, in addition to the noise.
    chi = ((seen - expected) ** 2 / (expected + (0.01 * expected) ** 2))[likely].sum()
    assert chi < likely.sum() + 4.0 * (2.0 * likely.sum()) ** 0.5


def test_launches_do_not_wait() -> None:
    """View, policy and steps are launched without waiting; afterwards the policy's duration is known."""
    from ndsvrp.engine.cuda import CudaEngine

    problem, chains = generate("cvrp", 60, seed=1)[0], 4
    engine, policy = CudaEngine(), Policy(network(), "cuda")
    state, coordinates = start(engine, [problem], np.zeros(chains, np.int32), 1, rounds=2), augmentations(problem, 4)
    temperatures = np.broadcast_to(np.full((chains, 1), 1e-3), (chains, 16))

    def iterate(i: int) -> torch.Tensor:
        view = engine.view(state, on_device=True)
        removed = policy(RuinRequest(problem, coordinates, view, 16, 6, np.random.default_rng(i)))
        engine.improve(state, base.Recipe(removals=6, orders=2), removed, temperatures, 1, i)
        engine.exchange(state, np.zeros(1), 1, i)
        asked.append(state.snapshot())
        return removed

    asked: list[Any] = []

    with pytest.warns(NdsWarning, match="no kernel selects customers for a network of this shape"):
        first = iterate(1)
    with nobody_waits():
        second = iterate(2)
    torch.cuda.synchronize()
    assert not torch.equal(first, second)
    assert 0.0 < policy.expected_seconds() < 1.0
    first_numbers, numbers = (numbers() for numbers in asked)
    assert first_numbers.made == numbers.made == chains * 16
    assert len(set(numbers.costs.tolist())) == 1, "all chains continue from the best"
    assert numbers.costs.tolist() == state.stats().costs.tolist()
    assert numbers.best_costs.min() <= first_numbers.best_costs.min()


def test_regions() -> None:
    """Windows in the graph are those of plain operations, and a search in regions does not wait either."""
    from ndsvrp.engine.cuda import CudaEngine

    problem, chains = generate("pcvrp", 90, seed=1)[0], 4
    engine, policy = CudaEngine(), Policy(network(), "cuda")
    state, coordinates = start(engine, [problem], np.zeros(chains, np.int32), 1, rounds=2), augmentations(problem, 4)
    recipe, temperatures = base.Recipe(removals=6, orders=2, regions=3), np.broadcast_to(np.full((4, 1), 1e-3), (4, 16))
    removed: list[torch.Tensor] = []

    def iterate(i: int) -> None:
        view = engine.view(state, on_device=True)

        def choose(regions: base.Regions) -> torch.Tensor:
            random = np.random.default_rng(i)
            removed.append(policy(RuinRequest(problem, coordinates, view, 16, 6, random, regions=regions)))
            if i == 1:
                counts, customers = (part.clone() for part in regions)
                numbers = policy._random_numbers(np.random.default_rng(i), 12, 16, 6)
                static = policy._inputs
                assert static is not None
                with torch.no_grad():
                    plain = policy.sampler._sample_in_regions(*numbers, static.nodes, view, counts, customers)
                assert plain is not None and torch.equal(plain, removed[-1])
                own = [set(row[:count].tolist()) for count, row in zip(counts, customers, strict=True)]
                assert sorted(set().union(*own[:3])) == list(range(1, 91))
            return removed[-1]

        engine.improve(state, recipe, choose, temperatures, 1, i)
        engine.improve(state, base.Recipe(rule="string", all_routes=True, regions=3), None, temperatures, 1, i)
        engine.exchange(state, np.zeros(1), 1, i)

    with pytest.warns(NdsWarning, match="no kernel selects customers for a network of this shape"):
        iterate(1)
    with nobody_waits():
        iterate(2)
    torch.cuda.synchronize()
    assert not torch.equal(*removed)
    assert state.stats().made == chains * 3 * 16
    assert all(check(problem, engine.export(state, i)).feasible for i in range(chains))


def test_captured_gradients() -> None:
    """A graph adds to the gradients, for several shapes; capturing it does not."""
    config = TrainConfig(network=NETWORK, train=Recipe(batch=4))
    trainer = Trainer(config, network(), CpuEngine(), torch.device("cuda"))
    for customers in (12, 40, 12):
        inputs = inputs_on("cuda", customers, 4)
        numbers = RandomNumbers.from_generator(np.random.default_rng(1), 4, 1, 6, NETWORK.seed_bits).to(
            torch.device("cuda")
        )
        with low_precision(torch.device("cuda")):
            rollouts = sample(trainer.network, inputs, numbers)
        assert rollouts is not None
        arguments = (rollouts.removed, numbers.seeds, torch.linspace(0.5, 2.0, 4, device="cuda"), *inputs.tensors())
        gradients = [parameter.grad for parameter in trainer.network.parameters()]
        before = [gradient.clone() for gradient in gradients if gradient is not None]
        captured_loss = trainer.gradient(*arguments).clone()
        captured = [gradient.clone() for gradient in gradients if gradient is not None]
        for gradient, value in zip(gradients, before, strict=True):
            assert gradient is not None
            gradient.copy_(value)
        eager_loss = trainer._gradient(*arguments)
        assert torch.allclose(captured_loss, eager_loss, rtol=1e-3)
        # All gradients together: those near 0 are only noise in bfloat16.
        ours, theirs = (torch.cat([g.flatten() for g in some if g is not None]) for some in (captured, gradients))
        assert torch.linalg.vector_norm(ours - theirs) <= 0.02 * torch.linalg.vector_norm(theirs)


def test_resumed_to_rounding(tmp_path: Path) -> None:
    """With one iteration per batch, before rounding changes a selection, a resumed run equals the other."""
    recipe = Recipe(
        batch=4, iterations=1, rollouts=8, removals=5, orders=2, start_rounds=2, improvement_steps=1,
        warm_up_rollouts=4, instances=8, learning_rate=1e-4,
    )  # fmt: skip
    whole = TrainConfig(
        network=NETWORK, train=recipe, validation=Validation(states=2, search_instances=0),
        data=(Source(customers=(20,)),),
    )  # fmt: skip
    half = replace(whole, train=replace(recipe, instances=4))
    once = train(whole, tmp_path / "once", device="cuda")
    train(half, tmp_path / "twice", device="cuda")
    with pytest.warns(UserWarning, match="configuration differs"):
        twice = train(whole, tmp_path / "twice", device="cuda", resume=True)
    ours, theirs = load_checkpoint(once.checkpoint), load_checkpoint(twice.checkpoint)
    assert (ours.steps, ours.batches) == (theirs.steps, theirs.batches) == (2, 2)
    for name, weight in ours.weights.items():
        assert torch.allclose(weight, theirs.weights[name], atol=2e-5), name
