"""Batches made ahead of their time, so that training does not wait for them."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

from ndsvrp.train.config import TrainConfig
from ndsvrp.train.data import Batch, Make, Share, draw_batch, instances


@dataclass(frozen=True)
class Task:
    """How batches are made."""

    config: TrainConfig
    share: Share
    make: Make = instances

    def __call__(self, number: int) -> Batch:
        """Batch `number` of the run."""
        recipe = self.config.train
        return draw_batch(self.config.data, recipe.seed, number, self.share, recipe.batch_customers, self.make)


class Ahead:
    """Batches in their order; the one after the one asked for is made by a thread meanwhile."""

    def __init__(self, make: Callable[[int], Batch]) -> None:
        self._make = make
        self._pool = ThreadPoolExecutor(1)
        self._coming: dict[int, Future[Batch]] = {}

    def take(self, number: int) -> Batch:
        """This batch. Others than the one that follows it are forgotten: a checkpoint was restored meanwhile."""
        wanted = (number, number + 1)
        for late in self._coming.keys() - set(wanted):
            self._coming.pop(late).cancel()
        for each in wanted:
            if each not in self._coming:
                self._coming[each] = self._pool.submit(self._make, each)
        return self._coming.pop(number).result()

    def close(self) -> None:
        """No more batches."""
        self._pool.shutdown(wait=False, cancel_futures=True)


class Launched:
    """The same on a GPU, which makes them: the next one is launched before this one is handed out, so that what the CPU
    has to know of a batch has arrived long before it is asked for."""

    def __init__(self, make: Callable[[int], Batch]) -> None:
        self._make = make
        self._next: Batch | None = None

    def take(self, number: int) -> Batch:
        """This batch, also after a jump."""
        batch = self._next if self._next is not None and self._next.number == number else self._make(number)
        self._next = self._make(number + 1)
        return batch

    def close(self) -> None:
        """No more batches."""
        self._next = None
