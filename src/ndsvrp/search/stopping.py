"""When to stop, and how far the search has come."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field

from ndsvrp.errors import NdsError
from ndsvrp.records import require_number, require_whole
from ndsvrp.search.result import Progress


@dataclass
class Budget:
    """Limits of a search. The clock runs from the making of this object.

    `fraction` is what cooling goes by: the share used up of time or iterations, whichever is larger.
    """

    seconds: float | None = None
    iterations: int | None = None
    patience: int | None = None  #: iterations without a better solution
    target: float | None = None  #: a cost that is good enough
    began: float = field(default_factory=time.perf_counter)
    _best: float = field(default=float("inf"), repr=False)
    _since: int = field(default=0, repr=False)

    def __post_init__(self) -> None:
        if self.seconds is None and self.iterations is None:
            raise NdsError("a search needs a limit: seconds or iterations")
        given = {name: getattr(self, name) for name in ("seconds", "iterations", "patience", "target")}
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

    def restart(self) -> None:
        """The clock runs from now."""
        self.began = time.perf_counter()

    def elapsed(self) -> float:
        """Seconds since the start."""
        return time.perf_counter() - self.began

    @property
    def deadline(self) -> float | None:
        """When time is up, by the clock of `time.perf_counter`."""
        return self.time_at(1.0)

    def time_at(self, share: float) -> float | None:
        """When this share of the time limit is used up; None without one."""
        return None if self.seconds is None else self.began + share * self.seconds

    def out_of_time(self) -> bool:
        """Whether time is up."""
        return self.seconds is not None and self.elapsed() >= self.seconds

    def fraction(self, iteration: int) -> float:
        """Share of the budget used before this iteration (counted from 1), in [0, 1]."""
        shares = [0.0]
        if self.seconds is not None:
            shares.append(self.elapsed() / self.seconds)
        if self.iterations is not None:
            shares.append((iteration - 1) / self.iterations)
        return min(1.0, max(shares))

    def spent(self, iteration: int) -> str | None:
        """Why no iteration follows this one, whatever it finds; None if one does."""
        if self.out_of_time():
            return "time"
        return "iterations" if self.iterations is not None and iteration >= self.iterations else None

    @property
    def depends_on_results(self) -> bool:
        """Whether what is found can end the search."""
        return self.target is not None or self.patience is not None

    def reason(self, progress: Progress) -> str | None:
        """Why the search ends here; None if it goes on."""
        if progress.best < self._best:  # sums of whole ticks: there is no noise
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
    """T = hot (cold / hot)^f, where f is the share of the budget used (the paper's section 5.2)."""

    hot: float
    cold: float

    def __call__(self, fraction: float) -> float:
        """The temperature at this point of the search."""
        return float(self.hot * (self.cold / self.hot) ** fraction)
