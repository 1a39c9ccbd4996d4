"""Training instances: batch after batch from the curriculum, each instance by its number alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ndsvrp.errors import NdsError
from ndsvrp.generate import Clustered, generate
from ndsvrp.problem import Problem
from ndsvrp.train.config import Source

if TYPE_CHECKING:
    from ndsvrp.train.drawn import Drawn


Make = Callable[[Source, int, int, int, int], "Sequence[Problem] | Drawn"]
"""Instances of a source: customers, seed, number of the first, how many."""


@dataclass(frozen=True)
class Share:
    """The part of every batch that a process works on: `count` instances from `first` on, of `batch`."""

    batch: int
    first: int
    count: int

    @classmethod
    def of(cls, batch: int, rank: int, processes: int) -> Share:
        """Equal parts, as gradients are averaged over processes."""
        if batch % processes:
            raise NdsError(f"a batch of {batch} instances cannot be shared equally by {processes} processes")
        count = batch // processes
        return cls(batch, rank * count, count)

    def halved(self, customers: int, most: int) -> Share:
        """A share of fewer instances of this size: halved, while that is possible, until all have at most so many
        customers together."""
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
    first: int  #: number of the first instance among all of the run
    problems: Sequence[Problem] | Drawn
    share: Share  #: which of the batch these are


def instances(source: Source, customers: int, seed: int, first: int, count: int) -> list[Problem]:
    """Instances `first` … of a source: the same ones whoever draws them."""
    clustered = Clustered(depot=source.depot) if source.depot else None  # type: ignore[arg-type]  # one of its words
    made = generate(
        source.problem, customers, count=count, seed=seed, first=first, layout=source.where(), clustered=clustered
    )
    if not source.customers_per_route:
        return made
    return [_with_routes_of(source, problem, (seed, first + i, 1)) for i, problem in enumerate(made)]


def _with_routes_of(source: Source, problem: Problem, key: tuple[int, ...]) -> Problem:
    """Another capacity: mean demand x a number of customers drawn from the source's range, on a logarithmic scale."""
    fewest, most = source.customers_per_route
    each = float(np.exp(np.random.default_rng(key).uniform(np.log(fewest), np.log(most))))
    demand = problem.demand[1:]
    return problem.replace(capacity=max(float(np.ceil(each * demand.mean())), float(demand.max())))


def draw_batch(
    sources: Sequence[Source], seed: int, number: int, share: Share, most_customers: int = 0, make: Make = instances
) -> Batch:
    """Batch `number` of a run, or the share of it that a process has. All processes draw the same source and size;
    `make` makes the instances.

    Where the customers of a batch are limited, large instances come in smaller batches; their numbers do not change.
    """
    random = np.random.default_rng((seed, number, 0))
    weights = np.array([source.weight for source in sources])
    source = sources[random.choice(len(sources), p=weights / weights.sum())]
    customers = int(random.choice(source.customers))
    mine = share.halved(customers, most_customers) if most_customers else share
    first = number * share.batch + mine.first
    made = make(source, customers, seed, first, mine.count)
    return Batch(number, source.problem, customers, first, made, mine)
