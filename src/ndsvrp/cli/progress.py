"""What a person sees while a search runs: a live line on a terminal, plain lines now and then elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Protocol, Self

from rich.console import Console
from rich.live import Live
from rich.text import Text

from ndsvrp.cli.formatting import amount, cost_of, say
from ndsvrp.metric import Metric
from ndsvrp.search.result import Progress


class Watch(AbstractContextManager["Watch"], Protocol):
    """Told of every iteration."""

    def __call__(self, progress: Progress) -> None:
        """Take note of it."""


def line_of(progress: Progress, metric: Metric, prefix: str = "", since: float = 0.0) -> str:
    """One line: iteration, time (`since` seconds have passed from then to now), best, temperature, solutions/s."""
    best = f"best {cost_of(progress.best, metric)}"
    if progress.unserved:
        best = f"{amount(progress.unserved, 'customer')} still unserved"
    rate = progress.reconstructions / progress.seconds if progress.seconds > 0 else 0.0
    speed = f"{rate / 1000:,.0f}k" if rate >= 10_000 else f"{rate:,.0f}"
    return (
        f"{prefix}iteration {progress.iteration:,}  {progress.seconds + since:.1f} s  {best}"
        f"  temperature {progress.temperature:.3g}  {speed} solutions/s"
    )


class LiveLine:
    """A line that is redrawn in place by a thread of its own, so that its clock ticks in long iterations too."""

    def __init__(self, console: Console, metric: Metric, prefix: str) -> None:
        self._metric, self._prefix = metric, prefix
        self._latest: Progress | None = None
        self._heard = time.perf_counter()
        self._live = Live(console=console, get_renderable=self._render, refresh_per_second=8, transient=True)

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def __call__(self, progress: Progress) -> None:
        """Take note of it."""
        self._latest, self._heard = progress, time.perf_counter()

    def _render(self) -> Text:
        since = time.perf_counter() - self._heard
        if self._latest is None:
            text = f"{self._prefix}building start solutions  {since:.1f} s"
        else:
            text = line_of(self._latest, self._metric, self._prefix, since)
        return Text(text, no_wrap=True, overflow="ellipsis")


class PlainLines:
    """Lines of text: the first after a second, then one whenever the time has grown by a second and by a tenth."""

    def __init__(self, metric: Metric, prefix: str, write: Callable[[str], None]) -> None:
        self._metric, self._prefix, self._write = metric, prefix, write
        self._next = 1.0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def __call__(self, progress: Progress) -> None:
        """Print it if it is time."""
        if progress.seconds >= self._next:
            self._next = progress.seconds + max(1.0, 0.1 * progress.seconds)
            self._write(line_of(progress, self._metric, self._prefix))


class Silence:
    """Nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def __call__(self, progress: Progress) -> None:
        """Ignore it."""


def watch(console: Console, metric: Metric, *, quiet: bool, prefix: str = "") -> Watch:
    """The watch that suits the console; it prints to the error stream, results go to the output stream."""
    if quiet:
        return Silence()
    if console.is_terminal and not console.is_dumb_terminal:
        return LiveLine(console, metric, prefix)
    return PlainLines(metric, prefix, lambda line: say(line, error=True))
