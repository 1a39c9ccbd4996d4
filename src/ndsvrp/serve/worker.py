"""The process of one search: reads the instance, searches, and sends what it finds."""

import os
import signal
import sys
import threading
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection

from ndsvrp.errors import NdsError, NoSolutionError
from ndsvrp.problem import Problem
from ndsvrp.search.planning import Request, plan
from ndsvrp.search.result import Progress, Result
from ndsvrp.search.solver import Solver
from ndsvrp.search.stopping import Limits
from ndsvrp.serve.outputs import contents_of, forms_of, view_of
from ndsvrp.serve.priority import give_way
from ndsvrp.serve.reporter import Reporter, describe
from ndsvrp.serve.uploads import Upload

STOP = b"stop"


@dataclass(frozen=True)
class Task:
    """One search. Plain data: it is sent to the process."""

    upload: Upload
    request: Request
    threads: int  #: on a CPU
    limits: Limits
    seed: int


@dataclass(frozen=True)
class Found:
    """The result of a search, in every form."""

    stopped: str
    cost: float
    routes: int
    seconds: float
    iterations: int
    view: bytes  #: JSON for the page
    progress: bytes  #: the last one, JSON
    forms: list[str]  #: in which it can be fetched
    contents: dict[str, bytes]  #: by form

    @classmethod
    def of(cls, result: Result) -> "Found":
        """Return a checked result in every form."""
        progress = Progress(result.iterations, result.seconds, result.cost, 0.0, result.reconstructions, 0)
        return cls(
            result.stopped, result.cost, len(result.solution.routes), result.seconds, result.iterations,
            view_of(result), describe(progress), forms_of(result.problem), contents_of(result),
        )  # fmt: skip


@dataclass(frozen=True)
class Refused:
    """Why there is no feasible solution."""

    error: str
    partial: Found | None = None  #: the best that was found


def run(pipe: Connection, task: Task) -> None:
    """Search, and send each `Report`, then `Found` or `Refused`. The service sends `STOP` to end the search early."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the service, which ends its processes
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    give_way()
    stopped = threading.Event()
    threading.Thread(target=_listen, args=(pipe, stopped), daemon=True).start()
    try:
        pipe.send(_search(pipe, task, stopped))
    except BrokenPipeError:
        sys.exit(1)


def _search(pipe: Connection, task: Task, stopped: threading.Event) -> Found | Refused:
    try:
        problem = task.upload.read()
        reporter = Reporter(problem, pipe.send, stopped.is_set)
        with Solver(_with_threads(problem, task)) as solver:
            return Found.of(solver.solve(problem, seed=task.seed, callback=reporter, **task.limits))
    except NoSolutionError as error:
        return Refused(str(error), None if error.result is None else Found.of(error.result))
    except NdsError as error:
        return Refused(str(error))
    except MemoryError:
        return Refused("not enough memory")


def _with_threads(problem: Problem, task: Task) -> Request:
    """Return the request, with the threads of the task if its search runs on a CPU: on a GPU `auto` would leave it."""
    on_cpu = plan(problem, task.request).device == "cpu"
    return replace(task.request, threads=task.threads) if on_cpu else task.request


def _listen(pipe: Connection, stopped: threading.Event) -> None:
    """Wait for the service to stop the search. If the service is gone, nobody needs the result."""
    try:
        while pipe.recv_bytes() == STOP:
            stopped.set()
    except (EOFError, OSError):
        os._exit(1)
