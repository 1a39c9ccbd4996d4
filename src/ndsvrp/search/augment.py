"""Augmentations of an instance: the eight symmetries of the square (Kwon et al. 2020)."""

import numpy as np
import numpy.typing as npt

from ndsvrp.problem import Problem
from ndsvrp.search.plane import plane


def augmentations(problem: Problem, count: int) -> npt.NDArray[np.float64]:
    """Return (count, N+1, 2) coordinates in the unit square, flipped and turned; more than eight repeat.

    Only ruins read them: distances do not change, so engines need no augmentation.
    """
    x, y = (plane(problem) - 0.5).T
    turned = [(x, y), (-x, y), (x, -y), (-x, -y), (y, x), (-y, x), (y, -x), (-y, -x)]
    return np.stack([np.stack(turned[i % 8], axis=1) + 0.5 for i in range(count)])
