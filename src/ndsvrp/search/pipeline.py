"""Launch iterations ahead of their results, so that a GPU never waits for the CPU.

On a CPU every iteration is observed before the next begins. On a GPU one more iteration may be launched before the last
one is observed. Reports are then one iteration late; the solutions found are the same.
"""

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from ndsvrp.engine.base import ChainStats
from ndsvrp.metric import Floats
from ndsvrp.ruin import Ruin
from ndsvrp.search.stopping import Budget


class Launched(NamedTuple):
    """An iteration that the engine has been asked for."""

    iteration: int
    temperatures: Floats  #: (problems,)
    stats: Callable[[], ChainStats]  #: waits for the iteration to end, and returns its results


Report = Callable[[Launched, ChainStats], str | None]
"""Called once per iteration, in order; returns why the search ends, if it does."""


@dataclass
class Pipeline:
    """Iterations that are launched and not yet observed, oldest first."""

    budget: Budget
    ruin: Ruin | None
    runs_ahead: bool  #: whether calls of the engine return before their work is done
    _pending: deque[Launched] = field(default_factory=deque, init=False)
    _observed_at: float = field(default=0.0, init=False)  #: seconds from the start to the last observation
    _interval: float | None = field(default=None, init=False)  #: upper estimate of the seconds per iteration

    def push(self, launched: Launched, report: Report) -> str | None:
        """Add an iteration, and report iterations until another may be launched. Return why none may."""
        self._pending.append(launched)
        stopped = None
        while self._pending and (len(self._pending) > self._allowed_ahead() or self._is_too_late()):
            stopped = self._observe(report)
        return stopped or self.budget.spent(launched.iteration) or ("time" if self._is_too_late() else None)

    def finish(self, report: Report) -> str | None:
        """Report what is left. Return the first reason to end the search, if there is one."""
        stopped = None
        while self._pending:
            reason = self._observe(report)
            stopped = stopped or reason
        return stopped

    def drain(self) -> Iterator[tuple[Launched, ChainStats]]:
        """Wait for each iteration that is left, without reporting it: for a search that was interrupted."""
        while self._pending:
            stats = self._pending[0].stats()  # it stays pending if this is interrupted
            yield self._pending.popleft(), stats

    def _observe(self, report: Report) -> str | None:
        launched, stats = next(self.drain())
        now = self.budget.elapsed()
        if launched.iteration > 0:  # two observed at the same time were not faster
            self._interval = max(now - self._observed_at, 0.9 * (self._interval or 0.0))
        self._observed_at = now
        return report(launched, stats)

    def _allowed_ahead(self) -> int:
        """How many unobserved iterations there may be when another is launched.

        Without a duration estimate of the ruin, never run ahead of a deadline.
        """
        if not self.runs_ahead or self._interval is None or self.budget.depends_on_results:
            return 0
        if self.ruin is None:
            return 1
        is_known = self.budget.seconds is None or self.ruin.expected_seconds() is not None
        return int(self.ruin.on_device and is_known)

    def _is_too_late(self) -> bool:
        """Whether the next call of the ruin would end after the time limit.

        A network on a GPU cannot be stopped halfway; the reconstructions after it can. While iterations are pending,
        it is unknown when the call would begin, so there must be time for two more after them.
        """
        expected = None if self.ruin is None else self.ruin.expected_seconds()
        if self.budget.seconds is None or expected is None or self._interval is None:
            return False
        end = self.budget.elapsed() + expected
        if self._pending:
            end = max(end, self._observed_at + (len(self._pending) + 2) * self._interval)
        return end >= self.budget.seconds
