"""Random numbers of rollouts: a seed vector for each rollout, a uniform number for each selection.

They come from a numpy generator or, without state, from `counter_random.py`. The latter are the same on a CPU and on
a GPU, where one kernel computes them (native/cuda/rollout_random.cu), and do not depend on how a batch is split.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from ndsvrp.counter_random import Words, for_kernel, mix
from ndsvrp.engine.device import Device
from ndsvrp.policy.kernels import kernels_for

SEEDS, UNIFORMS = 0x3C6EF372, 0x1BD11BDA  # kinds of words: two arbitrary numbers
ROUNDS = 16  # of the shuffle: statistical tests find nothing from 12 on
THREADS = 256
CPU = torch.device("cpu")


class RandomNumbers(NamedTuple):
    """The random numbers of a batch of rollouts. Seed vectors of an instance differ, if there are enough of them."""

    seeds: Tensor  #: (B, K, bits) float32 of 0 and 1
    uniforms: Tensor  #: (B, K, M) float32 in [0, 1)

    def to(self, device: torch.device) -> RandomNumbers:
        """Copy the numbers to a device."""
        return RandomNumbers(self.seeds.to(device), self.uniforms.to(device))

    @classmethod
    def from_generator(
        cls, random: np.random.Generator, batch: int, rollouts: int, removals: int, bits: int
    ) -> RandomNumbers:
        """Take the numbers of a batch from a numpy generator."""
        total = 1 << bits
        if rollouts <= total:
            seeds = np.stack([random.choice(total, rollouts, replace=False) for _ in range(batch)])
        else:
            seeds = random.integers(total, size=(batch, rollouts))
        binary = (seeds[..., None] >> np.arange(bits)) & 1
        uniforms = random.random((batch, rollouts, removals), np.float32)
        return cls(torch.from_numpy(binary.astype(np.float32)), torch.from_numpy(uniforms))

    @classmethod
    def from_counter(
        cls, first: int, count: int, key: Sequence[int], rollouts: int, removals: int, bits: int,
        device: torch.device = CPU,
    ) -> RandomNumbers:  # fmt: skip
        """Compute the numbers of instances `first` … `first + count - 1` for a key of four 32-bit words (`key_of`)."""
        kernels = kernels_for(device)
        if kernels is not None:
            return by_kernel(kernels.device, device, first, count, key, rollouts, removals, bits)
        return by_torch(first, count, key, rollouts, removals, bits, device)


def by_kernel(
    gpu: Device, device: torch.device, first: int, count: int, key: Sequence[int], rollouts: int, removals: int,
    bits: int,
) -> RandomNumbers:  # fmt: skip
    """Compute the numbers of `RandomNumbers.from_counter` in one launch."""
    numbers = RandomNumbers(
        torch.empty((count, rollouts, bits), device=device), torch.empty((count, rollouts, removals), device=device)
    )
    total = count * rollouts * max(1, removals)
    gpu.launch(
        gpu.kernel("rollout_random", "rollout_random", ()), -(-total // THREADS), THREADS, 0, np.uint64(first),
        *for_kernel(key), np.int32(count), np.int32(rollouts), np.int32(removals), np.int32(bits), *numbers,
    )  # fmt: skip
    return numbers


def by_torch(
    first: int, count: int, key: Sequence[int], rollouts: int, removals: int, bits: int, device: torch.device = CPU
) -> RandomNumbers:
    """Compute the numbers of `RandomNumbers.from_counter` in torch operations."""
    words = Words(torch.arange(first, first + count, device=device), key)
    total = 1 << bits
    if rollouts <= total:
        seeds = _shuffled(torch.arange(rollouts, device=device), words(ROUNDS, SEEDS), total - 1)
    else:
        seeds = words(rollouts, SEEDS) >> (32 - bits)
    binary = (seeds[..., None] >> torch.arange(bits, device=device)) & 1
    uniforms = (words(rollouts * removals, UNIFORMS) >> 8).float() * 2.0**-24  # exact: 24 bits
    return RandomNumbers(binary.float(), uniforms.view(count, rollouts, removals))


def _shuffled(numbers: Tensor, keys: Tensor, mask: int) -> Tensor:
    """Return the images (B, K) of numbers (K,) under the permutations of 0 … mask that keys (B, ROUNDS) choose.

    The swap-or-not shuffle (Hoang, Morris and Rogaway, 2012): in each round an exclusive or pairs the numbers, and a
    hash of the pair decides whether the two are swapped. Every image is computed without the others.
    """
    for key in keys.T[:, :, None]:
        partner = numbers ^ (key & mask)
        swap = mix(torch.maximum(numbers, partner) ^ key) >> 31
        numbers = torch.where(swap.bool(), partner, numbers)
    return numbers
