"""New jobs: read in threads and stored, those that wait at the same moment with one commit."""

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor
from typing import NamedTuple

from ndsvrp.serve.jobs import Job, JobOptions
from ndsvrp.serve.store import NewJob, Store

READERS = 2  # instances that are read at the same time, which bounds memory
TURNS = 10  # of the event loop before a thread starts: a new connection needs five to become a submission
GROUP = 128  # most jobs of a commit
GROUP_BYTES = 2**18  # of their bodies: a small instance does not wait for several large ones

Added = tuple[Job, bool]  # a job, and whether it is new


class _Waiting(NamedTuple):
    body: bytes
    options: JobOptions
    added: asyncio.Future[Added]


class Intake:
    """Reads and stores new jobs. Its methods run in one event loop.

    A thread takes a group of those that wait; if some are left, a second thread takes the next group. When many clients
    submit small instances at the same moment, all are received first and then read by one thread: threads of Python
    that work at the same time only take turns, and every turn costs time. They share a commit, too.
    """

    def __init__(
        self,
        store: Store,
        read: Callable[[bytes, JobOptions], NewJob],
        threads: Executor,
        count: Callable[[bool], None],
    ) -> None:
        """`count` gets, of every submission, whether it has become a job: also if its client no longer waits."""
        self._store, self._read, self._threads, self._count = store, read, threads, count
        self._waiting: deque[_Waiting] = deque()
        self._gathering = False  #: whether a start is due
        self._working = 0  #: threads

    async def add(self, body: bytes, options: JobOptions) -> Added:
        """Read an instance and store its job, or raise why not."""
        loop = asyncio.get_running_loop()
        waiting = _Waiting(body, options, loop.create_future())
        self._waiting.append(waiting)
        if not self._gathering:
            self._gathering = True
            self._gather(loop, TURNS)
        return await waiting.added

    def _gather(self, loop: asyncio.AbstractEventLoop, turns: int) -> None:
        """Let the event loop receive what others have sent, then start to read."""
        if turns > 0:
            loop.call_soon(self._gather, loop, turns - 1)
            return
        self._gathering = False
        self._start(loop)

    def _start(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._waiting and self._working < READERS:
            self._working += 1
            self._threads.submit(self._work, loop)

    def _work(self, loop: asyncio.AbstractEventLoop) -> None:
        """Take what waits until nothing does; in a thread."""
        while group := self._take():
            if self._waiting:  # more than a group: another thread begins, so that small ones wait for few large ones
                loop.call_soon_threadsafe(self._start, loop)
            answers: list[Added | Exception]
            try:
                answers = self._add(group)
            except BaseException as error:  # of any kind: no client waits for ever
                answers = [RuntimeError(f"the job could not be added: {error!r}")] * len(group)
            loop.call_soon_threadsafe(self._answer, group, answers)
        loop.call_soon_threadsafe(self._end, loop)

    def _end(self, loop: asyncio.AbstractEventLoop) -> None:
        self._working -= 1
        self._start(loop)  # something may have come after the thread looked

    def _take(self) -> list[_Waiting]:
        group, size = list[_Waiting](), 0
        while len(group) < GROUP and size < GROUP_BYTES:
            try:
                group.append(self._waiting.popleft())  # atomic: two threads may take
            except IndexError:
                break
            size += len(group[-1].body)
        return group

    def _add(self, group: list[_Waiting]) -> list[Added | Exception]:
        answers: list[NewJob | Exception] = [self._try(waiting) for waiting in group]
        new = [answer for answer in answers if isinstance(answer, NewJob)]
        try:
            stored = iter(self._store.add_all(new) if new else [])
        except Exception as error:  # of the database: nothing is stored
            return [error if isinstance(answer, NewJob) else answer for answer in answers]
        return [next(stored) if isinstance(answer, NewJob) else answer for answer in answers]

    def _try(self, waiting: _Waiting) -> NewJob | Exception:
        try:
            return self._read(waiting.body, waiting.options)
        except Exception as error:  # of one instance: the others go on
            return error

    def _answer(self, group: list[_Waiting], answers: list[Added | Exception]) -> None:
        for waiting, answer in zip(group, answers, strict=True):
            self._count(not isinstance(answer, Exception) and answer[1])
            if waiting.added.done():  # cancelled
                continue
            if isinstance(answer, StopIteration):  # no future takes one
                answer = RuntimeError(repr(answer))
            if isinstance(answer, Exception):
                waiting.added.set_exception(answer)
            else:
                waiting.added.set_result(answer)
