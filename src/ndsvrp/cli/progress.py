"""The progress of a search on the error stream: a live line on a terminal, plain lines elsewhere."""

import time
from dataclasses import dataclass
from typing import Self

from rich.console import Console
from rich.live import Live
from rich.text import Text

from ndsvrp.cli.formatting import cost_of, say
from ndsvrp.metric import Metric
from ndsvrp.search.result import Progress
from ndsvrp.text import amount

BARS = "▁▂▃▄▅▆▇█"
COLUMNS = 16  # of the curve


@dataclass(frozen=True)
class Shown:
    """What is searched, as far as the line shows it."""

    metric: Metric
    prefix: str = ""
    seconds: float | None = None  #: the time limit
    iterations: int | None = None  #: the limit
    known: float | None = None  #: a cost to give the gap to

    def left(self, progress: Progress, since: float = 0.0) -> float | None:
        """Return the seconds until the first limit; `since` seconds have passed after the progress."""
        limits = [] if self.seconds is None else [self.seconds - progress.seconds - since]
        if self.iterations is not None and progress.iteration > 0:
            each = progress.seconds / progress.iteration
            limits.append((self.iterations - progress.iteration) * each - since)
        return max(0.0, min(limits)) if limits else None


class Curve:
    """The best cost over time as a few characters."""

    def __init__(self) -> None:
        self._points: list[tuple[float, float]] = []

    def add(self, progress: Progress) -> None:
        """Note a better solution."""
        if progress.unserved == 0 and (not self._points or progress.best < self._points[-1][1]):
            self._points.append((progress.seconds, progress.best))

    def draw(self, seconds: float) -> str:
        """Return the curve from the start until now; the first column is not to scale, it may be far above."""
        if len(self._points) < 2:
            return ""
        costs, position = [], 0
        for column in range(1, COLUMNS + 1):
            while position + 1 < len(self._points) and self._points[position + 1][0] <= seconds * column / COLUMNS:
                position += 1
            costs.append(self._points[position][1])
        low, high = costs[-1], max(costs[1:])
        steps = [(cost - low) / (high - low) if high > low else 0.0 for cost in costs]
        return "".join(BARS[min(len(BARS) - 1, int(step * len(BARS)))] for step in steps)


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

    def __init__(self, console: Console, task: Shown) -> None:
        self._task, self._curve = task, Curve()
        self._has_bars = console.encoding.lower().startswith("utf")
        self._latest: Progress | None = None
        self._received = time.perf_counter()
        self._console = console
        self._live = Live(console=console, get_renderable=self._render, refresh_per_second=8, transient=True)

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def __call__(self, progress: Progress) -> None:
        self._latest, self._received = progress, time.perf_counter()
        self._curve.add(progress)

    def _render(self) -> Text:
        since, latest = time.perf_counter() - self._received, self._latest
        if latest is None:
            text = f"{self._task.prefix}building start solutions  {since:.1f} s"
        else:
            curve = self._curve.draw(latest.seconds + since) if self._has_bars else ""
            text = line_of(latest, self._task, since, curve, self._console.width)
        return Text(text, no_wrap=True, overflow="ellipsis")


class PlainLines(Watch):
    """A line after one second, then whenever the time has grown by a second and by a tenth."""

    def __init__(self, task: Shown) -> None:
        self._task = task
        self._next = 1.0

    def __call__(self, progress: Progress) -> None:
        if progress.seconds >= self._next:
            self._next = progress.seconds + max(1.0, 0.1 * progress.seconds)
            say(line_of(progress, self._task), error=True)


def line_of(progress: Progress, task: Shown, since: float = 0.0, curve: str = "", width: int | None = None) -> str:
    """Return one line: iteration, time, time left, best cost, its gap and curve, temperature, speed.

    `since` seconds have passed after the progress. The last words are left out where the line is wider than `width`.
    """
    words = [f"{task.prefix}iteration {progress.iteration:,}", f"{progress.seconds + since:.1f} s"]
    if (left := task.left(progress, since)) is not None:
        words.append(f"{left:.0f} s left")
    if progress.unserved:
        words.append(f"{amount(progress.unserved, 'customer')} still unserved")
    else:
        words.append(f"best {cost_of(progress.best, task.metric)}")
        if task.known:
            words.append(f"gap {100 * (progress.best - task.known) / task.known:+.2f}%")
    words += [curve] if curve else []
    rate = progress.reconstructions / progress.seconds if progress.seconds > 0 else 0.0
    speed = f"{rate / 1000:,.0f}k" if rate >= 10_000 else f"{rate:,.0f}"
    words += [f"temperature {progress.temperature:.3g}", f"{speed} reconstructions/s"]
    while width is not None and len(words) > 1 and len("  ".join(words)) > width:
        words.pop()
    return "  ".join(words)


def watch(console: Console, task: Shown, *, quiet: bool) -> Watch:
    """Return the watch that suits the console."""
    if quiet:
        return Watch()
    if console.is_terminal and not console.is_dumb_terminal:
        return LiveLine(console, task)
    return PlainLines(task)
