"""The eight symmetries of the square."""

from __future__ import annotations

import numpy as np

from ndsvrp import Problem
from ndsvrp.search.augment import augmentations


def test_augmentations() -> None:
    rng = np.random.default_rng(0)
    problem = Problem(coordinates=rng.random((8, 2)) * [3.0, 7.0] - 5.0, demand=np.r_[0, np.ones(7)], capacity=3)
    views = augmentations(problem, 11)
    assert views is not None
    assert views.shape == (11, 8, 2)
    assert np.allclose(views[0], problem.coordinates, rtol=0, atol=1e-14)
    assert np.array_equal(views[8:], views[:3])
    distances = np.linalg.norm(views[:, :, None] - views[:, None], axis=-1)
    assert np.allclose(distances, distances[0], rtol=0, atol=1e-13)
    # Each is a signed permutation of the axes around the centre of the box, and all eight are there.
    low, high = problem.coordinates.min(axis=0), problem.coordinates.max(axis=0)
    centred = problem.coordinates - (low + high) / 2
    found = {
        tuple(np.rint(np.linalg.lstsq(centred, view - (low + high) / 2)[0]).ravel().tolist()) for view in views[:8]
    }
    eight = {(a, 0, 0, b) for a in (1, -1) for b in (1, -1)} | {(0, a, b, 0) for a in (1, -1) for b in (1, -1)}
    assert found == eight


def test_no_augmentations_for_a_matrix() -> None:
    problem = Problem(distance=np.ones((3, 3)), demand=[0, 1, 1], capacity=2)
    assert augmentations(problem, 8) is None
