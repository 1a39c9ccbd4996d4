"""Start the process of a search, pass on what it finds, and end it. A crash ends the job, never the service."""

import contextlib
import json
import multiprocessing
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.connection import Connection

from ndsvrp.check import check
from ndsvrp.search.result import Result
from ndsvrp.serve.priority import give_way
from ndsvrp.serve.reporter import Report
from ndsvrp.serve.store import Outcome
from ndsvrp.serve.worker import STOP, Found, Refused, Task, run
from ndsvrp.solution import Solution

TICK = 0.1  # seconds between looks at the clock
PATIENCE = 5.0  # seconds for a stopped search to return its best solution, before its process is killed
GRACE = 60.0  # seconds beyond the time limit after which a process is killed
GRACE_EACH = 5e-3  # and for each customer: reading and preparation are not part of the time limit

# Processes are forked from one that has loaded everything: a search starts in milliseconds.
_CAN_FORK = "forkserver" in multiprocessing.get_all_start_methods()  # not on Windows
CONTEXT = multiprocessing.get_context("forkserver") if _CAN_FORK else multiprocessing.get_context("spawn")
CONTEXT.set_forkserver_preload(["ndsvrp.serve.preload"])


def warm_up() -> None:
    """Load everything that searches need. A service that answers meanwhile would be slow to answer."""
    if _CAN_FORK:
        first = CONTEXT.Process(target=give_way, daemon=True)  # any process: it starts when all is loaded
        first.start()
        first.join(GRACE)


@dataclass
class SearchProcess:
    """One search in a process of its own."""

    task: Task
    customers: int
    seconds: float  #: the time limit; a search without one is stopped then
    tell: Callable[[Report | Found], None]  #: called with what the process sends, in the thread of `run`
    _stop: threading.Event = field(default_factory=threading.Event, init=False)
    _abandon: threading.Event = field(default_factory=threading.Event, init=False)
    _last: Report | None = field(default=None, init=False)  #: with the last incumbent

    def stop(self) -> None:
        """End the search; its best solution is kept. May be called from any thread."""
        self._stop.set()

    def abandon(self) -> None:
        """Kill the process; the search will be repeated. May be called from any thread."""
        self._abandon.set()

    def run(self) -> Outcome | None:
        """Search. Return the outcome, None if it was abandoned."""
        ours, theirs = CONTEXT.Pipe()
        process = CONTEXT.Process(target=run, args=(theirs, self.task), daemon=True)
        process.start()
        theirs.close()
        try:
            answer = self._receive(ours)
        except (EOFError, OSError):  # the process has ended
            answer = None
        finally:
            process.join(timeout=1.0 if not self._abandon.is_set() else 0.0)
            if process.is_alive():
                process.kill()
                process.join()
            ours.close()
        if self._abandon.is_set():
            return None
        if isinstance(answer, Found):
            self.tell(answer)
            state = "cancelled" if self._stop.is_set() and answer.stopped == "interrupted" else "done"
            return outcome_of(answer, state)
        if isinstance(answer, Refused):
            if answer.partial is None:
                return Outcome("failed", error=answer.error)
            self.tell(answer.partial)
            return outcome_of(answer.partial, "failed", answer.error)
        return self._rescue(process.exitcode)

    def _receive(self, pipe: Connection) -> Found | Refused | None:
        """Pass on reports until the answer comes, or until the process must be killed."""
        end = time.monotonic() + self.seconds
        latest, told = end + GRACE + GRACE_EACH * self.customers, False
        is_timed = self.task.limits.get("time") is not None
        while time.monotonic() < latest and not self._abandon.is_set():
            if not told and (self._stop.is_set() or (not is_timed and time.monotonic() > end)):
                with contextlib.suppress(OSError):  # it has ended meanwhile, and its answer may wait in the pipe
                    pipe.send_bytes(STOP)
                told, latest = True, min(latest, time.monotonic() + PATIENCE)
            if not pipe.poll(TICK):
                continue
            message = pipe.recv()
            if isinstance(message, Found | Refused):
                return message
            if message.incumbent is not None:
                self._last = message
            self.tell(message)
        return None

    def _rescue(self, code: int | None) -> Outcome:
        """Return the outcome of a process that ended without an answer; the last incumbent is kept."""
        is_cancelled = self._stop.is_set()
        error = None if is_cancelled else f"the process of the search ended early ({_reason(code)})"
        state = "cancelled" if is_cancelled else "failed"
        if self._last is None or self._last.point is None or self._last.incumbent is None:
            return Outcome(state, error=error)
        problem = self.task.upload.read()
        solution = Solution(route["stops"] for route in json.loads(self._last.incumbent)["routes"])
        seconds, iterations, _ = self._last.point
        made = json.loads(self._last.progress)["reconstructions"]
        report = check(problem, solution)
        found = Found.of(Result(problem, solution, report, self.task.seed, "interrupted", seconds, iterations, made))
        self.tell(found)
        return outcome_of(found, state, error)


def outcome_of(found: Found, state: str, error: str | None = None) -> Outcome:
    """Return the outcome of a job that found this."""
    return Outcome(state, found.cost, found.routes, error, found.forms, found.contents)


def _reason(code: int | None) -> str:
    if code is None or code == 0:
        return "without an answer"
    return f"signal {-code}" if code < 0 else f"exit code {code}"
