"""The policy and its training on a GPU: recordings do what eager operations do, bfloat16 keeps near to float32."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from ndsvrp.generate import generate
from ndsvrp.policy import Network, NetworkConfig
from ndsvrp.policy.draws import draw
from ndsvrp.policy.inputs import Inputs, static_inputs
from ndsvrp.policy.recorded import low_precision
from ndsvrp.policy.rollout import Sampler, sample
from ndsvrp.search.plane import plane
from ndsvrp.train.checkpoint import load_checkpoint
from ndsvrp.train.config import Recipe, Source, TrainConfig, Validation
from ndsvrp.train.run import train
from ndsvrp.train.trainer import Trainer

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU"),
]
NETWORK = NetworkConfig(width=32, heads=4, feed_forward=32, seed_width=16)


def inputs_on(device: str, customers: int, batch: int) -> Inputs:
    problems = generate("pcvrp", customers, count=batch, seed=3)
    return static_inputs(problems, np.stack([plane(problem) for problem in problems]), device)


def network() -> Network:
    torch.manual_seed(1)
    return Network(NETWORK).cuda()


@pytest.mark.parametrize("customers", [12, 150])
def test_recorded_rollouts(customers: int) -> None:
    """The recording gives what plain operations give for the same random numbers, call after call, and what it says of
    their probability is what teacher forcing says, to bfloat16."""
    policy, inputs = network(), inputs_on("cuda", customers, 4)
    sampler = Sampler(policy)
    for seed in (1, 2, 1):
        draws = draw(np.random.default_rng(seed), 4, 16, 8, NETWORK.seed_bits).on(torch.device("cuda"))
        recorded = sampler(inputs, draws)
        with low_precision(torch.device("cuda")):
            plain = sample(policy, inputs, draws)
            assert recorded is not None and plain is not None
            with torch.no_grad():
                forced = policy(inputs, recorded.removed, draws.seeds)
        assert torch.equal(recorded.removed, plain.removed)
        assert (recorded.removed.sort(dim=-1).values.diff(dim=-1) > 0).all(), "nobody is selected twice"
        assert (recorded.log_probability - forced).abs().max() < 0.05 * 8


def test_recorded_gradients() -> None:
    """Gradients are added to those that are there, for one shape and another, and making a recording adds nothing."""
    config = TrainConfig(network=NETWORK, train=Recipe(batch=4))
    trainer = Trainer(config, network(), engine=None, device=torch.device("cuda"))  # type: ignore[arg-type]
    for customers in (12, 40, 12):
        inputs = inputs_on("cuda", customers, 4)
        draws = draw(np.random.default_rng(1), 4, 1, 6, NETWORK.seed_bits).on(torch.device("cuda"))
        with low_precision(torch.device("cuda")):
            rollouts = sample(trainer.network, inputs, draws)
        assert rollouts is not None
        arguments = (rollouts.removed, draws.seeds, torch.linspace(0.5, 2.0, 4, device="cuda"), *inputs.tensors())
        gradients = [parameter.grad for parameter in trainer.network.parameters()]
        before = [gradient.clone() for gradient in gradients if gradient is not None]
        recorded_loss = trainer.gradient(*arguments).clone()
        recorded = [gradient.clone() for gradient in gradients if gradient is not None]
        for gradient, value in zip(gradients, before, strict=True):
            assert gradient is not None
            gradient.copy_(value)
        eager_loss = trainer._gradient(*arguments)
        assert torch.allclose(recorded_loss, eager_loss, rtol=1e-3)
        for ours, theirs in zip(recorded, gradients, strict=True):
            assert theirs is not None
            apart = torch.linalg.vector_norm(ours - theirs)  # sums in another order, each rounded to bfloat16
            assert apart <= 0.05 * torch.linalg.vector_norm(theirs) + 1e-6


def test_resumed_to_rounding(tmp_path: Path) -> None:
    """One iteration per batch: before rounding can tip a selection, a resumed run is where the other one is."""
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
