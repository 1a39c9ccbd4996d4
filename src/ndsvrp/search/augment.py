"""Augmentations of an instance: the eight symmetries of the square (Kwon et al. 2020)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ndsvrp.problem import Problem


def augmentations(problem: Problem, count: int) -> npt.NDArray[np.float64] | None:
    """(count, N+1, 2) coordinates, flipped and turned about the centre of the bounding box; more than eight repeat.

    Distances stay the same, so that engines need none of this: it is what a policy gets to see. None where a
    matrix rules: coordinates, if any, are for drawing only.
    """
    if problem.coordinates is None or problem.distance is not None:
        return None
    low, high = problem.coordinates.min(axis=0), problem.coordinates.max(axis=0)
    centre = (low + high) / 2
    x, y = (problem.coordinates - centre).T
    turned = [(x, y), (-x, y), (x, -y), (-x, -y), (y, x), (-y, x), (y, -x), (-y, -x)]
    return np.stack([np.stack(turned[i % 8], axis=1) + centre for i in range(count)])
