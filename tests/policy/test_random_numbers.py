"""Counter-based random numbers of rollouts: values, independence, distribution."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from gpu.emulated import EmulatedDevice
from ndsvrp.counter_random import WORD, key_of, mix
from ndsvrp.policy.random_numbers import CPU, ROUNDS, RandomNumbers, by_kernel

KEY = (5, 3, 7)


def numbers_of(
    first: int, count: int, rollouts: int = 8, removals: int = 3, bits: int = 5, key: tuple[int, ...] = KEY
) -> RandomNumbers:
    return RandomNumbers.from_counter(first, count, key_of(*key), rollouts, removals, bits)


def seed_numbers(numbers: RandomNumbers) -> np.ndarray:
    """Return the seed vectors as integers, (B, K)."""
    return (numbers.seeds.numpy().astype(int) << np.arange(numbers.seeds.shape[-1])).sum(-1)


def by_hand(number: int, rollouts: int, removals: int, bits: int) -> tuple[list[int], list[float]]:
    """Compute the same in Python integers, which do not overflow."""

    def mix(x: int) -> int:
        x = (x ^ (x >> 16)) * 0x21F0AAAD % 2**32
        x = (x ^ (x >> 15)) * 0x735A2D97 % 2**32
        return x ^ (x >> 15)

    key = key_of(*KEY)
    low, high = number % 2**32, number >> 32
    first, second = (mix(mix(low ^ key[i]) ^ high ^ key[i + 1]) for i in (0, 2))

    def words(count: int, kind: int) -> list[int]:
        return [mix(mix((place + first) % 2**32) ^ second ^ kind) for place in range(count)]

    order = list(range(2**bits))
    for word in words(ROUNDS, 0x3C6EF372):
        pairs = {frozenset((i, i ^ word % 2**bits)) for i in range(2**bits)}
        swapped = {i for pair in pairs if mix(max(pair) ^ word) >= 2**31 for i in pair}
        order = [i ^ word % 2**bits if i in swapped else i for i in order]
    return order[:rollouts], [(word >> 8) / 2**24 for word in words(rollouts * removals, 0x1BD11BDA)]


@pytest.mark.parametrize("number", [0, 1, 77, 2**32 - 1, 2**32 + 77, 2**45 + 3])
def test_by_hand(number: int) -> None:
    numbers = numbers_of(number, 1)
    seeds, uniforms = by_hand(number, 8, 3, 5)
    assert seed_numbers(numbers)[0].tolist() == seeds
    assert numbers.uniforms.flatten().tolist() == uniforms


@pytest.mark.emulator
@pytest.mark.parametrize(
    ("first", "count", "rollouts", "removals", "bits"),
    [(0, 1, 8, 3, 5), (2**32 - 2, 4, 7, 1, 3), (2**45, 2, 40, 15, 10), (3, 2, 5, 2, 2), (9, 3, 2, 1, 1)],
)
def test_the_kernel_computes_the_same(first: int, count: int, rollouts: int, removals: int, bits: int) -> None:
    found = by_kernel(EmulatedDevice(), CPU, first, count, key_of(*KEY), rollouts, removals, bits)
    assert all(map(torch.equal, found, numbers_of(first, count, rollouts, removals, bits)))


@pytest.mark.slow
def test_mixing_is_one_to_one_and_spreads() -> None:
    """Images of neighbours differ in half of their bits, and all images are distinct."""
    words = torch.cat([torch.arange(1 << 16), WORD - torch.arange(1 << 16), torch.arange(1 << 16) << 16])
    mixed = mix(words)
    assert int(mixed.min()) >= 0 and int(mixed.max()) <= WORD
    assert len(mixed.unique()) == len(words.unique())
    for bit in range(32):
        changed = (mix(words ^ (1 << bit)) ^ mixed).numpy()
        flips = [float(np.mean(changed >> to & 1)) for to in range(32)]
        assert min(flips) > 0.46 and max(flips) < 0.54, bit


@pytest.mark.parametrize("rollouts", [8, 40])
def test_parts_of_a_batch_have_the_numbers_of_the_whole(rollouts: int) -> None:
    whole = numbers_of(10, 6, rollouts)
    parts = [numbers_of(10, 1, rollouts), numbers_of(11, 3, rollouts), numbers_of(14, 2, rollouts)]
    for entry in (0, 1):
        assert torch.equal(torch.cat([part[entry] for part in parts]), whole[entry])


@pytest.mark.parametrize("rollouts", [8, 40])
def test_instances_and_keys_are_independent(rollouts: int) -> None:
    """Another instance or key changes half of the bits of the seeds and every uniform number."""
    ours = numbers_of(0, 400, rollouts)
    for other in (
        numbers_of(400, 400, rollouts),
        numbers_of(0, 400, rollouts, key=(5, 3, 8)),
        numbers_of(1 << 32, 400, rollouts),
    ):
        assert float((ours.seeds != other.seeds).float().mean()) == pytest.approx(0.5, abs=0.01)
        assert float((ours.uniforms == other.uniforms).float().mean()) < 1e-4
    kinds = np.corrcoef(seed_numbers(ours)[:, 0], ours.uniforms[:, 0, 0].numpy())
    assert abs(kinds[0, 1]) < 0.15, "seeds and uniform numbers of an instance are uncorrelated"


@pytest.mark.slow
@pytest.mark.parametrize("rollouts", [1, 7, 31, 32])
def test_seeds_are_distinct_while_they_last(rollouts: int) -> None:
    numbers = numbers_of(0, 4000, rollouts)
    found = seed_numbers(numbers)
    assert numbers.seeds.dtype == torch.float32 and numbers.seeds.shape == (4000, rollouts, 5)
    assert all(len(set(row)) == rollouts for row in found)
    counts = np.bincount(found[:, 0], minlength=32)  # all seeds are equally likely to be first
    assert ((counts - 125) ** 2 / 125).sum() < 61.1  # chi-square, 31 degrees of freedom, 0.1 %


@pytest.mark.slow
@pytest.mark.parametrize("bits", [1, 2, 3, 4, 6])
def test_all_pairs_of_seeds_are_equally_likely(bits: int) -> None:
    """Pairs of neighbouring and of outermost rollouts over many instances: chi-square, 0.1 %."""
    n, instances = 1 << bits, 100_000
    found = seed_numbers(numbers_of(0, instances, min(n, 8), 1, bits))
    for a, b in ((0, 1), (0, -1), (-2, -1)):
        counts = np.bincount(found[:, a] * n + found[:, b], minlength=n * n)[~np.eye(n, dtype=bool).ravel()]
        expected, freedom = instances / len(counts), len(counts) - 1
        chi = ((counts - expected) ** 2 / expected).sum()
        assert chi < freedom + 3.1 * math.sqrt(2 * freedom) + 6.0


@pytest.mark.slow
def test_all_triples_of_seeds_are_equally_likely() -> None:
    found = seed_numbers(numbers_of(0, 100_000, 3, 1, 3))
    counts = np.bincount(found @ [64, 8, 1], minlength=512)
    expected = 100_000 / (8 * 7 * 6)
    assert ((counts[counts > 0] - expected) ** 2 / expected).sum() < 420  # 335 degrees of freedom, 0.1 %
    assert (counts > 0).sum() == 8 * 7 * 6


@pytest.mark.slow
def test_differences_of_seeds_of_the_default_network() -> None:
    found = seed_numbers(numbers_of(0, 20_000, 200, 1, 10))
    for a, b in ((0, 1), (0, 199), (64, 128)):
        for difference in ((found[:, a] - found[:, b]) % 1024, found[:, a] ^ found[:, b]):
            counts, expected = np.bincount(difference, minlength=1024)[1:], 20_000 / 1023
            assert ((counts - expected) ** 2 / expected).sum() < 1167  # 1022 degrees of freedom, 0.1 %


def test_seeds_repeat_when_there_are_too_few() -> None:
    found = seed_numbers(numbers_of(0, 40, 33))
    assert all(len(set(row)) < 33 for row in found)
    counts, expected = np.bincount(found.ravel(), minlength=32), 40 * 33 / 32
    assert ((counts - expected) ** 2 / expected).sum() < 61.1


def test_seeds_of_the_default_network() -> None:
    assert [len(set(seed_numbers(numbers_of(0, 1, k, 1, 10))[0])) for k in (128, 1024)] == [128, 1024]
    assert len(set(seed_numbers(numbers_of(0, 1, 1025, 1, 10))[0])) < 1000


def test_uniforms() -> None:
    uniforms = numbers_of(3, 100, 128, 15, 10).uniforms
    assert uniforms.dtype == torch.float32 and uniforms.shape == (100, 128, 15)
    assert 0 <= float(uniforms.min()) < 1e-4 and 0.9999 < float(uniforms.max()) < 1
    flat = uniforms.flatten().double().numpy()
    counts, expected = np.bincount((flat * 100).astype(int), minlength=100), flat.size / 100
    assert ((counts - expected) ** 2 / expected).sum() < 149  # chi-square, 99 degrees of freedom, 0.1 %
    for lag in (1, 2, 15, 128):
        assert abs(np.corrcoef(flat[lag:], flat[:-lag])[0, 1]) < 4 / flat.size**0.5
    rows = uniforms.flatten(1).numpy()
    assert abs(np.corrcoef(rows[1:].ravel(), rows[:-1].ravel())[0, 1]) < 4 / flat.size**0.5
