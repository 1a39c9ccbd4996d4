"""The decoder kernel, emulated: log-probabilities and frequencies of its selections."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from emulated import EmulatedDevice

from ndsvrp.engine.cpu import CpuEngine
from ndsvrp.generate import generate
from ndsvrp.policy import Network, NetworkConfig, fused_decoder
from ndsvrp.policy.fused_decoder import FusedDecoder, supports
from ndsvrp.policy.inputs import Inputs, static_inputs
from ndsvrp.policy.random_numbers import RandomNumbers
from ndsvrp.search.plane import plane
from ndsvrp.search.start import start

pytestmark = pytest.mark.emulator
NETWORK = NetworkConfig(width=32, heads=2, feed_forward=32, seed_width=48, layers_before=1, layers_after=1)


def network(config: NetworkConfig = NETWORK) -> Network:
    torch.manual_seed(1)
    made = Network(config)
    with torch.no_grad():
        made.start.normal_()
        for weight in made.parameters():  # far from uniform, so that errors show
            weight.mul_(2.0 if weight.ndim == 2 else 1.0)
        if config.distance_term:
            made.gamma.fill_(0.7)
    return made


def solved(variant: str, customers: int, batch: int) -> Inputs:
    """Problems with solutions, some customers unserved if there are prizes."""
    problems = generate(variant, customers, count=batch, seed=3)
    engine = CpuEngine()
    state = start(engine, problems, np.arange(batch), 1, rounds=3)
    inputs = static_inputs(problems, np.stack([plane(problem) for problem in problems]), "cpu")
    return inputs.showing(engine.view(state))


def decode(  # type: ignore[no-untyped-def]
    policy: Network, inputs: Inputs, rollouts: int, removals: int, seed: int = 1, device: EmulatedDevice | None = None
):
    device = device or EmulatedDevice()
    numbers = RandomNumbers.from_generator(
        np.random.default_rng(seed), len(inputs.nodes), rollouts, removals, policy.config.seed_bits
    )
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        removed, said = FusedDecoder(policy, device)(inputs, *numbers)
        forced = policy(inputs, removed, numbers.seeds)
    return removed, said, forced


CASES = {
    "many rollouts": (NETWORK, "pcvrp", 70, 2, 140, 4),
    "odd rollouts": (NETWORK, "cvrp", 33, 2, 19, 6),
    "all are selected": (NETWORK, "cvrp", 5, 1, 16, 5),
    "one customer": (NETWORK, "cvrp", 1, 1, 3, 1),
    "whole spans": (NETWORK, "vrptw", 64, 1, 32, 3),
    "several spans": (NETWORK, "cvrp", 130, 1, 16, 3),
    "paper": (replace(NETWORK, distance_term=False), "cvrp", 40, 1, 16, 5),
    "narrow seed": (replace(NETWORK, seed_width=16, seed_bits=3, clip=4.0), "cvrp", 40, 1, 8, 5),
}


@pytest.mark.parametrize("case", CASES)
def test_agrees_with_teacher_forcing(case: str) -> None:
    config, variant, customers, batch, rollouts, removals = CASES[case]
    inputs = solved(variant, customers, batch)
    removed, said, forced = decode(network(config), inputs, rollouts, removals)
    assert removed.min() >= 1 and removed.max() <= customers
    assert (removed.sort(dim=-1).values.diff(dim=-1) > 0).all(), "no customer is selected twice"
    # bfloat16 has 8 bits of precision: a logit of 10 has an error of some hundredths, and so has a sum of several.
    assert (said - forced).abs().max() < 0.08 * removals
    assert (said - forced).abs().mean() < 0.03 * removals


@pytest.mark.parametrize("row_tiles", [1, 2])
def test_shapes(monkeypatch: pytest.MonkeyPatch, row_tiles: int) -> None:
    """The number of warps and blocks does not change the selections."""
    policy, inputs = network(), solved("cvrp", 70, 2)
    whole = decode(policy, inputs, 90, 4)[0]
    monkeypatch.setattr(fused_decoder, "ROW_TILES", row_tiles)
    tile_bytes = FusedDecoder(policy, EmulatedDevice())._row_tile_bytes(70)
    for fit, processors, blocks in (
        (1, 1, 6),
        (2, 1, 3),
        (4, 1, 2),
        (100, 1, 1),
        (100, 4, 2),
        (100, 12, 6 // row_tiles),
    ):
        device = EmulatedDevice(shared_limit=fit * tile_bytes, multiprocessors=processors)
        removed, said, forced = decode(policy, inputs, 90, 4, device=device)
        assert device.launched[-1][0] == "decode" and device.launched[-1][2] == 2 * blocks
        assert torch.equal(removed, whole)
        assert (said - forced).abs().max() < 0.32


def test_scores_far_from_0() -> None:
    """Exponentials of attention that overflow or underflow float32."""
    policy, inputs = network(), solved("cvrp", 70, 1)
    with torch.no_grad():
        policy.query.weight *= 300.0
        memory, hidden = policy.encode(inputs), torch.randn(1, 40, 32, generator=torch.Generator().manual_seed(1))
        query = policy.query(hidden).view(1, 40, 2, 16).transpose(1, 2)
        scores = (query @ memory.keys.transpose(-1, -2) / 4.0).amax(dim=-1)
    assert scores.max() > 100.0, "some overflow"
    removed, said, forced = decode(policy, inputs, 40, 5)
    assert (said - forced).abs().mean() < 0.25, "a score of 300 has an error of 1"
    assert len(removed.unique()) > 10


@pytest.mark.parametrize("beta", [-200.0, 200.0])
def test_large_beta(beta: float) -> None:
    """The nearest or the furthest customer is selected, even if its weight underflows."""
    policy, inputs = network(), solved("cvrp", 70, 1)
    with torch.no_grad():
        policy.beta.fill_(beta)
    removed, said, forced = decode(policy, inputs, 40, 5)
    assert torch.isfinite(said).all() and (said - forced).abs().max() < 0.4
    where = inputs.coordinates[0]
    away = torch.cdist(where[removed[0, :, 0]], where[1:])  # from the first to all
    away[torch.arange(40), removed[0, :, 0] - 1] = torch.nan
    taken = away[torch.arange(40), removed[0, :, 1] - 1]
    expected = away.nan_to_num(9.0).amin(dim=1) if beta > 0 else away.nan_to_num(-9.0).amax(dim=1)
    assert (taken - expected).abs().median() < 1e-6


def test_by_matrix() -> None:
    """Distances come from the matrix, if there is one; it may be asymmetric."""
    customers = 20
    inputs = solved("cvrp", customers, 1)
    far = torch.rand(customers + 1, customers + 1, generator=torch.Generator().manual_seed(1))
    _, said, forced = decode(network(), replace(inputs, matrix=far), 16, 6)
    assert (said - forced).abs().max() < 0.5


def test_frequencies() -> None:
    """A chi-square test of the first two selections against their probabilities."""
    customers, rollouts = 8, 1024
    policy, inputs = network(replace(NETWORK, clip=2.0)), solved("cvrp", customers, 1)
    counts = np.zeros((customers, customers))
    expected = np.zeros((customers, customers))
    pairs = torch.tensor([[a, b] for a in range(1, customers + 1) for b in range(1, customers + 1) if a != b])
    seeds = torch.zeros(1, 1, NETWORK.seed_bits)  # one seed vector for all
    with torch.no_grad():
        probabilities = policy(inputs, pairs[None], seeds.expand(1, len(pairs), -1))[0].exp().numpy()
    for (a, b), probability in zip(pairs.numpy(), probabilities, strict=True):
        expected[a - 1, b - 1] = probability
    assert abs(expected.sum() - 1.0) < 1e-4
    decoder = FusedDecoder(policy, EmulatedDevice())
    uniforms = torch.rand(1, rollouts, 2, generator=torch.Generator().manual_seed(5))
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        removed, _ = decoder(inputs, seeds.expand(1, rollouts, -1), uniforms)
    for a, b in removed[0].numpy() - 1:
        counts[a, b] += 1
    expected *= rollouts
    likely = expected > 5
    chi = ((counts - expected)[likely] ** 2 / expected[likely]).sum()
    rest = likely.sum()
    assert chi < rest + 4.0 * np.sqrt(2.0 * rest), f"chi-square {chi:.1f} with {rest} cells"
    assert counts[~likely].sum() < expected[~likely].sum() + 5.0 * np.sqrt(expected[~likely].sum() + 1.0)


def test_selections_follow_from_random_numbers() -> None:
    """The same random numbers give the same selections; others do not."""
    inputs = solved("cvrp", 40, 1)
    first, again, other = (decode(network(), inputs, 16, 5, seed)[0] for seed in (1, 1, 2))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_nan_weights() -> None:
    """With NaN weights, still no customer is selected twice."""
    policy, inputs = network(), solved("cvrp", 12, 1)
    with torch.no_grad():
        policy.combine.bias[3] = torch.nan
    removed, _, _ = decode(policy, inputs, 16, 12)
    assert torch.equal(removed.sort(dim=-1).values, torch.arange(1, 13).expand(1, 16, 12))


def test_supported_shapes() -> None:
    assert supports(NetworkConfig()) and supports(NetworkConfig.paper())
    assert not supports(replace(NETWORK, heads=4)) and not supports(replace(NETWORK, seed_width=40))
    assert FusedDecoder(Network(NetworkConfig()), EmulatedDevice()).fits(10_000)
    assert not FusedDecoder(Network(NetworkConfig()), EmulatedDevice()).fits(200_000)
