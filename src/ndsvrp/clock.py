"""Clock times such as 08:30: minutes since midnight as numbers, and back as text."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ndsvrp.text import compared, number

if TYPE_CHECKING:
    from ndsvrp.problem import Problem

_CLOCK = re.compile(r"(\d{1,2}):([0-5]\d)(?::([0-5]\d))?", re.ASCII)


def minutes(text: str) -> float | None:
    """Return 510 for 08:30, also with seconds; None for any other text. Hours from 24 on are those of the next days."""
    found = _CLOCK.fullmatch(text.strip())
    if found is None:
        return None
    hours, whole, seconds = (int(part or 0) for part in found.groups())
    return 60 * hours + whole + seconds / 60


def clock(time: float) -> str:
    """Return 08:30 for 510, rounded to minutes."""
    whole = round(abs(time))
    return f"{'-' if time < 0 and whole else ''}{whole // 60:02d}:{whole % 60:02d}"


def clock_with_seconds(time: float) -> str:
    """Return 08:30:15 for 510.25, rounded to seconds."""
    whole = round(60 * abs(time))
    return f"{'-' if time < 0 and whole else ''}{whole // 3600:02d}:{whole // 60 % 60:02d}:{whole % 60:02d}"


def exact_clock(time: float) -> str | None:
    """Return a time as text that `minutes` reads as the same number; None if there is none."""
    hours, seconds = divmod(round(60 * time), 3600)
    text = f"{hours:02d}:{seconds // 60:02d}" + (f":{seconds % 60:02d}" if seconds % 60 else "")
    return text if minutes(text) == time else None


def time_text(problem: Problem, time: float) -> str:
    """Return a time of a problem for people: 08:30 if its windows are clock times, else a number."""
    return clock(time) if problem.clock_times else number(time)


def span_text(problem: Problem, time: float) -> str:
    """Return how long something takes, for people: 1:30 for 90 minutes if windows are clock times, else a number."""
    if not problem.clock_times:
        return number(time)
    whole = round(abs(time))
    return f"{'-' if time < 0 and whole else ''}{whole // 60}:{whole % 60:02d}"


def compared_times(problem: Problem, one: float, other: float) -> tuple[str, str]:
    """Return two times of a problem as text that tells them apart: as clock times if their minutes do, else numbers."""
    if problem.clock_times and clock(one) != clock(other):
        return clock(one), clock(other)
    return compared(one, other)
