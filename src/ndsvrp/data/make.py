"""Make the paper's sets, and compute digests of sets."""

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from ndsvrp.data.published_draws import draw
from ndsvrp.data.sets import BenchmarkSet
from ndsvrp.errors import InstanceError
from ndsvrp.io.npz import Arrays, build
from ndsvrp.metric import Metric
from ndsvrp.problem import Problem


def make(row: BenchmarkSet, count: int | None = None) -> Arrays:
    """Return the arrays of a set, or of its first `count` instances."""
    if row.seed is None:
        raise InstanceError("comes as files and is not made", file=row.name)
    if count is not None and not 1 <= count <= row.instances:
        raise InstanceError(f"{count} is not within 1-{row.instances}", file=row.name, field="instances")
    return draw(row.variant, row.size, count or row.instances, row.seed, row.instances)


def problems(name: str, arrays: Arrays) -> list[Problem]:
    """Return the checked problems of a set. An error names the instance."""
    return [build(name, arrays, i, Metric.NONE) for i in range(len(arrays["capacity"]))]


def digest(arrays: Mapping[str, npt.NDArray[Any]]) -> str:
    """Return the SHA-256 of the values of a set. Types of numbers and the form of the file do not matter."""
    total = hashlib.sha256()
    for name in sorted(arrays):
        values = np.ascontiguousarray(arrays[name], "<f8")
        total.update(f"{name} {values.shape}\n".encode())
        total.update(values.tobytes())
    return total.hexdigest()
