"""From a recipe to a batch of instances: one function for numpy and torch, on any device, with the same bits."""

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from ndsvrp.arrays import Array, namespace, to_numpy
from ndsvrp.counter_random import Words, key_of
from ndsvrp.generate import layouts, recipes
from ndsvrp.generate.attraction import Place, place
from ndsvrp.generate.config import Clustered, Prizes, Uniform, Windows
from ndsvrp.metric import Metric
from ndsvrp.problem import Problem
from ndsvrp.variants import Variant

KEY = 5  # keeps instances apart from other random numbers of the same seed


@dataclass(frozen=True)
class Recipe:
    """What instances of one size look like."""

    variant: Variant
    layout: str
    customers: int
    uniform: Uniform = field(default_factory=Uniform)
    clustered: Clustered = field(default_factory=Clustered)
    windows: Windows = field(default_factory=Windows)
    prizes: Prizes = field(default_factory=Prizes)
    customers_per_route: tuple[float, ...] = ()  #: (fewest, most), for which capacities are drawn; empty: by the layout

    @property
    def parts(self) -> set[str | None]:
        """Names of the settings that these instances use besides those of the layout."""
        return {constraint.generator for constraint in self.variant.constraints}

    def problems(self, seed: int, first: int, count: int, capacity: float | None = None) -> list[Problem]:
        """Return instances `first` … `first + count - 1` of a seed. Each of them is a batch of one in numpy."""
        name, numbers = f"{self.variant.name}{self.customers}-seed{seed}", range(first, first + count)
        return [draw(self, seed, np.array([i])).problem(0, f"{name}-{i:04d}", capacity) for i in numbers]

    def draw(self, seed: int, numbers: Array, place: Place = place) -> "Instances":
        """Return the instances of a seed with these numbers; see the function `draw`."""
        return draw(self, seed, numbers, place)


@dataclass(frozen=True, eq=False)
class Instances:
    """Instances of one size as arrays of numpy or torch. Node 0 is the depot."""

    coordinates: Array  #: (B, N+1, 2) float64
    demand: Array  #: (B, N+1) int64
    capacity: Array  #: (B,) int64
    windows: Array | None = None  #: (B, N+1, 2) float64
    service: Array | None = None  #: (B, N+1) float64, where there are windows
    prize: Array | None = None  #: (B, N+1) float64
    duration: ClassVar[None] = None  #: travel times are the lengths
    metric: ClassVar[Metric] = Metric.NONE
    has_whole_times: ClassVar[bool] = False

    def __len__(self) -> int:
        return len(self.capacity)

    @property
    def customers(self) -> int:
        """N."""
        return int(self.demand.shape[1]) - 1

    def box(self) -> tuple[Array, Array]:
        """Return the (B, 2) lower and upper corners of the bounding boxes."""
        xp = namespace(self.coordinates)
        return xp.amin(self.coordinates, axis=1), xp.amax(self.coordinates, axis=1)

    def side(self) -> Array:
        """Return the (B,) larger sides of the bounding boxes, 1 for boxes without extent, as `Problem.side`."""
        (low, high), xp = self.box(), namespace(self.coordinates)
        side = xp.amax(high - low, axis=1)
        return xp.where(side > 0, side, 1.0)

    def time_unit(self) -> Array:
        """Return (B,) the unit of times in policy inputs, as `Problem.time_unit`."""
        return self.side()

    def problem(self, i: int, name: str = "", capacity: float | None = None) -> Problem:
        """Return instance i as a validated problem, with another capacity if one is given."""
        parts = {part: to_numpy(value)[i] for part, value in vars(self).items() if value is not None}
        return Problem(**parts | ({} if capacity is None else {"capacity": capacity}), name=name)


def draw(recipe: Recipe, seed: int, numbers: Array, place: Place = place) -> Instances:
    """Return the instances of a seed with these numbers, (B,) int64.

    The library and the device of the numbers are those of the result. An instance depends on recipe, seed and number
    alone. Variants of one layout share coordinates, demands and capacities. `place` chooses the cells of clustered
    customers.
    """
    words, n = Words(numbers, key_of(seed, KEY)), recipe.customers
    if recipe.layout == "uniform":
        nodes = layouts.uniform(words, n, recipe.uniform)
    else:
        nodes = layouts.clustered(words, n, recipe.clustered, place)
    if recipe.customers_per_route:
        nodes = nodes._replace(capacity=layouts.customers_per_route(words, nodes.demand, *recipe.customers_per_route))
    parts: dict[str, Array] = {}
    if "windows" in recipe.parts:
        parts |= recipes.windows(words, nodes, recipe.windows)
    if "prizes" in recipe.parts:
        parts |= recipes.prizes(words, nodes, recipe.prizes)
    return Instances(nodes.coordinates, recipes.with_depot(nodes.demand), nodes.capacity, **parts)
