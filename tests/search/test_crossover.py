"""Crossover of tours and the distance between solutions: worked examples, and properties on random tours."""

from __future__ import annotations

import numpy as np
import pytest

from ndsvrp.search.crossover import apart, cross, neighbours

# The depot in the middle, pairs of customers in the west (1, 2), north (3, 4), east (5, 6) and south (7, 8).
POINTS = np.array([[0, 0], [-2, 0], [-3, 0], [0, 2], [0, 3], [2, 0], [3, 0], [0, -4], [0, -5]], float)
BY_PAIRS = np.array([1, 2, 0, 3, 4, 0, 5, 6, 0, 7, 8, 0], np.int32)
ACROSS = np.array([2, 3, 5, 0, 8, 6, 0, 1, 4, 7, 0], np.int32)


class Drawn:
    """Random numbers that a test chooses: the share of routes, the first route, by distance (0) or by angle (1)."""

    def __init__(self, share: float, route: int, way: float) -> None:
        self.share, self.route, self.way = share, route, way

    def uniform(self, low: float, high: float) -> float:
        assert low <= self.share <= high
        return self.share

    def integers(self, below: int) -> int:
        assert self.route < below
        return self.route

    def random(self) -> float:
        return self.way


def crossed(first: np.ndarray, second: np.ndarray, share: float, route: int, way: float) -> list[int]:
    return cross(first, second, POINTS, Drawn(share, route, way)).tolist()  # type: ignore[arg-type]


def test_a_child_has_a_route_of_the_second_parent_and_the_rest_of_the_first() -> None:
    """Route 3, 4 replaces what the first parent does with 3 and 4."""
    assert crossed(ACROSS, BY_PAIRS, 0.25, 1, 0.0) == [3, 4, 0, 2, 5, 0, 8, 6, 0, 1, 7, 0]


def test_neighbouring_routes_are_nearest_or_successive_by_angle() -> None:
    """The means are (-2.5, 0), (0, 2.5), (2.5, 0) and (0, -4.5): west, then north, is nearest to itself and north.

    By angle, south (-90 degrees) is followed by east (0), north (90) and west (180).
    """
    assert crossed(ACROSS, BY_PAIRS, 0.4, 0, 0.0) == [1, 2, 0, 3, 4, 0, 5, 0, 8, 6, 0, 7, 0]
    assert crossed(ACROSS, BY_PAIRS, 0.4, 3, 0.9) == [7, 8, 0, 5, 6, 0, 2, 3, 0, 1, 4, 0]
    assert crossed(ACROSS, BY_PAIRS, 0.4, 0, 0.9) == [1, 2, 0, 7, 8, 0, 3, 5, 0, 6, 0, 4, 0], (
        "after the last, the first"
    )


def test_routes_that_lose_all_customers_vanish() -> None:
    assert crossed(BY_PAIRS, BY_PAIRS, 0.25, 2, 0.0) == [5, 6, 0, 1, 2, 0, 3, 4, 0, 7, 8, 0]


def test_unserved_customers_stay_so_if_neither_route_serves_them() -> None:
    first, second = np.array([1, 2, 0], np.int32), np.array([3, 4, 0, 2, 5, 0], np.int32)
    assert crossed(first, second, 0.4, 1, 0.0) == [2, 5, 0, 1, 0]
    nobody = np.zeros(0, np.int32)
    assert crossed(nobody, second, 0.4, 0, 0.0) == [3, 4, 0]
    assert crossed(first, nobody, 0.4, 0, 0.0) == [1, 2, 0]


@pytest.mark.parametrize("seed", range(20))
def test_children_of_random_parents_serve_everybody_once(seed: int) -> None:
    random = np.random.default_rng(seed)
    customers = int(random.integers(1, 40))
    points = random.random((customers + 1, 2))

    def drawn() -> np.ndarray:
        order = random.permutation(customers) + 1
        cuts = np.sort(random.choice(customers, size=int(random.integers(0, customers)), replace=False))
        return np.concatenate([[*part, 0] for part in np.split(order, cuts) if len(part)]).astype(np.int32)

    first, second = drawn(), drawn()
    child = cross(first, second, points, random)
    assert sorted(child[child > 0].tolist()) == list(range(1, customers + 1))
    assert child[-1] == 0
    assert not np.any((child[1:] == 0) & (child[:-1] == 0)), "no empty route"
    routes = " ".join(map(str, child.tolist())).split(" 0")
    assert routes[0] in " ".join(map(str, second.tolist())), "the first route is one of the second parent"
    assert child.dtype == np.int32


def test_how_far_solutions_are_apart() -> None:
    """Each of four customers has the depot and another customer beside it."""
    tours = [[1, 2, 0, 3, 4, 0], [2, 1, 0, 3, 4, 0], [1, 3, 0, 2, 4, 0], [1, 2, 3, 4, 0], [3, 4, 0]]
    one, *others = (neighbours(np.array(tour, np.int32), 4) for tour in tours)
    assert one.tolist() == [[-1, 0, 1, 0, 3], [-1, 2, 0, 4, 0]]
    assert neighbours(np.array(tours[4], np.int32), 4).tolist() == [[-1, -1, -1, 0, 3], [-1, -1, -1, 4, 0]]
    # A reversed route is the same one. In the second, each has one other neighbour; in the third, only 2 and 3 have. In
    # the last, 1 and 2 are unserved.
    every = np.stack([one, *others])
    assert apart(one, every).tolist() == [0.0, 0.0, 0.5, 0.25, 0.5]
    assert [float(apart(each, every)[0]) for each in every] == [0.0, 0.0, 0.5, 0.25, 0.5], "in both directions"
