"""Points in the unit square for every problem, by its coordinates or made up from its matrix."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ndsvrp import Problem
from ndsvrp.search.plane import plane, scaled_down


def at(points: Any, **fields: Any) -> Problem:
    customers = len(points) - 1
    return Problem(coordinates=points, demand=np.r_[0, np.ones(customers)], capacity=customers, **fields)


def between(points: np.ndarray) -> np.ndarray:
    """(n, n) distances."""
    return np.linalg.norm(points[:, None] - points, axis=-1)


def by(distance: np.ndarray, **fields: Any) -> Problem:
    customers = len(distance) - 1
    return Problem(distance=distance, demand=np.r_[0, np.ones(customers)], capacity=customers, **fields)


# --- coordinates ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("points", "expected"),
    [
        ([[0, 0], [1, 1], [0.25, 0.5]], [[0, 0], [1, 1], [0.25, 0.5]]),
        ([[0, 0], [10, 20], [5, 5]], [[0.25, 0], [0.75, 1], [0.5, 0.25]]),
        ([[0, 0], [20, 10], [5, 5]], [[0, 0.25], [1, 0.75], [0.25, 0.5]]),
        ([[-8, 100], [-4, 100], [-6, 100]], [[0, 0.5], [1, 0.5], [0.5, 0.5]]),
        ([[3, 1], [3, 1], [3, 5]], [[0.5, 0], [0.5, 0], [0.5, 1]]),
        ([[7, 7], [7, 7], [7, 7]], [[0.5, 0.5], [0.5, 0.5], [0.5, 0.5]]),
        ([[1e6, 1e6], [1e6 + 4, 1e6 + 2]], [[0, 0.25], [1, 0.75]]),
        ([[0.125, 0], [0.25, 0]], [[0, 0.5], [1, 0.5]]),
    ],
    ids=["as it is", "high", "wide", "line", "coincident", "one place", "far off", "one customer"],
)
def test_unit_square(points: list[list[float]], expected: list[list[float]]) -> None:
    assert plane(at(points)).tolist() == expected


def test_distances_keep_their_proportions() -> None:
    points = np.random.default_rng(0).random((12, 2)) * [300, 100] + [50, -900]
    problem = at(points)
    assert np.allclose(between(plane(problem)) * problem.side(), between(points), rtol=1e-12)


def test_rounding_does_not_move_points() -> None:
    points = [[0, 0], [3, 7], [10, 2]]
    assert np.array_equal(plane(at(points)), plane(at(points, metric="round")))


# --- matrices --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("nodes", [3, 4, 7, 30, 200])
def test_a_plane_is_recovered(nodes: int) -> None:
    points = np.random.default_rng(nodes).random((nodes, 2)) * [40, 25] + 7
    far = between(points)
    assert np.allclose(between(scaled_down(far)), far, rtol=0, atol=1e-6)
    found = plane(by(far))
    assert found.min() == pytest.approx(0, abs=1e-12) and found.max() == pytest.approx(1, abs=1e-12)
    ratio = between(found)[0, 1] / far[0, 1]
    assert np.allclose(between(found), ratio * far, rtol=0, atol=1e-6)


def test_a_line_is_recovered() -> None:
    places = np.array([0.0, 5, 1, 9, 4])
    found = plane(by(np.abs(places[:, None] - places)))
    assert np.allclose(between(found), np.abs(places[:, None] - places) / 9, rtol=0, atol=1e-6)


@pytest.mark.parametrize("distance", [3.0, 0.0])
def test_one_customer(distance: float) -> None:
    found = plane(by(np.array([[0, distance], [distance, 0]])))
    assert np.allclose(between(found), [[0, distance > 0], [distance > 0, 0]], rtol=0, atol=1e-12)
    assert np.allclose(found.mean(axis=0), 0.5, rtol=0, atol=1e-12)


def test_nothing_is_far() -> None:
    assert plane(by(np.zeros((5, 5)))).tolist() == [[0.5, 0.5]] * 5


def test_a_matrix_rules_over_coordinates() -> None:
    far = np.array([[0, 3, 4], [3, 0, 5], [4, 5, 0]], float)
    drawn = by(far, coordinates=[[0, 0], [1, 0], [100, 100]])
    assert np.array_equal(plane(drawn), plane(by(far)))


def test_asymmetric() -> None:
    """Ways there and back differ by a tenth or less: points are those of the mean, which come close to both."""
    random = np.random.default_rng(0)
    far = between(random.random((40, 2)))
    skew = far * (1 + 0.1 * random.uniform(-1, 1, far.shape))
    found = scaled_down(skew)
    assert np.array_equal(found, scaled_down(skew.T))
    assert np.array_equal(found, scaled_down((skew + skew.T) / 2))
    away = ~np.eye(40, dtype=bool)
    assert np.abs(between(found) - far)[away].mean() < 0.05 * far[away].mean()
    assert np.corrcoef(between(found)[away], skew[away])[0, 1] > 0.98


def test_no_space_has_these_distances() -> None:
    """Shortcuts break the triangle inequality; the rest of the map stays recognisable."""
    random = np.random.default_rng(1)
    points = random.random((60, 2))
    far = between(points)
    cut = np.triu(random.random(far.shape) < 0.03, 1)
    far[cut | cut.T] *= 0.1
    values = np.linalg.eigvalsh(-0.5 * (np.eye(60) - 1 / 60) @ far**2 @ (np.eye(60) - 1 / 60))
    assert values[0] < -0.1, "not Euclidean"
    found = plane(by(far))
    assert np.isfinite(found).all()
    away = ~(np.eye(60, dtype=bool) | cut | cut.T)
    assert np.corrcoef(between(found)[away], between(points)[away])[0, 1] > 0.97


def test_no_room_for_a_second_dimension() -> None:
    """Distances that grow faster than the way: no eigenvalue but one is above 0, and a line is what is left."""
    places = np.arange(20.0)
    far = np.abs(places[:, None] - places) ** 1.5
    points = scaled_down(far)
    assert (
        np.count_nonzero(np.linalg.eigvalsh(-0.5 * (np.eye(20) - 1 / 20) @ far**2 @ (np.eye(20) - 1 / 20)) > 1e-6) == 1
    )
    assert np.all(points[:, 1] == 0)
    steps = np.diff(points[:, 0])
    assert np.all(steps > 0) or np.all(steps < 0), "in their order"


def test_streets() -> None:
    """City blocks: more than two dimensions are needed for these; the map is right in its outline."""
    places = np.array([(x, y) for x in range(7) for y in range(7)], float)
    far = np.abs(places[:, None] - places).sum(-1)
    away = ~np.eye(49, dtype=bool)
    assert np.corrcoef(between(scaled_down(far))[away], far[away])[0, 1] > 0.95


@pytest.mark.parametrize("seed", range(4))
def test_as_a_full_decomposition(seed: int) -> None:
    """Points from all eigenvectors at once (Torgerson 1952), for matrices that are anything but a plane."""
    random = np.random.default_rng(seed)
    far = between(random.random((25, 3)) * [1.0, 0.7, 0.2]) + 0.05 * random.random((25, 25))
    np.fill_diagonal(far, 0)
    squares = ((far + far.T) / 2) ** 2
    centring = np.eye(25) - 1 / 25
    values, vectors = np.linalg.eigh(-centring @ squares @ centring / 2)
    expected = vectors[:, -2:] * np.sqrt(values[-2:])
    assert np.allclose(between(scaled_down(far)), between(expected), rtol=0, atol=1e-6)


def test_deterministic() -> None:
    far = between(np.random.default_rng(3).random((20, 2)))
    state = np.random.get_state()[1].copy()
    assert np.array_equal(plane(by(far)), plane(by(far.copy())))
    assert np.array_equal(np.random.get_state()[1], state), "the global random numbers are untouched"
