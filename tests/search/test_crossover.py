"""Crossover of tours and the distance between solutions: worked examples, and properties on random tours."""

from __future__ import annotations

import numpy as np
import pytest

from ndsvrp.search.crossover import Room, apart, below, cross, neighbours

# Customers 1 to 8 on a line, in this order; nearest first, the lower number first where two are equally near.
NEAR = np.array([sorted((v for v in range(1, 9) if v != c), key=lambda v, c=c: abs(v - c)) for c in range(9)][1:])
NEAR = np.vstack([np.arange(1, 8), NEAR]).astype(np.int32)
BY_PAIRS = np.array([1, 2, 0, 3, 4, 0, 5, 6, 0, 7, 8, 0], np.int32)
ACROSS = np.array([2, 3, 5, 0, 8, 6, 0, 1, 4, 7, 0], np.int32)


def word(number: int, count: int) -> int:
    """Return a random word for which `below` gives this number."""
    chosen = -(-(number << 32) // count)
    assert below(chosen, count) == number
    return chosen


def crossed(first: np.ndarray, second: np.ndarray, stop: int, percent: int, capacity: int = 0) -> list[int]:
    """Return a child by the customer that is the given one of those served, and by a share of the routes.

    Without capacity no routes are joined.
    """
    served, room = int(np.count_nonzero(second)), Room(np.ones(9, np.int32), capacity)
    return cross(first, second, NEAR, room, word(stop, served), word(percent - 10, 31)).tolist()


def test_words_of_32_bits_become_numbers_below() -> None:
    assert [below(w, 3) for w in (0, 1431655765, 1431655766, 2863311531, 2**32 - 1)] == [0, 0, 1, 2, 2]


def test_a_child_has_a_route_of_the_second_parent_and_the_rest_of_the_first() -> None:
    """The route of customer 4, the fourth that the second parent serves, replaces what the first does with 3 and 4."""
    assert crossed(ACROSS, BY_PAIRS, 3, 25) == [3, 4, 0, 8, 6, 0, 2, 5, 0, 1, 7, 0]


def test_neighbouring_routes_have_the_nearest_customers() -> None:
    """38% of four routes are two. Next to customer 4 is 3, of its own route, then 5. Next to 3 is 2."""
    assert crossed(ACROSS, BY_PAIRS, 3, 38) == [3, 4, 0, 5, 6, 0, 1, 7, 0, 2, 0, 8, 0]
    assert crossed(ACROSS, BY_PAIRS, 2, 38) == [3, 4, 0, 1, 2, 0, 8, 6, 0, 5, 0, 7, 0]


def test_what_is_left_of_routes_is_joined_where_there_is_room() -> None:
    """Of (2, 3, 5), (8, 6) and (1, 4, 7), without 3, 4, 5 and 6, the rests 2, 8 and (1, 7) are left."""
    assert crossed(ACROSS, BY_PAIRS, 3, 38, capacity=2) == [3, 4, 0, 5, 6, 0, 1, 7, 0, 2, 8, 0]
    assert crossed(ACROSS, BY_PAIRS, 3, 38, capacity=3) == [3, 4, 0, 5, 6, 0, 1, 7, 2, 0, 8, 0]
    assert crossed(ACROSS, BY_PAIRS, 3, 38, capacity=4) == [3, 4, 0, 5, 6, 0, 1, 7, 2, 8, 0]


def test_the_smallest_loads_stay_unserved_if_vehicles_are_too_few() -> None:
    """Of the child 3 4, 5 6, 1 7, 2, 8 the routes of customers 2 and 8 alone are the smallest, then 3 4."""
    demand = np.array([0, 4, 1, 1, 2, 3, 3, 3, 1], np.int32)
    for vehicles, expected in (
        (5, [3, 4, 0, 5, 6, 0, 1, 7, 0, 2, 0, 8, 0]),
        (4, [3, 4, 0, 5, 6, 0, 1, 7, 0, 2, 0]),
        (3, [3, 4, 0, 5, 6, 0, 1, 7, 0]),
        (2, [5, 6, 0, 1, 7, 0]),
    ):
        child = cross(ACROSS, BY_PAIRS, NEAR, Room(demand, 0, vehicles), word(3, 8), word(28, 31))
        assert child.tolist() == expected


def test_shares_of_routes_are_rounded() -> None:
    """Of three routes 10% are one, of four 37% are one and 38% are two: 1.48 and 1.52."""
    assert crossed(BY_PAIRS, ACROSS, 0, 10)[:4] == [2, 3, 5, 0]
    assert crossed(ACROSS, BY_PAIRS, 3, 37)[:6] == [3, 4, 0, 8, 6, 0]
    assert crossed(ACROSS, BY_PAIRS, 3, 38)[:6] == [3, 4, 0, 5, 6, 0]


def test_routes_that_lose_all_customers_vanish() -> None:
    assert crossed(BY_PAIRS, BY_PAIRS, 5, 25) == [5, 6, 0, 1, 2, 0, 3, 4, 0, 7, 8, 0]


def test_unserved_customers_stay_so_if_neither_route_serves_them() -> None:
    first, second = np.array([1, 2, 0], np.int32), np.array([3, 4, 0, 2, 5, 0], np.int32)
    assert crossed(first, second, 3, 40) == [2, 5, 0, 1, 0]
    nobody = np.zeros(0, np.int32)
    assert crossed(nobody, second, 0, 40) == [3, 4, 0]
    assert cross(first, nobody, NEAR, Room(np.ones(9, np.int32), 9), 0, 0).tolist() == [1, 2, 0]


@pytest.mark.parametrize("seed", range(20))
def test_children_of_random_parents_serve_everybody_once(seed: int) -> None:
    random = np.random.default_rng(seed)
    customers = int(random.integers(1, 40))
    near = np.array(
        [random.permutation(np.setdiff1d(np.arange(1, customers + 1), [c])) for c in range(1, customers + 1)]
    )
    near = np.vstack([near[:1], near]).astype(np.int32)

    def drawn() -> np.ndarray:
        order = random.permutation(customers) + 1
        cuts = np.sort(random.choice(customers, size=int(random.integers(0, customers)), replace=False))
        return np.concatenate([[*part, 0] for part in np.split(order, cuts) if len(part)]).astype(np.int32)

    first, second = drawn(), drawn()
    room = Room(random.integers(0, 9, customers + 1).astype(np.int32), int(random.integers(9, 50)))
    child = cross(first, second, near, room, *(int(w) for w in random.integers(2**32, size=2)))
    assert sorted(child[child > 0].tolist()) == list(range(1, customers + 1))
    assert child[-1] == 0
    assert not np.any((child[1:] == 0) & (child[:-1] == 0)), "no empty route"
    assert child.dtype == np.int32
    kept = set(" ".join(map(str, second.tolist())).split(" 0 "))
    assert " ".join(map(str, child.tolist())).split(" 0 ")[0].removesuffix(" 0") in {k.removesuffix(" 0") for k in kept}


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
