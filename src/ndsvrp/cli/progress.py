"""The progress of a search on the error stream: a live line on a terminal, plain lines elsewhere."""

import time
from typing import Self

from rich.console import Console
from rich.live import Live
from rich.text import Text

from ndsvrp.cli.formatting import cost_of, say
from ndsvrp.metric import Metric
from ndsvrp.search.result import Progress
from ndsvrp.text import amount


class Watch:
    """A callback of the search that shows nothing; the base of those that do."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def __call__(self, progress: Progress) -> None:
        """Show the progress."""


class LiveLine(Watch):
    """A line that another thread redraws in place, so that its clock also advances in long iterations."""

    def __init__(self, console: Console, metric: Metric, prefix: str) -> None:
        self._metric, self._prefix = metric, prefix
        self._latest: Progress | None = None
        self._received = time.perf_counter()
        self._live = Live(console=console, get_renderable=self._render, refresh_per_second=8, transient=True)

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def __call__(self, progress: Progress) -> None:
        self._latest, self._received = progress, time.perf_counter()

    def _render(self) -> Text:
        since = time.perf_counter() - self._received
        if self._latest is None:
            text = f"{self._prefix}building start solutions  {since:.1f} s"
        else:
            text = line_of(self._latest, self._metric, self._prefix, since)
        return Text(text, no_wrap=True, overflow="ellipsis")


class PlainLines(Watch):
    """A line after one second, then whenever the time has grown by a second and by a tenth."""

    def __init__(self, metric: Metric, prefix: str) -> None:
        self._metric, self._prefix = metric, prefix
        self._next = 1.0

    def __call__(self, progress: Progress) -> None:
        if progress.seconds >= self._next:
            self._next = progress.seconds + max(1.0, 0.1 * progress.seconds)
            say(line_of(progress, self._metric, self._prefix), error=True)


def line_of(progress: Progress, metric: Metric, prefix: str = "", since: float = 0.0) -> str:
    """Return one line: iteration, time (`since` seconds have passed after it), best, temperature, solutions/s."""
    best = f"best {cost_of(progress.best, metric)}"
    if progress.unserved:
        best = f"{amount(progress.unserved, 'customer')} still unserved"
    rate = progress.reconstructions / progress.seconds if progress.seconds > 0 else 0.0
    speed = f"{rate / 1000:,.0f}k" if rate >= 10_000 else f"{rate:,.0f}"
    return (
        f"{prefix}iteration {progress.iteration:,}  {progress.seconds + since:.1f} s  {best}"
        f"  temperature {progress.temperature:.3g}  {speed} solutions/s"
    )


def watch(console: Console, metric: Metric, *, quiet: bool, prefix: str = "") -> Watch:
    """Return the watch that suits the console."""
    if quiet:
        return Watch()
    if console.is_terminal and not console.is_dumb_terminal:
        return LiveLine(console, metric, prefix)
    return PlainLines(metric, prefix)
