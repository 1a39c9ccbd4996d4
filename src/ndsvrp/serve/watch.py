"""The page for one search of this process: `nds solve --watch`."""

import asyncio
import json
import threading
import time
from typing import Any, Self

from ndsvrp.problem import Problem
from ndsvrp.search.result import Progress, Result
from ndsvrp.search.stopping import Limits
from ndsvrp.serve.config import ServeConfig
from ndsvrp.serve.jobs import JobOptions
from ndsvrp.serve.live import Live
from ndsvrp.serve.process import outcome_of
from ndsvrp.serve.reporter import Report, Reporter
from ndsvrp.serve.server import Server, address_of, listen
from ndsvrp.serve.service import Service
from ndsvrp.serve.store import MEMORY, NewJob, Outcome, Store
from ndsvrp.serve.uploads import drawing
from ndsvrp.serve.worker import Found

STARTING = 20.0  # seconds for the server to start
LAST_NEWS = 0.5  # seconds for open pages to receive the end


class Watched:
    """Serves the page on a free port of localhost, in a thread. It is a callback of the search that it shows."""

    def __init__(self, problem: Problem, file: str, limits: Limits, seed: int, port: int = 0) -> None:
        config = ServeConfig(port=port, workers=1)
        self._store = Store(MEMORY)
        given: dict[str, Any] = {name: value for name, value in limits.items() if value is not None}
        options = JobOptions.model_construct(name=file, seed=seed, **given)  # not from a client: no limits
        drawn = drawing(problem)
        known = None if drawn["best_known"] is None else drawn["best_known"]["cost"]
        new = NewJob(options, b"", problem.name, drawn["variant"], problem.customers, known, json.dumps(drawn).encode())
        self._job, _ = self._store.add(new, state="running")
        self._service = Service(config, self._store, accepts=False)
        self._live = self._service.live[self._job.id] = Live()
        self._live.job = self._job.model_dump_json().encode()
        self._reporter = Reporter(problem, self._tell)
        self._server = Server(self._service)
        self._socket = listen(config)
        self.address = address_of(self._socket, config)  #: of the page
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        end = time.monotonic() + STARTING
        while not self._server.started and self._thread.is_alive() and time.monotonic() < end:
            time.sleep(0.01)
        return self

    def __exit__(self, *_: object) -> None:
        self._server.should_exit = True
        self._thread.join(STARTING)

    def __call__(self, progress: Progress) -> None:
        """Show the progress."""
        self._reporter(progress)

    def finish(self, result: Result) -> None:
        """Show the result, and offer it for download."""
        found = Found.of(result)
        self._tell(found)
        state = "cancelled" if result.stopped == "interrupted" else "done"
        self._service.results[self._job.id] = result
        self._end(outcome_of(found, state))

    def fail(self, error: str) -> None:
        """Show why there is no result."""
        self._end(Outcome("failed", error=error))

    def _end(self, outcome: Outcome) -> None:
        asyncio.run_coroutine_threadsafe(self._service.end(self._job, outcome), self._loop).result(STARTING)
        time.sleep(LAST_NEWS)

    def _run(self) -> None:
        async def main() -> None:
            self._loop = asyncio.get_running_loop()
            await self._server.serve(sockets=[self._socket])

        asyncio.run(main())

    def _tell(self, news: Report | Found) -> None:
        self._loop.call_soon_threadsafe(self._service.follow, self._live, news)
