"""Random numbers of rollouts: seeds that tell them apart, one uniform number per selection.

`draw` takes them from a generator of numpy, on the host. `draw_by_number` computes them where they are needed, as a
function of numbers alone: whole-number arithmetic, so that they are the same on a CPU and on a GPU, and the same
whoever holds which part of a batch. On a GPU that is one kernel (native/cuda/draws.cu), to which nothing is sent.
Instances drawn on a GPU (train/drawn.py) are made of the same `Words`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from ndsvrp.policy.kernels import kernels_on

WORD = (1 << 32) - 1
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
    words = Words(first, count, key, device)
    numbers = 1 << bits
    if rollouts <= numbers:
        seeds = _shuffled(torch.arange(rollouts, device=device), words(ROUNDS, OF_SEEDS), numbers - 1)
    else:
        seeds = words(rollouts, OF_SEEDS) >> (32 - bits)
    binary = (seeds[..., None] >> torch.arange(bits, device=device)) & 1
    uniforms = (words(rollouts * removals, OF_UNIFORMS) >> 8).float() * 2.0**-24  # exact: 24 bits
    return Draws(binary.float(), uniforms.view(count, rollouts, removals))


class Words:
    """Random words of instances `first`, `first + 1`, …: whole numbers, the same on a CPU and on a GPU."""

    def __init__(self, first: int, count: int, key: Sequence[int], device: torch.device) -> None:
        number = torch.arange(first, first + count, device=device)[:, None]
        low, high = number & WORD, number >> 32
        self._one, self._two = (_mix(_mix(low ^ key[i]) ^ high ^ key[i + 1]) for i in (0, 2))  # (B, 1): 64 bits in all

    def __call__(self, amount: int, kind: int) -> Tensor:
        """(B, amount) of 32 bits, each a function of instance, key, kind and place."""
        place = torch.arange(amount, device=self._one.device)[None]
        return _mix(_mix((place + self._one) & WORD) ^ self._two ^ kind)


def _shuffled(numbers: Tensor, keys: Tensor, mask: int) -> Tensor:
    """(B, K): where numbers (K,) go in a permutation of 0 … mask that keys (B, ROUNDS) choose.

    The swap-or-not shuffle (Hoang, Morris and Rogaway, 2012): a round pairs numbers by an exclusive or, and a coin
    for each pair, tossed by hashing, says whether the two change places. Nobody needs to see the others.
    """
    for key in keys.T[:, :, None]:
        partner = numbers ^ (key & mask)
        swap = _mix(torch.maximum(numbers, partner) ^ key) >> 31
        numbers = torch.where(swap.bool(), partner, numbers)
    return numbers


def key_of(*numbers: int) -> list[int]:
    """A key for `draw_by_number` from whole numbers of any size."""
    return [int(word) for word in np.random.SeedSequence(numbers).generate_state(4, np.uint32)]


def for_kernel(key: Sequence[int]) -> tuple[np.uint64, np.uint64]:
    """A key as kernels take it (words.hpp): two words in one number."""
    return np.uint64(key[0] | key[1] << 32), np.uint64(key[2] | key[3] << 32)


def _mix(x: Tensor) -> Tensor:
    """A permutation of 32-bit words under which every bit depends on every other (Wellons' hash prospector).

    Both factors have 31 bits: no product leaves 63.
    """
    x = ((x ^ (x >> 16)) * 0x21F0AAAD) & WORD
    x = ((x ^ (x >> 15)) * 0x735A2D97) & WORD
    return x ^ (x >> 15)
