"""Generate random instances from a seed: uniform and clustered customers, time windows, prizes.

Code belongs here if it turns random numbers into instances, for files, tests and training alike. `docs/instances.md`
states the recipe of every part.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

import numpy as np

from ndsvrp.constraints import PRIZES, TIME_WINDOWS
from ndsvrp.errors import NdsError
from ndsvrp.generate import constraints, places
from ndsvrp.generate.config import TEST_SEEDS, Clustered, Layout, Prizes, Uniform, Windows, choose
from ndsvrp.generate.places import uniform_capacity
from ndsvrp.problem import Problem
from ndsvrp.variants import VARIANTS, Variant

__all__ = ["TEST_SEEDS", "Clustered", "Layout", "Prizes", "Uniform", "Windows", "generate", "uniform_capacity"]


def generate(
    variant: str,
    n: int,
    *,
    count: int = 1,
    seed: int = 0,
    first: int = 0,
    layout: str | None = None,
    capacity: float | None = None,
    uniform: Uniform | None = None,
    clustered: Clustered | None = None,
    windows: Windows | None = None,
    prizes: Prizes | None = None,
) -> list[Problem]:
    """Instances `first` … `first + count - 1` of the set with this seed, each with n customers.

    Instance i depends on (seed, i) alone, so that a longer set begins with the shorter one; and variants of
    one layout share places, demands and capacities, so that only what a variant adds makes the difference.
    `layout` and `capacity` default to those of the variant and the layout. The last four hold the settings
    of each part; one that the instance has no use for is refused.
    """
    for name, value, least in (("n", n, 1), ("count", count, 0), ("seed", seed, 0), ("first", first, 0)):
        if value < least:
            raise NdsError(f"{name} must be at least {least}, got {value}")
    choose("variant", variant, VARIANTS)
    row = VARIANTS[variant]
    layout = row.layout if layout is None else layout
    choose("layout", layout, get_args(Layout))
    for part, given, present in (
        ("uniform", uniform, layout == "uniform"),
        ("clustered", clustered, layout == "clustered"),
        ("windows", windows, TIME_WINDOWS in row.constraints),
        ("prizes", prizes, PRIZES in row.constraints),
    ):
        if given is not None and not present:
            raise NdsError(f"settings for '{part}' were given, which a {layout} {variant} does not have")
    recipe = _Recipe(
        row,
        n,
        layout,
        capacity,
        uniform or Uniform(),
        clustered or Clustered(),
        windows or Windows(),
        prizes or Prizes(),
    )
    return [recipe.instance(seed, index) for index in range(first, first + count)]


@dataclass(frozen=True)
class _Recipe:
    variant: Variant
    n: int
    layout: str
    capacity: float | None
    uniform: Uniform
    clustered: Clustered
    windows: Windows
    prizes: Prizes

    def instance(self, seed: int, index: int) -> Problem:
        """Instance `index` of the set with this seed; each part has a random stream of its own."""
        streams = np.random.SeedSequence(entropy=seed, spawn_key=(index,)).spawn(3)
        of_place, of_windows, of_prizes = (np.random.Generator(np.random.PCG64(stream)) for stream in streams)
        if self.layout == "uniform":
            place = places.uniform(self.n, of_place, self.uniform)
        else:
            place = places.clustered(self.n, of_place, self.clustered)
        windows = service = prize = None
        if TIME_WINDOWS in self.variant.constraints:
            windows, service = constraints.windows(place.coordinates, of_windows, self.windows)
        if PRIZES in self.variant.constraints:
            prize = constraints.prizes(place.demand, of_prizes, self.prizes)
        return Problem(
            coordinates=place.coordinates,
            demand=np.concatenate([[0.0], place.demand]),
            capacity=place.capacity if self.capacity is None else self.capacity,
            windows=windows,
            service=service,
            prize=prize,
            name=f"{self.variant.name}{self.n}-seed{seed}-{index:04d}",
        )
