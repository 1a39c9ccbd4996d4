"""The user's own instances: read, refused if training cannot use them, split, and put into unit scale."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np

from ndsvrp.constraints import constraints_of
from ndsvrp.data.make import digest
from ndsvrp.errors import NdsError
from ndsvrp.generate.resample import NEAR, Pool, Resampled
from ndsvrp.io.reader import read_set
from ndsvrp.metric import Floats
from ndsvrp.problem import Problem
from ndsvrp.search.plane import scaled_down
from ndsvrp.text import amount
from ndsvrp.train.config import TrainConfig
from ndsvrp.variants import VARIANTS, variant_of

LEAST = 4  #: instances: two to train on and two to hold back
MOST = 512  #: instances used of a larger set, evenly spaced
MOST_HELD_BACK = 32
SIZES = 6  #: sizes of batches, at most: every size costs a GPU memory and preparation
ALIKE = 2.0  # an instance is resampled to at most this times its size, and at least its size over this
REACH, THIRD = 0.5, 3  # how far a customer is moved, relative to the distance to its third nearest one
LARGEST_CAPACITY = 100_000  # whole demands are kept up to this capacity; others are scaled to FINE
FINE = 10_000
ROWS = 256  # of a distance matrix that are computed at once


@dataclass(frozen=True, eq=False)
class OwnInstances:
    """Instances of one variant: those to train on, and those that are held back."""

    variant: str
    training: Sequence[Problem]
    held_back: Sequence[Problem]  #: with any number of vehicles, as in training
    digest: str = ""  #: of all of them
    _recipes: dict[int, Resampled] = field(default_factory=dict)  # by size: each holds its copies on devices

    def sizes(self) -> tuple[int, ...]:
        """Return sizes for batches: those of the instances, or some of them if there are many."""
        sizes = np.sort([problem.customers for problem in self.training])
        if len(set(sizes.tolist())) > SIZES:
            sizes = sizes[np.rint(np.linspace(0, len(sizes) - 1, SIZES)).astype(int)]
        return tuple(dict.fromkeys(sizes.tolist()))

    def recipe(self, customers: int) -> Resampled:
        """Return the recipe for instances of this size: from those of a similar size, or of the nearest one."""
        if customers not in self._recipes:
            ratio = np.abs(np.log([problem.customers / customers for problem in self.training]))
            alike = np.flatnonzero(ratio <= max(np.log(ALIKE), ratio.min()) + 1e-9)
            pool = pool_of([self.training[int(i)] for i in alike])
            self._recipes[customers] = Resampled(pool, self.variant, customers)
        return self._recipes[customers]


Own = dict[str, OwnInstances]
"""The own instances of a run, by the field `files` of their source."""


def read_own(config: TrainConfig) -> Own:
    """Read the files of all sources that have some."""
    own: Own = {}
    for source in config.data:
        if source.files:
            read = own.get(source.files) or read_instances(
                source.files, config.validation.held_back, config.validation.seed
            )
            if read.variant != source.problem:
                raise NdsError(f"{source.files}: holds {read.variant} instances, the source says {source.problem}")
            if source.digest not in ("", read.digest):
                raise NdsError(f"{source.files}: holds other instances than the run began with; start a new run")
            own[source.files] = read
    return own


def read_instances(path: str | Path, held_back: float, seed: int) -> OwnInstances:
    """Read a set or folder. The share that is held back is spread evenly over sizes and files."""
    found = read_set(path)
    if len(found) < LEAST:
        needed = f"training on your own needs {LEAST} or more, some of which are held back"
        raise NdsError(f"{path}: has {amount(len(found), 'instance')}, and {needed}")
    used = np.unique(np.rint(np.linspace(0, len(found) - 1, min(len(found), MOST))).astype(int))
    problems = [found[int(i)] for i in used]
    variant = _variant(path, problems)
    problems.sort(key=lambda problem: problem.customers)  # stable: files of one size keep their order
    count = min(max(2, round(held_back * len(problems))), len(problems) - 2, MOST_HELD_BACK)
    begin = np.random.default_rng((seed, 5)).random()
    apart = {int((i + begin) * len(problems) / count) for i in range(count)}
    return OwnInstances(
        variant,
        [problem for i, problem in enumerate(problems) if i not in apart],
        [problems[i].replace(vehicles=None) for i in sorted(apart)],
        _digest(problems),
    )


def _digest(problems: Iterable[Problem]) -> str:
    total = hashlib.sha256()
    for problem in problems:
        values = {f.name: getattr(problem, f.name) for f in fields(problem)}
        arrays = {name: value for name, value in values.items() if isinstance(value, np.ndarray)}
        total.update(digest(arrays).encode() + repr((problem.capacity, problem.metric)).encode())
    return total.hexdigest()[:16]


def _variant(path: str | Path, problems: Iterable[Problem]) -> str:
    """Return the variant of all instances. Raise if they have several, or one that training does not know."""
    first: tuple[str, str] | None = None
    for problem in problems:
        variant = variant_of(problem)
        if variant.name not in VARIANTS:
            known = max((v.constraints for v in VARIANTS.values() if v.constraints <= variant.constraints), key=len)
            what = " and ".join(sorted(constraint.name for constraint in variant.constraints - known))
            raise NdsError(f"{path}: {problem.name} has a {what}, which training does not support")
        if problem.coordinates is None:
            raise NdsError(f"{path}: {problem.name} has a matrix and no coordinates, which training needs")
        if first is not None and variant.name != first[0]:
            one, other = VARIANTS[first[0]].title, variant.title
            raise NdsError(
                f"{path}: {first[1]} is a {one} and {problem.name} a {other}: train on one problem at a time"
            )
        first = first or (variant.name, problem.name)
    assert first is not None
    return first[0]


def pool_of(problems: Sequence[Problem]) -> Pool:
    """Return problems of one variant in unit scale."""
    rows = [_unit(problem) for problem in problems]
    width = max(len(row["demand"]) for row in rows)
    whole = ("customers", "capacity", "depot", "closes")  # one entry per instance, not per customer
    arrays: dict[str, Any] = {
        name: np.stack([row[name] if name in whole else _padded(row[name], width) for row in rows]) for name in rows[0]
    }
    return Pool(**arrays)


def _unit(problem: Problem) -> dict[str, Any]:
    """Return a row of a pool, without customers that no vehicle can serve on a route of their own."""
    served = np.ones(len(problem.demand), bool)
    for constraint in constraints_of(problem):
        served &= ~np.asarray(constraint.unreachable(problem))
    kept = np.flatnonzero(served[1:]) + 1
    if not len(kept):
        raise NdsError(f"{problem.name}: no vehicle can serve any of its customers")
    points = _points(problem)
    low, high = points.min(axis=0), points.max(axis=0)
    side = float(np.max(high - low)) or 1.0
    points = (points - low) / side
    near, far = neighbourhood(points[kept])
    demand, capacity = whole_demand(problem)
    row: dict[str, Any] = {
        "customers": np.int64(len(kept)), "capacity": np.int64(capacity), "depot": points[0], "points": points[kept],
        "reach": REACH * far, "near": near, "demand": demand[kept],
    }  # fmt: skip
    if problem.windows is not None:
        unit = side * problem.time_unit() / problem.side()  # of times, which a duration matrix has of its own
        windows = (problem.windows - problem.windows[0, 0]) / unit
        service = np.zeros(len(served)) if problem.service is None else problem.service / unit
        closes = windows[0, 1]
        row |= {"closes": closes, "windows": np.clip(windows[kept], 0.0, closes), "service": service[kept]}
    if problem.prize is not None:
        row["prize"] = problem.prize[kept] / side
    return row


def _points(problem: Problem) -> Floats:
    """Return (N+1, 2) points in units of length. Those of a matrix have its distances as nearly as a plane allows."""
    if problem.distance is None:
        assert problem.coordinates is not None
        return problem.coordinates
    points = scaled_down(problem.distance)
    total = sum(
        float(np.hypot(*(points[i : i + ROWS, None] - points[None]).transpose(2, 0, 1)).sum())
        for i in range(0, len(points), ROWS)
    )
    return np.asarray(points * (float(problem.distance.sum()) / total if total > 0 else 1.0))


def whole_demand(problem: Problem) -> tuple[Any, int]:
    """Return (N+1,) demands and the capacity as whole numbers, rounded if they are not whole or very large."""
    whole = problem.capacity_tolerance == 0 and problem.capacity <= LARGEST_CAPACITY
    scale = 1.0 if whole else FINE / problem.capacity
    return np.rint(problem.demand * scale).astype(np.int64), round(problem.capacity * scale)


def neighbourhood(points: Floats) -> tuple[Any, Floats]:
    """Return (n, 1 + NEAR) each customer and its nearest ones, and (n,) the distance to the third nearest.

    A customer takes the place of those that are not there.
    """
    n = len(points)
    count = min(NEAR, n - 1)
    near, far = np.repeat(np.arange(n)[:, None], 1 + NEAR, axis=1), np.zeros(n)
    for begin in range(0, n, ROWS) if count else ():
        rows = np.arange(begin, min(n, begin + ROWS))
        square = ((points[rows, None] - points[None]) ** 2).sum(axis=2)
        square[np.arange(len(rows)), rows] = np.inf
        nearest = np.argpartition(square, count - 1, axis=1)[:, :count]
        order = np.argsort(np.take_along_axis(square, nearest, axis=1), axis=1, kind="stable")
        near[rows, 1 : 1 + count] = nearest = np.take_along_axis(nearest, order, axis=1)
        far[rows] = np.sqrt(square[np.arange(len(rows)), nearest[:, min(THIRD, count) - 1]])
    return near, far


def _padded(values: Any, width: int) -> Any:
    return np.concatenate([values, np.zeros((width - len(values), *values.shape[1:]), values.dtype)])
