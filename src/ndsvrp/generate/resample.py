"""Instances that resemble given ones: customers resampled and moved, their data exchanged, the plane mirrored.

One function for numpy and torch, on any device, with the same bits, as in `instances.py`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np

from ndsvrp.arrays import Array, arange, cast, full, namespace
from ndsvrp.counter_random import Words, key_of
from ndsvrp.generate.instances import Instances
from ndsvrp.generate.layouts import between, unit
from ndsvrp.generate.recipes import with_depot
from ndsvrp.problem import Problem

KEY = 6  # keeps instances apart from other random numbers of the same seed
NEAR = 8  #: nearest customers with one of which a customer exchanges its data
LEFT_OUT = 5  # of this many customers one is missing, and another one appears twice
SHIFT = 0.25  # most that a window is moved, relative to its width
SLACK = 0.001  # at both ends of a window, as in the generator: the side of the bounding box is 1
LAST = 1 << 62  # sort key of what is only padding

# Kinds of random words: any numbers that differ.
GIVEN, ORDER, MOVE, MIRROR, DATA, TIME = 0x3C1A9F27, 0x7B4D20E5, 0x1E88C4D3, 0x5A60F9B1, 0x49D3E687, 0x6C2F8A15


@dataclass(frozen=True, eq=False)
class Pool:
    """Given instances in unit scale: the larger side of each bounding box is 1. Rows are padded to the largest.

    Demands and capacities are whole. The depot opens at time 0. Every customer can be served by a vehicle of its own.
    """

    customers: Array  #: (P,) int64
    capacity: Array  #: (P,) int64
    depot: Array  #: (P, 2) float64
    points: Array  #: (P, n, 2) float64 of the customers
    reach: Array  #: (P, n) float64: how far a customer is moved at most, along each axis
    near: Array  #: (P, n, 1 + NEAR) int64: the customer itself, then the nearest ones
    demand: Array  #: (P, n) int64
    closes: Array | None = None  #: (P,) float64 closing time of the depot
    windows: Array | None = None  #: (P, n, 2) float64
    service: Array | None = None  #: (P, n) float64, where there are windows
    prize: Array | None = None  #: (P, n) float64
    _copies: dict[Any, Pool] = field(default_factory=dict, repr=False)  # by device

    def __len__(self) -> int:
        return len(self.customers)

    def part(self, rows: Array) -> Pool:
        """Return some of the instances, by their indices."""
        return replace(self, **{name: value[rows] for name, value in self._arrays().items()}, _copies={})

    def like(self, array: Array) -> Pool:
        """Return the pool in the library and on the device of an array. It is copied there once."""
        if isinstance(array, np.ndarray):
            return self
        if array.device not in self._copies:
            as_tensor = namespace(array).as_tensor
            there = {name: as_tensor(value, device=array.device) for name, value in self._arrays().items()}
            self._copies[array.device] = replace(self, **there, _copies={})
        return self._copies[array.device]

    def _arrays(self) -> dict[str, Array]:
        named = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "_copies"}
        return {name: value for name, value in named.items() if value is not None}


@dataclass(frozen=True, eq=False)
class Resampled:
    """A recipe that makes instances of one size from given ones."""

    pool: Pool  #: in numpy
    variant: str
    customers: int

    def problems(self, seed: int, first: int, count: int) -> list[Problem]:
        """Return instances `first` … `first + count - 1` of a seed. Each of them is a batch of one in numpy."""
        name, numbers = f"{self.variant}{self.customers}-own-seed{seed}", range(first, first + count)
        return [self.draw(seed, np.array([i])).problem(0, f"{name}-{i:04d}") for i in numbers]

    def draw(self, seed: int, numbers: Array, place: object = None) -> Instances:
        """Return the instances of a seed with these numbers, (B,) int64, in their library and on their device.

        An instance depends on pool, size, seed and number alone. `place` is for generated layouts.

        1. Choose a given instance, and leave out a fifth of its customers. Repeat the others until there are enough.
        2. Move each customer, along both axes, by at most half the distance to its third nearest one.
        3. Give every second customer the data of one of its eight nearest ones: demand, window, service time and prize
           together, so that what belongs together stays together, and also what depends on the place.
        4. Move windows by at most a quarter of their width, within the times that a vehicle can keep.
        5. Mirror and turn: one of the eight symmetries of the square.
        """
        words, xp, pool = Words(numbers, key_of(seed, KEY)), namespace(numbers), self.pool.like(numbers)
        given = between(words(1, GIVEN), 0, len(pool) - 1)  # (B, 1)
        chosen = self._chosen(words, pool, given)
        move = (2.0 * unit(words(2 * self.customers, MOVE)) - 1.0).reshape(-1, self.customers, 2)
        customers = pool.points[given, chosen] + pool.reach[given, chosen][..., None] * move
        points = xp.concatenate([pool.depot[given], customers], axis=1)
        coin = words(self.customers, DATA)
        other = xp.where(coin >> 31 == 1, 1 + ((coin & 0x7FFFFFFF) * NEAR >> 31), xp.zeros_like(coin))
        donor = pool.near[given, chosen, other]
        parts: dict[str, Array] = {}
        if pool.windows is not None:
            parts |= _windows(words, pool, given, donor, points)
        if pool.prize is not None:
            parts["prize"] = with_depot(pool.prize[given, donor])
        demand = with_depot(pool.demand[given, donor])
        return Instances(_mirrored(words, points), demand, pool.capacity[given[:, 0]], **parts)

    def _chosen(self, words: Words, pool: Pool, given: Array) -> Array:
        """Return (B, N) customers of the given instances: a random four fifths, again and again."""
        xp, width, count = namespace(given), pool.points.shape[1], pool.customers[given]
        position = arange(given, 0, width)
        keys = (words(width, ORDER) << 20) + position  # all different, so that all sorts agree
        order = xp.argsort(xp.where(position < count, keys, full(keys, (), LAST, "int64")), axis=1)
        place = arange(given, 0, self.customers) % (count - count // LEFT_OUT)
        return order[arange(given, 0, len(given))[:, None], place]


def _windows(words: Words, pool: Pool, given: Array, donor: Array, points: Array) -> dict[str, Array]:
    """Return (B, N+1, 2) windows and (B, N+1) service times that a vehicle can keep."""
    xp, offset = namespace(points), points[:, 1:] - points[:, :1]
    away = xp.sqrt(offset[..., 0] * offset[..., 0] + offset[..., 1] * offset[..., 1])
    assert pool.windows is not None and pool.service is not None and pool.closes is not None
    window, service = pool.windows[given, donor], pool.service[given, donor]
    least = xp.amax(2.0 * away + service, axis=1, keepdims=True) + 3 * SLACK
    closes = xp.maximum(pool.closes[given], least)
    earliest, latest = away + SLACK, closes - service - away - SLACK
    width = window[..., 1] - window[..., 0]
    most = SHIFT * xp.minimum(width, xp.clip(closes - width, 0.0, None))  # a window of the whole day stays
    shift = (2.0 * unit(words(donor.shape[1], TIME)) - 1.0) * most
    ready = xp.minimum(xp.clip(window[..., 0] + shift, 0.0, None), latest)
    due = xp.maximum(xp.minimum(window[..., 1] + shift, closes), earliest)
    both = xp.stack([with_depot(ready), xp.concatenate([closes, due], axis=1)], axis=-1)
    return {"windows": both, "service": with_depot(service)}


def _mirrored(words: Words, points: Array) -> Array:
    """Return (B, N+1, 2) points after one of the eight symmetries of the unit square."""
    xp, bits = namespace(points), words(1, MIRROR)
    x, y = (xp.where(bits >> i & 1 == 1, 1.0 - points[..., i], points[..., i]) for i in (0, 1))
    turned = bits >> 2 & 1 == 1
    return cast(xp.stack([xp.where(turned, y, x), xp.where(turned, x, y)], axis=-1), "float64")
