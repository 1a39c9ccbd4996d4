"""A callback of a search that passes on its progress and its incumbents, checked and not too often."""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from ndsvrp.check import check
from ndsvrp.io.result import plain
from ndsvrp.problem import Problem
from ndsvrp.search.result import Progress
from ndsvrp.serve.timeline import incumbent_view

SOONEST = 0.1  # seconds between two incumbents
SHARE = 0.02  # of the time of the search, for passing them on
GROWTH = 0.005  # the longer a search takes, the longer the interval: a share of the seconds so far
PACE = 0.25  # seconds between two reports of progress


@dataclass(frozen=True)
class Report:
    """News of a search: its progress, and the incumbent if it is new."""

    progress: bytes  #: JSON
    point: tuple[float, int, float] | None = None  #: seconds, iteration, cost computed by `check`
    incumbent: bytes | None = None  #: JSON of `incumbent_view`


@dataclass
class Reporter:
    """Calls `send` with a report of a search now and then."""

    problem: Problem
    send: Callable[[Report], None]
    is_stopped: Callable[[], bool] = lambda: False
    _best: float = field(default=float("inf"), init=False)  #: of the last incumbent, as the engine states it
    _next: float = field(default=0.0, init=False)  #: seconds of the search when an incumbent may be passed on
    _next_progress: float = field(default=0.0, init=False)

    def __call__(self, progress: Progress) -> None:
        """Report if it is time; end the search if it is stopped."""
        if self.is_stopped():
            raise KeyboardInterrupt  # as Ctrl-C does: the search returns its best solution
        seconds = progress.seconds
        if progress.unserved == 0 and progress.best < self._best and seconds >= self._next:
            began = time.perf_counter()
            self._best = progress.best
            solution = progress.incumbent
            report = check(self.problem, solution)
            view = json.dumps(plain(incumbent_view(self.problem, solution, report)), separators=(",", ":")).encode()
            self.send(Report(describe(progress), (round(seconds, 3), progress.iteration, report.cost), view))
            spent = time.perf_counter() - began
            self._next = seconds + max(SOONEST, spent / SHARE, GROWTH * seconds)
            self._next_progress = seconds + PACE
        elif seconds >= self._next_progress:
            self.send(Report(describe(progress)))
            self._next_progress = seconds + PACE


def describe(progress: Progress) -> bytes:
    """Return progress as JSON; without the cost, which `check` has not seen."""
    return json.dumps(
        {
            "seconds": round(progress.seconds, 3), "iteration": progress.iteration,
            "temperature": float(f"{progress.temperature:.4g}"), "reconstructions": progress.reconstructions,
            "unserved": progress.unserved,
        }
    ).encode()  # fmt: skip
