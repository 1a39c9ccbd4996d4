"""Random numbers of rollouts: seeds that tell them apart, one uniform number per selection.

`draw` takes them from a generator of numpy, on the host. `draw_by_number` computes them where they are needed, as a
function of numbers alone: whole-number arithmetic, so that they are the same on a CPU and on a GPU, and the same
whoever holds which part of a batch. On a GPU that is one kernel (native/cuda/draws.cu), to which nothing is sent.
The words come from `counter_random.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from ndsvrp.counter_random import Words, for_kernel, mix
from ndsvrp.policy.kernels import kernels_on

OF_SEEDS, OF_UNIFORMS = 0x3C6EF372, 0x1BD11BDA  # any two: what keeps the two kinds of numbers apart
ROUNDS = 16  # of the shuffle: each halves what is left of the order; after 12 tests find nothing any more
THREADS = 256
CPU = torch.device("cpu")


class Draws(NamedTuple):
    """The random numbers of a batch of rollouts."""

    seeds: Tensor  #: (B, K, bits) float32 of 0 and 1
    uniforms: Tensor  #: (B, K, M) float32 in [0, 1)

    def on(self, device: torch.device) -> Draws:
        """The same on a device."""
        return Draws(self.seeds.to(device), self.uniforms.to(device))


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


def draw_by_number(
    first: int, count: int, key: Sequence[int], rollouts: int, removals: int, bits: int, device: torch.device = CPU
) -> Draws:
    """Random numbers for instances `first`, `first + 1`, …, by a key of four 32-bit words (`key_of`), on a device.

    Seeds are drawn without replacement where there are enough of them.
    """
    kernels = kernels_on(device)
    if kernels is not None:
        return by_kernel(kernels.device, device, first, count, key, rollouts, removals, bits)
    return by_operations(first, count, key, rollouts, removals, bits, device)


def by_kernel(
    launcher: Any, device: torch.device, first: int, count: int, key: Sequence[int], rollouts: int, removals: int,
    bits: int,
) -> Draws:  # fmt: skip
    """`draw_by_number` as one launch: a thread per uniform number; the first of them make a seed each."""
    draws = Draws(
        torch.empty((count, rollouts, bits), device=device), torch.empty((count, rollouts, removals), device=device)
    )
    total = count * rollouts * max(1, removals)
    launcher.launch(
        launcher.kernel("draws", "draw_by_number", ()), -(-total // THREADS), THREADS, 0, np.uint64(first),
        *for_kernel(key), np.int32(count), np.int32(rollouts), np.int32(removals), np.int32(bits), *draws,
    )  # fmt: skip
    return draws


def by_operations(
    first: int, count: int, key: Sequence[int], rollouts: int, removals: int, bits: int, device: torch.device = CPU
) -> Draws:
    """`draw_by_number` in plain operations."""
    words = Words(torch.arange(first, first + count, device=device), key)
    numbers = 1 << bits
    if rollouts <= numbers:
        seeds = _shuffled(torch.arange(rollouts, device=device), words(ROUNDS, OF_SEEDS), numbers - 1)
    else:
        seeds = words(rollouts, OF_SEEDS) >> (32 - bits)
    binary = (seeds[..., None] >> torch.arange(bits, device=device)) & 1
    uniforms = (words(rollouts * removals, OF_UNIFORMS) >> 8).float() * 2.0**-24  # exact: 24 bits
    return Draws(binary.float(), uniforms.view(count, rollouts, removals))


def _shuffled(numbers: Tensor, keys: Tensor, mask: int) -> Tensor:
    """(B, K): where numbers (K,) go in a permutation of 0 … mask that keys (B, ROUNDS) choose.

    The swap-or-not shuffle (Hoang, Morris and Rogaway, 2012): a round pairs numbers by an exclusive or, and a coin
    for each pair, tossed by hashing, says whether the two change places. Nobody needs to see the others.
    """
    for key in keys.T[:, :, None]:
        partner = numbers ^ (key & mask)
        swap = mix(torch.maximum(numbers, partner) ^ key) >> 31
        numbers = torch.where(swap.bool(), partner, numbers)
    return numbers
