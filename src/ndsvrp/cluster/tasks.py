"""Tasks for a cluster: what they need, and which of them to send."""

import math
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

AHEAD = 16  # tasks sent at least, so that an autoscaler sees demand; else twice what runs at once
LOOK = 10.0  # seconds after which the nodes are looked at again


class Needs(NamedTuple):
    """What a task occupies while it runs, all of it on one node."""

    cpus: int = 1
    gpus: int = 0

    def __str__(self) -> str:
        words = [f"{count} {unit}{'s' if count > 1 else ''}" for count, unit in zip(self, ("CPU", "GPU"), strict=True)]
        return " and ".join(word for word, count in zip(words, self, strict=True) if count)


class Task(NamedTuple):
    """One call of the function."""

    name: str  #: for messages
    content: Callable[[], Any]  #: makes the argument, when the task is sent
    needs: Needs = Needs()


class Lost(NamedTuple):
    """Stands for the result of a task whose worker was lost too often, or whose node has no memory or device for it."""

    reason: str


class Waiting:
    """Tasks that are not sent yet, apart by their needs: those for GPUs never hold up those for CPUs.

    Not all are sent at once, because their problems would fill the memory of the cluster.
    """

    def __init__(self, tasks: Sequence[Task]) -> None:
        self._tasks = tasks
        self._queues: dict[Needs, deque[int]] = {}
        for i, task in enumerate(tasks):
            self._queues.setdefault(task.needs, deque()).append(i)
        self._sent, self._most, self._looked = Counter[Needs](), dict[Needs, int](), -math.inf

    def __bool__(self) -> bool:
        return any(self._queues.values())

    def due(self, slots: Callable[[Needs], int]) -> Iterator[int]:
        """Yield the positions of tasks to send now; `slots`: how many tasks with such needs run at once."""
        if time.monotonic() - self._looked > LOOK:
            open_ = [needs for needs, queue in self._queues.items() if queue or self._sent[needs]]
            self._most = {needs: max(AHEAD, 2 * slots(needs)) for needs in open_}
            self._looked = time.monotonic()
        for needs, most in self._most.items():
            while self._queues[needs] and self._sent[needs] < most:
                self._sent[needs] += 1
                yield self._queues[needs].popleft()

    def ended(self, position: int, *, again: bool = False) -> None:
        """Note that a task has ended; if it shall run again, it is the next."""
        needs = self._tasks[position].needs
        self._sent[needs] -= 1
        if again:
            self._queues[needs].appendleft(position)
