"""Training instances: batches from the curriculum. An instance depends on seed and number alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from ndsvrp.errors import NdsError
from ndsvrp.generate import Clustered
from ndsvrp.generate.instances import Recipe
from ndsvrp.problem import Problem
from ndsvrp.train.config import Source, TrainConfig
from ndsvrp.train.gpu_batch import GpuBatch, InstanceRecipe
from ndsvrp.train.own_instances import Own
from ndsvrp.variants import VARIANTS

Make = Callable[[InstanceRecipe, int, int, int], Sequence[Problem] | GpuBatch]
"""Make instances of a recipe: seed, number of the first, how many."""


def make_problems(recipe: InstanceRecipe, seed: int, first: int, count: int) -> Sequence[Problem]:
    """Make instances on the CPU, as problems."""
    return recipe.problems(seed, first, count)


@dataclass(frozen=True)
class Share:
    """The part of each batch that a process works on: `count` of `batch` instances, from `first` on."""

    batch: int
    first: int
    count: int

    @classmethod
    def of(cls, batch: int, rank: int, processes: int) -> Share:
        """Return the share of a process. Shares are equal, because gradients are averaged over processes."""
        if batch % processes:
            raise NdsError(f"a batch of {batch} instances cannot be shared equally by {processes} processes")
        count = batch // processes
        return cls(batch, rank * count, count)

    def halved(self, customers: int, most: int) -> Share:
        """Return the share of a smaller batch: halved while possible, until the batch has at most `most` customers."""
        share = self
        while share.batch * customers > most and share.count % 2 == 0:
            share = Share(share.batch // 2, share.first // 2, share.count // 2)
        return share


@dataclass(eq=False)
class Batch:
    """Instances of one problem and one size."""

    number: int
    problem: str
    customers: int
    first: int  #: number of the first instance within the run
    problems: Sequence[Problem] | GpuBatch
    share: Share  #: the part of the batch that these are


def recipe_of(source: Source, customers: int, own: Own | None = None) -> InstanceRecipe:
    """Return the recipe of a source for one of its sizes. `own` holds the instances of sources with files."""
    if source.files:
        return (own or {})[source.files].recipe(customers)
    clustered = Clustered(depot=source.depot) if source.depot else Clustered()  # type: ignore[arg-type]  # checked there
    return Recipe(
        VARIANTS[source.problem], source.where(), customers, clustered=clustered,
        customers_per_route=source.customers_per_route,
    )  # fmt: skip


@dataclass(frozen=True)
class BatchMaker:
    """Make batches of a run, or the share of them that a process works on."""

    config: TrainConfig
    share: Share
    make: Make = make_problems  #: makes the instances of a batch
    own: Own = field(default_factory=dict)

    def __call__(self, number: int) -> Batch:
        """Return batch `number`. All processes choose the same source and size.

        Large instances come in smaller batches if the customers of a batch are limited. The numbers of instances do
        not change.
        """
        sources, train = self.config.data, self.config.train
        random = np.random.default_rng((train.seed, number, 0))
        weights = np.array([source.weight for source in sources])
        source = sources[random.choice(len(sources), p=weights / weights.sum())]
        customers = int(random.choice(source.customers))
        share = self.share.halved(customers, train.batch_customers) if train.batch_customers else self.share
        first = number * self.share.batch + share.first
        made = self.make(recipe_of(source, customers, self.own), train.seed, first, share.count)
        return Batch(number, source.problem, customers, first, made, share)
