"""A child of two solutions, and how far solutions are apart: functions of tours.

A tour is (stops,) int32: the routes of a solution one after another, each ended by a 0.
"""

import numpy as np

from ndsvrp.engine.base import Floats, Ints

TAKEN = 0.1, 0.4  # share of the routes of the second parent that a child gets: the least and the most


def cross(first: Ints, second: Ints, points: Floats, random: np.random.Generator) -> Ints:
    """Return the tour of a child: some neighbouring routes of the second parent, the rest as in the first.

    Neighbours are nearest to each other by the mean of their customers, or successive by the angle at the depot. The
    routes of the first parent lose the customers that the others have. Whoever is served by neither stays unserved.

    points: (N+1, 2) coordinates.
    """
    if len(second) == 0:
        return first
    ends = np.flatnonzero(second == 0)
    begins = np.concatenate(([0], ends[:-1] + 1))
    routes = len(ends)
    relative = points - points[0]  # the depot adds nothing to the sums
    middles = np.add.reduceat(relative[second], begins) / (ends - begins)[:, None]
    count = max(1, round(routes * random.uniform(*TAKEN)))
    seed = int(random.integers(routes))
    if random.random() < 0.5:
        order = np.argsort(np.sum((middles - middles[seed]) ** 2, axis=1), kind="stable")
    else:
        by_angle = np.argsort(np.arctan2(middles[:, 1], middles[:, 0]), kind="stable")
        order = np.roll(by_angle, -int(np.flatnonzero(by_angle == seed)[0]))
    taken = np.concatenate([second[begins[r] : ends[r] + 1] for r in order[:count]])
    is_taken = np.zeros(len(points), bool)
    is_taken[taken] = True
    is_taken[0] = False
    rest = first[~is_taken[first]]
    is_empty = (rest == 0) & (np.concatenate(([0], rest[:-1])) == 0)
    return np.concatenate([taken, rest[~is_empty]])


def neighbours(tour: Ints, customers: int) -> Ints:
    """Return (2, N+1) the stops before and after each customer; -1 where it is unserved."""
    out = np.full((2, customers + 1), -1, np.int32)
    at = np.flatnonzero(tour)
    out[0, tour[at]] = np.concatenate(([0], tour))[at]
    out[1, tour[at]] = tour[at + 1]
    return out


def apart(one: Ints, others: Ints) -> Floats:
    """Return (others,) the share of neighbours of customers that are others there; 0: the same routes.

    A reversed route is the same route. one: (2, N+1), others: (others, 2, N+1), both by `neighbours`.
    """
    before, after = one[:, 1:] == others[:, :, 1:], one[::-1, 1:] == others[:, :, 1:]
    kept = np.maximum(before.sum(axis=1), after.sum(axis=1))  # of the two neighbours of each customer, in any order
    return np.asarray(1.0 - kept.sum(axis=1) / (2 * kept.shape[1]))
