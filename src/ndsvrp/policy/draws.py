"""Random numbers of rollouts: seeds that tell them apart, one uniform number per selection.

`draw` takes them from a generator of numpy, on the host. `draw_by_number` computes them where they are needed, as a
function of numbers alone: whole-number arithmetic, so that they are the same on a CPU and on a GPU, and the same
whoever holds which part of a batch.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

WORD = (1 << 32) - 1
OF_SEEDS, OF_UNIFORMS = 0x3C6EF372, 0x1BD11BDA  # any two: what keeps the two kinds of numbers apart


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


def draw_by_number(number: Tensor, key: Tensor, rollouts: int, removals: int, bits: int) -> Draws:
    """Random numbers for instances `number` (B,), by a key (4,) of 32-bit words; both int64, and where they are.

    Seeds are drawn without replacement where there are enough of them.
    """
    low, high, key = (number & WORD)[:, None], (number >> 32)[:, None], key[:, None, None]
    first, second = (_mix(_mix(low ^ key[i]) ^ high ^ key[i + 1]) for i in (0, 2))  # (B, 1) each: 64 bits in all

    def words(count: int, kind: int) -> Tensor:
        """(B, count), each a function of instance, key, kind and place."""
        place = torch.arange(count, device=number.device)[None]
        return _mix(_mix((place + first) & WORD) ^ second ^ kind)

    numbers = 1 << bits
    if rollouts <= numbers:
        # All of them, ordered by their words; a number stands behind its word, so that no two are the same.
        each = torch.arange(numbers, device=number.device)
        shuffled = ((words(numbers, OF_SEEDS) << bits) | each).topk(rollouts, largest=False).values
        seeds = shuffled & (numbers - 1)
    else:
        seeds = words(rollouts, OF_SEEDS) >> (32 - bits)
    binary = (seeds[..., None] >> torch.arange(bits, device=number.device)) & 1
    uniforms = (words(rollouts * removals, OF_UNIFORMS) >> 8).float() * 2.0**-24  # exact: 24 bits
    return Draws(binary.float(), uniforms.view(len(number), rollouts, removals))


def key_of(*numbers: int) -> list[int]:
    """A key for `draw_by_number` from whole numbers of any size."""
    return [int(word) for word in np.random.SeedSequence(numbers).generate_state(4, np.uint32)]


def _mix(x: Tensor) -> Tensor:
    """A permutation of 32-bit words under which every bit depends on every other (Wellons' hash prospector).

    Both factors have 31 bits: no product leaves 63.
    """
    x = ((x ^ (x >> 16)) * 0x21F0AAAD) & WORD
    x = ((x ^ (x >> 15)) * 0x735A2D97) & WORD
    return x ^ (x >> 15)
