"""Sampling from the network: K rollouts of M selections for every problem of a batch.

Randomness is an input: the seeds tell rollouts apart, one uniform number decides each selection.
"""

from __future__ import annotations

import time
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from ndsvrp.policy.inputs import Inputs
from ndsvrp.policy.network import Network, pick


class Draws(NamedTuple):
    """The random numbers of a batch of rollouts."""

    seeds: Tensor  #: (B, K, bits) float32 of 0 and 1
    uniforms: Tensor  #: (B, K, M) float32 in [0, 1)


class Rollouts(NamedTuple):
    """What was selected."""

    removed: Tensor  #: (B, K, M) int64 customers 1 … N, in the order of their selection
    log_probability: Tensor  #: (B, K) float32


def draw(random: np.random.Generator, batch: int, rollouts: int, removals: int, bits: int) -> Draws:
    """Random numbers for a batch. Seeds are drawn without replacement where there are enough of them."""
    numbers = 1 << bits
    if rollouts <= numbers:
        seeds = np.stack([random.choice(numbers, rollouts, replace=False) for _ in range(batch)])
    else:
        seeds = random.integers(numbers, size=(batch, rollouts))
    binary = (seeds[..., None] >> np.arange(bits)) & 1
    uniforms = random.random((batch, rollouts, removals), np.float32)
    return Draws(torch.from_numpy(binary.astype(np.float32)), torch.from_numpy(uniforms))


@torch.no_grad()
def sample(network: Network, inputs: Inputs, draws: Draws, deadline: float | None = None) -> Rollouts | None:
    """Roll the policy out. None if the deadline (of `time.perf_counter`) passed before the last selection."""
    seeds = draws.seeds.to(inputs.nodes.device)
    uniforms = draws.uniforms.to(inputs.nodes.device)
    memory = network.encode(inputs)
    batch, rollouts, removals = uniforms.shape
    allowed = torch.ones(batch, rollouts, memory.gates.shape[1], dtype=torch.bool, device=seeds.device)
    hidden = memory.gates.new_zeros(batch, rollouts, network.config.width)
    gates, last = memory.first_gates.expand(batch, rollouts, -1), None
    total = torch.zeros(batch, rollouts, device=seeds.device)
    selected = []
    for m in range(removals):
        if deadline is not None and time.perf_counter() >= deadline:
            return None
        hidden = network.recall(gates, hidden)
        chances = torch.softmax(network.logits(memory, hidden, seeds, allowed, last), dim=-1)
        last = invert(chances, uniforms[:, :, m])
        total += chances.gather(2, last[..., None])[..., 0].log()
        allowed.scatter_(2, last[..., None], False)
        gates = pick(memory.gates, last)
        selected.append(last + 1)
    return Rollouts(torch.stack(selected, dim=2), total)


def invert(chances: Tensor, uniforms: Tensor) -> Tensor:
    """(B, K): the entry of chances (B, K, N) at which their running sum passes the uniform number; never one of 0."""
    sums = chances.cumsum(dim=-1)
    whole = sums[..., -1:]
    # Rounding must not carry a number to the end of the sums, where there may be entries of 0.
    goal = torch.minimum(uniforms[..., None] * whole, torch.nextafter(whole, torch.zeros_like(whole)))
    return torch.searchsorted(sums, goal, right=True)[..., 0]
