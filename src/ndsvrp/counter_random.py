"""Counter-based random numbers: 32-bit words that are a function of key, instance, kind and position alone.

Whole-number arithmetic gives the same words in numpy, in torch on any device, and in CUDA kernels
(native/cuda/counter_random.hpp). The order of calls and the split of a batch do not matter.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy

import numpy as np

from ndsvrp.arrays import Array, arange, to_numpy

WORD = (1 << 32) - 1


class Words:
    """Random words of instances with the given numbers, (B,) int64, for a key of four words (`key_of`)."""

    def __init__(self, numbers: Array, key: Sequence[int]) -> None:
        low, high = numbers[:, None] & WORD, numbers[:, None] >> 32
        self.one, self.two = (mix(mix(low ^ key[i]) ^ high ^ key[i + 1]) for i in (0, 2))  # (B, 1): 64 bits in all

    def __call__(self, amount: int, kind: int, begin: int = 0) -> Array:
        """Return (B, amount) words of 32 bits, from position `begin` on. Words of different kinds are independent."""
        return mix(mix((arange(self.one, begin, begin + amount) + self.one) & WORD) ^ self.two ^ kind)

    def of_instance(self, i: int) -> Words:
        """Return the words of one instance in numpy, in uint32: the same words, faster."""
        part = copy(self)
        part.one, part.two = (to_numpy(half)[i : i + 1].astype(np.uint32) for half in (self.one, self.two))
        return part


def mix(x: Array) -> Array:
    """Permute 32-bit words so that every bit of the result depends on every bit (Wellons' hash prospector).

    Both factors have 31 bits, so int64 products do not overflow. uint32 arrays of numpy give the same words.
    """
    x = ((x ^ (x >> 16)) * 0x21F0AAAD) & WORD
    x = ((x ^ (x >> 15)) * 0x735A2D97) & WORD
    return x ^ (x >> 15)


def key_of(*numbers: int) -> list[int]:
    """Return a key of four 32-bit words for whole numbers of any size."""
    return [int(word) for word in np.random.SeedSequence(numbers).generate_state(4, np.uint32)]


def for_kernel(key: Sequence[int]) -> tuple[np.uint64, np.uint64]:
    """Return a key as kernels take it (counter_random.hpp): two words in each number."""
    return np.uint64(key[0] | key[1] << 32), np.uint64(key[2] | key[3] << 32)
