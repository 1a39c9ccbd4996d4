"""Cells of clustered customers: candidates in a fixed order, accepted by their attraction to seeds, in numpy.

native/cuda/clustered_layout.cu finds the same cells on a GPU. Whether a candidate is accepted depends only on those
before it, so the cells do not depend on how many are tried at once. Arithmetic is float32 that rounds once each time.
The exponential is a polynomial, because those of libraries differ in the last bit.
"""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from ndsvrp.arrays import Array, namespace, to_numpy
from ndsvrp.counter_random import Words

Cells = npt.NDArray[np.int32]
Place = Callable[[Words, Array, Array, int, int, float], Array]
"""Choose the cells of customers: `place` below, or a kernel with the same result."""

SIDE = 1001  # grid points along one side; the cell of point (x, y) is x * SIDE + y
CELLS = SIDE * SIDE
ANYWHERE, SEEDS, CANDIDATES = 0xC2B2AE3D, 0x510E527F, 0x9B05688C  # kinds of random words
PATIENCE = 4 * CELLS  # candidates after which all probabilities double
FAINT = 100  # no attraction is below 2^-FAINT, so that doubling takes it to 1
POWERS = [0.00011498084, -0.0012917893, 0.009597169, -0.05549928, 0.2402261, -0.6931472, 1.0]
LARGEST_CHUNK = 1 << 16  # candidates that are tried at once


def place(
    words: Words, depot: Array, seeds: Array, customers: int, anywhere: int, halving: float, patience: int = PATIENCE
) -> Array:
    """Return (B, N+1) int32 cells: the depot, customers anywhere, seeds, then customers around the seeds.

    depot: (B,) cells; seeds: (B,) their numbers. All cells of an instance are different. A candidate is any cell with
    equal probability. Around seeds it is accepted with the sum of 2^(-distance / halving) over the seeds, relative to
    the largest sum at a seed. Free cells with a high probability may run out, so all probabilities double after every
    `patience` candidates.
    """
    rows = []
    for i, (at, count) in enumerate(zip(to_numpy(depot).tolist(), to_numpy(seeds).tolist(), strict=True)):
        grid = _Grid(words.of_instance(i), at)
        grid.fill(ANYWHERE, anywhere)
        grid.fill(SEEDS, anywhere + count)
        centres = grid.cells[1 + anywhere :]
        if len(grid.cells) <= customers:
            scale = np.float32(1) / _attraction(centres, centres, halving).max()
            grid.fill(CANDIDATES, customers, lambda cells: _attraction(cells, centres, halving) * scale, patience)  # noqa: B023
        rows.append(grid.cells)
    return namespace(depot).asarray(np.stack(rows))


class _Grid:
    """The cells of one instance so far."""

    def __init__(self, words: Words, depot: int) -> None:
        self._words = words
        self._taken = np.zeros(CELLS, bool)
        self._taken[depot] = True
        self.cells: Cells = np.array([depot], np.int32)

    def fill(
        self, kind: int, until: int, chance: Callable[[Cells], npt.NDArray[np.float32]] | None = None,
        patience: int = PATIENCE,
    ) -> None:  # fmt: skip
        """Accept free candidates of a kind until there are `until` customers; without `chance` all of them."""
        tried, chunk = 0, (until + 1 - len(self.cells)) * (1 if chance is None else 24) + 8
        while len(self.cells) <= until:
            chunk = min(chunk, LARGEST_CHUNK)
            cell, coin = self._words(2 * chunk, kind, 2 * tried).reshape(chunk, 2).T
            found = (cell.astype(np.uint64) * CELLS >> 32).astype(np.int32)
            if chance is not None:
                doubled = np.minimum(np.arange(tried, tried + chunk) // patience, 120).astype(np.int32)
                uniform = coin.astype(np.float32) * np.float32(2**-32)
                found = found[uniform < chance(found) * _power_of_two(doubled)]
            found = found[~self._taken[found]]
            _, first = np.unique(found, return_index=True)
            found = found[np.sort(first)][: until + 1 - len(self.cells)]
            self._taken[found] = True
            self.cells = np.concatenate([self.cells, found])
            tried, chunk = tried + chunk, 2 * chunk


def _attraction(cells: Cells, seeds: Cells, halving: float) -> npt.NDArray[np.float32]:
    """Return (P,) the sum of 2^(-distance / halving) over the seeds at each cell."""
    x, y = np.divmod(cells, SIDE)
    total = np.zeros(len(cells), np.float32)
    for seed in seeds.tolist():
        dx, dy = x - seed // SIDE, y - seed % SIDE
        total += halved(np.sqrt((dx * dx + dy * dy).astype(np.float32)) / np.float32(halving))
    return total


def halved(t: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Return 2^-t for t >= 0, accurate to 2e-7."""
    whole = np.minimum(t, np.float32(FAINT)).astype(np.int32)
    fraction = np.where(whole < FAINT, t - whole.astype(np.float32), np.float32(0))
    power = np.full_like(fraction, POWERS[0])
    for term in POWERS[1:]:
        power = power * fraction + np.float32(term)
    return power * _power_of_two(-whole)


def _power_of_two(exponent: npt.NDArray[np.int32]) -> npt.NDArray[np.float32]:
    return ((127 + exponent) << 23).view(np.float32)
