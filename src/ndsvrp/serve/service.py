"""The service: jobs wait in the database, some run, others follow them."""

import asyncio
import contextlib
import json
import logging
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import ParamSpec, TypeVar

from ndsvrp.best_known import best_known
from ndsvrp.errors import NdsError
from ndsvrp.search.planning import plan
from ndsvrp.search.result import Result
from ndsvrp.serve.config import ServeConfig
from ndsvrp.serve.intake import READERS, Intake
from ndsvrp.serve.jobs import ENDED, Job, JobOptions
from ndsvrp.serve.live import Live, Signal
from ndsvrp.serve.outputs import FORMS, result_of
from ndsvrp.serve.process import SearchProcess, warm_up
from ndsvrp.serve.reporter import Report
from ndsvrp.serve.store import NewJob, Outcome, Store
from ndsvrp.serve.uploads import drawing
from ndsvrp.serve.worker import Found, Task
from ndsvrp.variants import variant_of

PAUSE = 1.0  # seconds after an error inside the service
INTERNAL = "an error inside the service, see its log"
TIDY = 100  # ended jobs between two deletions of the oldest
BODIES = 16  # largest bodies that the memory for all requests holds
FIRST = b"x,y,demand\n0,0,0\n1,1,1\n", JobOptions.model_validate({"name": "first.csv", "capacity": 1})

logger = logging.getLogger("ndsvrp.serve")
P = ParamSpec("P")
T = TypeVar("T")


class QueueFullError(NdsError):
    """Too many jobs wait, or too many are being received."""


class TooLargeError(NdsError):
    """A job is above a limit of the service."""


class Service:
    """Accepts, runs and cancels jobs. Its methods run in one event loop; `start` and `stop` frame them."""

    def __init__(self, config: ServeConfig, store: Store, *, accepts: bool = True) -> None:
        self.config, self.store, self.accepts = config, store, accepts
        self.live: dict[str, Live] = {}  #: of jobs that wait or run and have been asked for, or have begun
        self.results: dict[str, Result] = {}  #: of searches in this process, whose instance is not stored
        self._running: dict[str, SearchProcess] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._drawing: dict[str, asyncio.Task[bytes]] = {}  # by job
        self._open = self._ended = 0
        self._held = 0  # bytes of bodies that are being received or read
        self._added = Signal()
        self._database = ThreadPoolExecutor(1, "database")  # one thread: calls keep their order
        self._readers = ThreadPoolExecutor(READERS, "reader")
        self._intake = Intake(store, self._read, self._readers, self._count)
        self._writer = ThreadPoolExecutor(1, "writer")  # one thread: matplotlib is not for several
        self._searches = ThreadPoolExecutor(config.processes, "search")

    async def start(self) -> None:
        """Queue again what was running when the service ended, and start to work."""
        if not self.accepts:
            return
        await asyncio.to_thread(warm_up)
        await asyncio.to_thread(self._read, *FIRST)  # loads what only the first reading would
        again = await self.ask(self.store.queue_again)
        if again:
            logger.info("%d jobs were running when the service ended: they wait again", again)
        self._open = await self.ask(self.store.open_jobs)
        self._tasks = [asyncio.create_task(self._serve()) for _ in range(self.config.processes)]

    async def stop(self) -> None:
        """End all processes. Their jobs begin again after the next start."""
        for process in list(self._running.values()):
            process.abandon()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for executor in (self._searches, self._readers, self._writer, self._database):
            await asyncio.to_thread(executor.shutdown)
        self.store.close()

    async def ask(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call a method of the store in its thread."""
        return await asyncio.get_running_loop().run_in_executor(self._database, lambda: function(*args, **kwargs))

    def check_limits(self, options: JobOptions) -> None:
        """Refuse a job above a limit, and every job while the queue is full: before its instance is received."""
        if options.time is not None and options.time > self.config.max_seconds:
            raise TooLargeError(f"time: {options.time:g} s is above the limit of {self.config.max_seconds:g} s")
        if self._open >= self.config.max_queue:
            raise QueueFullError(f"{self._open:,} jobs wait or run, try again later")

    @contextlib.contextmanager
    def holding(self) -> Iterator[Callable[[int], None]]:
        """Yield a function that counts the bytes of a body, and refuses those that exceed the memory for all bodies."""
        mine = 0

        def hold(count: int) -> None:
            nonlocal mine
            if self._held + count > BODIES * self.config.max_bytes:
                raise QueueFullError("too many instances are being received, try again later")
            self._held += count
            mine += count

        try:
            yield hold
        finally:
            self._held -= mine

    async def submit(self, body: bytes, options: JobOptions) -> tuple[Job, bool]:
        """Read an instance and add a job. Return it, and whether it is new."""
        self.check_limits(options)  # again: others may have come while the body was received
        self._open += 1  # before the first await: many may ask at the same time
        return await self._intake.add(body, options)

    def _count(self, added: bool) -> None:
        """Take into account that a submission has become a job, or has not."""
        if added:
            self._added.send()
        else:
            self._open -= 1

    async def cancel(self, identifier: str) -> Job | None:
        """Cancel a job; a running one keeps its best solution. Return the job, None if there is none."""
        if identifier in self._running:
            self._running[identifier].stop()
        elif await self.ask(self.store.cancel_waiting, identifier):
            self._open -= 1
            cancelled = await self.ask(self.store.job, identifier)
            await self._tell_end(identifier, cancelled)
            await self._count_end()
            return cancelled
        elif identifier in self._running:  # it began meanwhile
            self._running[identifier].stop()
        return await self.job(identifier)

    async def job(self, identifier: str) -> Job | None:
        """Return a job, with the cost of its incumbent if it runs."""
        job = await self.ask(self.store.job, identifier)
        return None if job is None else self._with_incumbent(job)

    async def jobs(self, most: int) -> list[Job]:
        """Return the newest jobs."""
        return [self._with_incumbent(job) for job in await self.ask(self.store.jobs, most)]

    async def events(self, job: Job) -> AsyncIterator[bytes]:
        """Yield the course of a job as server-sent events."""
        live = self.live.get(job.id)
        if live is None:
            live = Live()
            live.job = job.model_dump_json().encode()
            if job.state not in ENDED:
                self.live[job.id] = live  # others may follow it, too
            now = await self.ask(self.store.job, job.id)  # it may have ended since
            if now is None or now.state in ENDED:
                live.restore(await self.ask(self.store.content, job.id, "view"))
                self.live.setdefault(job.id, live)
                await self._tell_end(job.id, now or job)
        async with contextlib.aclosing(live.follow()) as events:
            async for event in events:
                yield event

    async def result(self, job: Job, form: str) -> bytes | None:
        """Return the result of a job in a form; None if it has none."""
        if form not in job.forms:
            return None
        if FORMS[form].is_stored:
            return await self.ask(self.store.content, job.id, form)
        stored = await self.ask(self.store.content, job.id, "json")
        body = await self.ask(self.store.content, job.id, "instance")
        if stored is None or body is None:
            return None
        known = self.results.get(job.id)

        def write() -> bytes:
            result = known or result_of(JobOptions(**job.options).upload(body).read(), stored)
            return FORMS[form].write(result)

        return await asyncio.get_running_loop().run_in_executor(self._writer, write)

    async def drawing(self, job: Job) -> bytes:
        """Return what the page draws of the problem of a job, JSON. It is made once, when it is asked for first."""
        if job.id not in self._drawing:
            self._drawing[job.id] = asyncio.create_task(self._draw(job))
            self._drawing[job.id].add_done_callback(lambda _: self._drawing.pop(job.id))
        return await asyncio.shield(self._drawing[job.id])  # a client that leaves does not end it for the others

    async def _draw(self, job: Job) -> bytes:
        drawn = await self.ask(self.store.content, job.id, "drawing")
        body = None if drawn is not None else await self.ask(self.store.content, job.id, "instance")
        if body is not None:
            upload = JobOptions(**job.options).upload(body)
            loop = asyncio.get_running_loop()
            drawn = await loop.run_in_executor(self._writer, lambda: json.dumps(drawing(upload.read())).encode())
            await self.ask(self.store.keep, job.id, "drawing", drawn)
        return drawn or b"null"  # deleted meanwhile

    def end_streams(self) -> None:
        """End all streams of events: the service is about to stop."""
        for live in self.live.values():
            live.closed = True
            live.changed.send()

    def follow(self, live: Live, news: Report | Found) -> None:
        """Add news of a search to its course."""
        if isinstance(news, Report):
            live.progress = news.progress
            if news.point is not None:
                live.points.append(news.point)
                live.incumbent = news.incumbent
        else:
            live.incumbent, live.progress = news.view, news.progress
            if live.cost is None or news.cost < live.cost:
                live.points.append((round(news.seconds, 3), news.iterations, news.cost))
        live.changed.send()

    async def end(self, job: Job, outcome: Outcome) -> None:
        """Store how an attempt ended, and tell those who follow the job."""
        live = self.live.get(job.id)
        if live is not None and live.incumbent is not None:
            outcome = replace(outcome, contents={**outcome.contents, "view": live.view()})
        finished = await self._store(job, outcome)
        self._open -= finished is not None
        await self._tell_end(job.id, finished)
        await self._count_end()

    async def _store(self, job: Job, outcome: Outcome) -> Job | None:
        """Store how an attempt ended. While the database does not work, such as on a full disk, try again."""
        while True:
            try:
                return await self.ask(self.store.finish, job.id, outcome, attempt=job.attempts)
            except sqlite3.OperationalError as error:
                logger.error("the outcome of job %s waits for the database: %s", job.id, error)
                await asyncio.sleep(PAUSE)

    async def _count_end(self) -> None:
        """Delete the oldest jobs now and then."""
        self._ended += 1
        if self._ended % TIDY == 1:
            await self.ask(self.store.delete_oldest, self.config.keep)

    def _read(self, body: bytes, options: JobOptions) -> NewJob:
        problem, warnings = options.upload(body).read_with_warnings()
        if problem.customers > self.config.max_customers:
            raise TooLargeError(f"{problem.customers:,} customers are above the limit of {self.config.max_customers:,}")
        if options.solver != "auto" or options.ruin is not None:
            plan(problem, options.request("cpu"))  # refuses impossible requests now, without a look for a GPU
        known, variant = best_known(problem), variant_of(problem).title
        cost = None if known is None else known.cost
        return NewJob(options, body, problem.name, variant, problem.customers, cost, warnings=warnings)

    def _with_incumbent(self, job: Job) -> Job:
        live = self.live.get(job.id)
        return job if live is None or live.cost is None else job.model_copy(update={"cost": live.cost})

    async def _serve(self) -> None:
        """Run one job after the other, whatever happens to them or to the database."""
        while True:
            try:
                added = self._added.next
                taken = await self.ask(self.store.take)
                if taken is None:
                    await added.wait()
                    continue
                try:
                    await self._run(*taken)
                except Exception:
                    await self.end(taken[0], Outcome("failed", error=INTERNAL))
                    raise
            except Exception:
                logger.exception("a job failed inside the service")
                await asyncio.sleep(PAUSE)

    async def _run(self, job: Job, body: bytes) -> None:
        loop, options = asyncio.get_running_loop(), JobOptions(**job.options)
        live = self.live.setdefault(job.id, Live())
        live.job = job.model_dump_json().encode()
        live.changed.send()
        request, threads = options.request(self.config.device), self.config.threads_each
        task = Task(options.upload(body), request, threads, options.limits(self.config), options.seed)

        seconds = task.limits.get("time") or self.config.max_seconds

        def tell(news: Report | Found) -> None:
            loop.call_soon_threadsafe(self.follow, live, news)

        process = self._running[job.id] = SearchProcess(task, job.customers, seconds, tell)
        try:
            outcome = await loop.run_in_executor(self._searches, process.run)
        finally:
            del self._running[job.id]
        if outcome is not None:
            await self.end(job, outcome)

    async def _tell_end(self, identifier: str, job: Job | None) -> None:
        live = self.live.pop(identifier, None)
        if live is not None and job is not None:
            live.job, live.ended = job.model_dump_json().encode(), True
            live.changed.send()
