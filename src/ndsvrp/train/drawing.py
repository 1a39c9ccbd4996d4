"""Batches made ahead of their time, so that training does not wait for the CPU.

On a GPU the work is done by processes of their own: threads would take turns with the one that launches kernels.
`python -m ndsvrp.train.drawing` is such a process.
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any

from ndsvrp.errors import NdsError
from ndsvrp.train.config import TrainConfig
from ndsvrp.train.data import Batch, Share, draw_batch
from ndsvrp.train.states import material


@dataclass(frozen=True)
class Task:
    """How batches are made."""

    config: TrainConfig
    share: Share
    neighbours: int | None = None  #: length of neighbour lists, if problems are to be packed for a GPU

    def __call__(self, number: int) -> Batch:
        """Batch `number` of the run."""
        batch = draw_batch(
            self.config.data, self.config.train.seed, number, self.share, self.config.train.batch_customers
        )
        if self.neighbours is not None:
            batch.material = material(batch.problems, self.neighbours)
        return batch


class Ahead:
    """Batches in their order; `workers` more than the one asked for are under way."""

    def __init__(self, make: Callable[[int], Batch], workers: int) -> None:
        self._make, self._workers = make, workers
        self._pool = ThreadPoolExecutor(workers)
        self._coming: dict[int, Future[Batch]] = {}

    def take(self, number: int) -> Batch:
        """This batch. Others than those that follow it are forgotten: a checkpoint was restored meanwhile."""
        wanted = range(number, number + 1 + self._workers)
        for late in self._coming.keys() - set(wanted):
            self._coming.pop(late).cancel()
        for each in wanted:
            if each not in self._coming:
                self._coming[each] = self._pool.submit(self._make, each)
        return self._coming.pop(number).result()

    def close(self) -> None:
        """No more batches."""
        self._pool.shutdown(wait=False, cancel_futures=True)


class Helpers:
    """A task carried out by other processes, one call at a time each. They end with this one."""

    def __init__(self, task: Task, count: int) -> None:
        paths = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "OMP_NUM_THREADS": "1"}
        self._all = [
            subprocess.Popen(
                [sys.executable, "-m", "ndsvrp.train.drawing"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                env=os.environ | paths, process_group=0,  # signals are for the training: it still finishes its batch
            )
            for _ in range(count)
        ]  # fmt: skip
        self._idle: SimpleQueue[Any] = SimpleQueue()
        for helper in self._all:
            _send(helper.stdin, task)
            self._idle.put(helper)

    def __call__(self, number: int) -> Batch:
        """What the task gives, or raises."""
        helper = self._idle.get()
        try:
            _send(helper.stdin, number)
            answer = pickle.load(helper.stdout)
        except (EOFError, OSError, pickle.UnpicklingError):
            raise NdsError("a process that makes training instances has ended before its time") from None
        finally:
            self._idle.put(helper)
        if isinstance(answer, Exception):
            raise answer
        return answer  # type: ignore[no-any-return]

    def close(self) -> None:
        """End them."""
        for helper in self._all:
            helper.kill()
            helper.wait()


def _send(pipe: Any, value: Any) -> None:
    pickle.dump(value, pipe, pickle.HIGHEST_PROTOCOL)
    pipe.flush()


def _work() -> None:
    """Batch after batch, until nobody asks for one any more."""
    for ending in (signal.SIGINT, signal.SIGTERM):  # sent to all; they end when nobody asks any more
        signal.signal(ending, signal.SIG_IGN)
    asked, answers = sys.stdin.buffer, os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # whatever is printed does not get in between
    try:
        task = pickle.load(asked)
        while True:
            number = pickle.load(asked)
            try:
                answer = task(number)
            except Exception as error:
                answer = error
            _send(answers, answer)
    except (EOFError, BrokenPipeError):
        pass


if __name__ == "__main__":
    _work()
