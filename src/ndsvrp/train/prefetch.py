"""Batches that are made before they are needed, so that training does not wait for them."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Protocol

from ndsvrp.train.data import Batch


class Prefetch(Protocol):
    """A source of batches."""

    def take(self, number: int) -> Batch:
        """Return the batch with this number. Any number is possible: a checkpoint may have been restored."""

    def close(self) -> None:
        """Make no more batches."""


class ThreadPrefetch:
    """A thread makes the batch that follows the last one taken."""

    def __init__(self, make: Callable[[int], Batch]) -> None:
        self._make = make
        self._pool = ThreadPoolExecutor(1)
        self._coming: dict[int, Future[Batch]] = {}

    def take(self, number: int) -> Batch:
        wanted = (number, number + 1)
        for late in self._coming.keys() - set(wanted):
            self._coming.pop(late).cancel()
        for each in wanted:
            if each not in self._coming:
                self._coming[each] = self._pool.submit(self._make, each)
        return self._coming.pop(number).result()

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)


class GpuPrefetch:
    """A GPU makes batches: the next one is launched before this one is returned.

    So the few numbers of a batch that the CPU needs have arrived long before they are used.
    """

    def __init__(self, make: Callable[[int], Batch]) -> None:
        self._make = make
        self._next: Batch | None = None

    def take(self, number: int) -> Batch:
        batch = self._next if self._next is not None and self._next.number == number else self._make(number)
        self._next = self._make(number + 1)
        return batch

    def close(self) -> None:
        self._next = None
