"""The eight symmetries of the square."""

from __future__ import annotations

import numpy as np
import pytest

from ndsvrp import Problem
from ndsvrp.search.augment import augmentations
from ndsvrp.search.plane import plane


def test_augmentations() -> None:
    rng = np.random.default_rng(0)
    problem = Problem(coordinates=rng.random((8, 2)) * [3.0, 7.0] - 5.0, demand=np.r_[0, np.ones(7)], capacity=3)
    views = augmentations(problem, 11)
    assert views.shape == (11, 8, 2)
    assert np.allclose(views[0], plane(problem), rtol=0, atol=1e-14)
    assert np.array_equal(views[8:], views[:3])
    assert views.min() == pytest.approx(0, abs=1e-14) and views.max() == pytest.approx(1, abs=1e-14)
    # Distances are those of the problem, in units of the larger side of its box.
    distances = np.linalg.norm(views[:, :, None] - views[:, None], axis=-1)
    nodes = np.arange(8)
    assert np.allclose(distances * problem.side(), problem.length(nodes[:, None], nodes), rtol=0, atol=1e-13)
    # Each is a signed permutation of the axes around (0.5, 0.5), and all eight are there.
    found = {tuple(np.rint(np.linalg.lstsq(views[0] - 0.5, view - 0.5)[0]).ravel().tolist()) for view in views[:8]}
    eight = {(a, 0, 0, b) for a in (1, -1) for b in (1, -1)} | {(0, a, b, 0) for a in (1, -1) for b in (1, -1)}
    assert found == eight


def test_views_of_a_small_case() -> None:
    # A box of 4 x 8 becomes one of 0.5 x 1, from x = 0.25 on.
    problem = Problem(coordinates=[[10, 0], [12, 2], [14, 8]], demand=[0, 1, 1], capacity=2)
    expected = [
        [[0.25, 0.0], [0.5, 0.25], [0.75, 1.0]],
        [[0.75, 0.0], [0.5, 0.25], [0.25, 1.0]],  # left and right changed
        [[0.25, 1.0], [0.5, 0.75], [0.75, 0.0]],  # up and down
        [[0.75, 1.0], [0.5, 0.75], [0.25, 0.0]],
        [[0.0, 0.25], [0.25, 0.5], [1.0, 0.75]],  # the axes
        [[1.0, 0.25], [0.75, 0.5], [0.0, 0.75]],
        [[0.0, 0.75], [0.25, 0.5], [1.0, 0.25]],
        [[1.0, 0.75], [0.75, 0.5], [0.0, 0.25]],
    ]
    assert augmentations(problem, 8).tolist() == expected
    assert augmentations(problem, 1).tolist() == expected[:1]


def test_a_matrix_has_views_too() -> None:
    # A right triangle with legs 3 and 4, by its distances alone.
    far = np.array([[0, 3, 4], [3, 0, 5], [4, 5, 0]], float)
    problem = Problem(distance=far, demand=[0, 1, 1], capacity=2)
    views = augmentations(problem, 8)
    assert views.shape == (8, 3, 2)
    distances = np.linalg.norm(views[:, :, None] - views[:, None], axis=-1)
    assert np.allclose(distances, far * (distances[0, 1, 2] / 5), rtol=0, atol=1e-9)
    assert len({tuple(view.ravel().round(9)) for view in views}) == 8
