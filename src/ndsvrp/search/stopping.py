"""When a search stops, and its temperature."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from typing import TypedDict

import numpy as np

from ndsvrp.errors import NdsError
from ndsvrp.records import require_number, require_whole
from ndsvrp.scope import keyword_hint
from ndsvrp.search.result import Progress


class Limits(TypedDict, total=False):
    """Limits of a search, per problem. One of the first two is needed; the others end it earlier."""

    time: float | None  #: seconds
    iterations: int | None
    patience: int | None  #: iterations without a better solution
    target: float | None  #: a cost that is good enough


def seconds_of(limits: Limits) -> float | None:
    """Return the time limit of a search without one on iterations, whose result depends on the machine anyway."""
    seconds = limits.get("time")
    is_number = isinstance(seconds, int | float | np.integer | np.floating)  # what is not is refused later
    return float(seconds) if seconds is not None and is_number and limits.get("iterations") is None else None


@dataclass
class Budget:
    """The limits of a search and the clock, which starts when this object is made."""

    seconds: float | None = None
    iterations: int | None = None
    patience: int | None = None  #: iterations without a better solution
    target: float | None = None  #: a cost that is good enough
    began: float = field(default_factory=time.perf_counter)
    _best: float = field(default=float("inf"), repr=False)
    _since: int = field(default=0, repr=False)

    def __post_init__(self) -> None:
        if self.seconds is None and self.iterations is None:
            what = "a search needs a limit: time (in seconds) or iterations, over which it cools"
            raise NdsError(f"{what}; patience, target and stop only end it earlier")
        given = {"time": self.seconds, "iterations": self.iterations, "patience": self.patience, "target": self.target}
        for name, value in given.items():
            if value is None:
                continue
            if name in ("iterations", "patience"):
                require_whole(name, value)
            else:
                require_number(name, value)
            if not abs(value) < math.inf:
                raise NdsError(f"{name} must be finite, got {value}")
            if name != "target" and value <= 0:
                raise NdsError(f"{name} must be above 0, got {value}")

    @classmethod
    def of(cls, limits: Limits, problems: int = 1) -> Budget:
        """Return the budget of several problems searched together: the time limit is for each of them."""
        if unknown := [name for name in limits if name not in Limits.__annotations__]:
            known = list(Limits.__annotations__)
            hint = keyword_hint(unknown[0], known)
            raise NdsError(f"unknown limit '{unknown[0]}' ({hint}known: {', '.join(known)})")
        budget = cls(limits.get("time"), limits.get("iterations"), limits.get("patience"), limits.get("target"))
        if budget.seconds is not None:
            budget.seconds *= problems
        return budget

    def reserve(self, seconds: float) -> None:
        """End the search earlier, for work after it: by this much, or by 30% of the time limit if that is less."""
        if self.seconds is not None:
            self.seconds -= min(seconds, 0.3 * self.seconds)

    def restart(self) -> None:
        """Start the clock again."""
        self.began = time.perf_counter()

    def elapsed(self) -> float:
        """Return the seconds since the start."""
        return time.perf_counter() - self.began

    @property
    def deadline(self) -> float | None:
        """The end of the time limit, on the clock of `time.perf_counter`."""
        return self.time_at(1.0)

    def time_at(self, share: float) -> float | None:
        """Return when this share of the time limit is used; None without a time limit."""
        return None if self.seconds is None else self.began + share * self.seconds

    def out_of_time(self) -> bool:
        """Return whether the time limit has passed."""
        return self.seconds is not None and self.elapsed() >= self.seconds

    def fraction(self, iteration: int) -> float:
        """Return the share of time or iterations used before this iteration (from 1), the larger one, in [0, 1]."""
        shares = [0.0]
        if self.seconds is not None:
            shares.append(self.elapsed() / self.seconds)
        if self.iterations is not None:
            shares.append((iteration - 1) / self.iterations)
        return min(1.0, max(shares))

    def spent(self, iteration: int) -> str | None:
        """Return why no iteration follows this one, whatever it finds; None if one may."""
        if self.out_of_time():
            return "time"
        return "iterations" if self.iterations is not None and iteration >= self.iterations else None

    @property
    def depends_on_results(self) -> bool:
        """Whether costs can end the search."""
        return self.target is not None or self.patience is not None

    def defer_patience(self, iteration: int) -> None:
        """Count iterations without a better solution from this one on."""
        self._since = iteration

    def reason(self, progress: Progress) -> str | None:
        """Return why the search ends after this iteration; None if it continues."""
        if progress.best < self._best:  # sums of integer ticks: no rounding noise
            self._best, self._since = progress.best, progress.iteration
        if spent := self.spent(progress.iteration):
            return spent
        if (
            self.target is not None
            and progress.unserved == 0
            and progress.best <= self.target + 1e-9 * abs(self.target)
        ):
            return "target"
        if self.patience is not None and progress.iteration - self._since >= self.patience:
            return "patience"
        return None


@dataclass(frozen=True)
class ExponentialCooling:
    """T = hot (cold / hot)^f, where f is the share of the budget used (section 5.2 of the paper)."""

    hot: float
    cold: float

    def __call__(self, fraction: float) -> float:
        """Return the temperature at this point of the search."""
        return float(self.hot * (self.cold / self.hot) ** fraction)
