"""Coordinates in the unit square for the network, also for a problem with a matrix."""

import numpy as np

from ndsvrp.metric import Floats
from ndsvrp.problem import Problem

ROUNDS = 50  # of orthogonal iteration: more than enough for two leading directions
BLOCK = 8  # vectors iterated


def plane(problem: Problem) -> Floats:
    """Return (N+1, 2) coordinates: the larger side of the bounding box becomes [0, 1], the other is centred.

    A problem with a matrix gets points with similar distances (multidimensional scaling); its own coordinates, if any,
    are for drawing only.
    """
    points = scaled_down(problem.distance) if problem.distance is not None else problem.coordinates
    assert points is not None
    low, high = points.min(axis=0), points.max(axis=0)
    side = float(np.max(high - low))
    return np.asarray((points - (low + high) / 2) / (side if side > 0 else 1.0) + 0.5)


def scaled_down(distance: Floats) -> Floats:
    """Return (n, 2) points by classical multidimensional scaling (Torgerson 1952) of a matrix (n, n), made symmetric.

    Orthogonal iteration finds the leading eigenvectors of the doubly centred squares in n^2 work per round; a full
    decomposition would take n^3. The block is wider than two because eigenvalues of non-Euclidean distances may be
    negative and large. Signs are fixed, so that the same matrix gives the same points.
    """
    squares = ((distance + distance.T) / 2) ** 2
    means = squares.mean(axis=0)
    centred = -(squares - means[:, None] - means[None, :] + means.mean()) / 2
    start = np.random.default_rng(0).standard_normal((len(distance), min(len(distance), BLOCK)))
    basis = np.linalg.qr(start)[0]
    for _ in range(ROUNDS):
        basis = np.linalg.qr(centred @ basis)[0]
    values, vectors = np.linalg.eigh(basis.T @ centred @ basis)
    points = (basis @ vectors[:, ::-1])[:, :2] * np.sqrt(np.maximum(values[::-1][:2], 0.0))
    largest = points[np.argmax(np.abs(points), axis=0), np.arange(points.shape[1])]
    return np.asarray(points * np.where(largest < 0, -1.0, 1.0))
