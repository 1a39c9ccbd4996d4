"""Result rows: one JSON object per line, appended and never edited."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ndsvrp.errors import InstanceError
from ndsvrp.io.environment import environment

Row = dict[str, Any]

KEY = ("set", "instance", "data", "solver", "solver_version", "seed", "budget", "threads", "hardware")
"""What makes two runs the same run. A row with the same key is not run again, unless it tells of an error.

`data` is a digest of the instance's file; `solver_version` of our own solvers is a digest of the code that searches
(of others, their release); of `hardware` the processor counts, or the GPU where one searched, since seconds on another
one are other seconds.
"""


def key(row: Row) -> tuple[Any, ...]:
    """The identity of a run."""
    return tuple(_processor(row[name]) if name == "hardware" else row[name] for name in KEY)


def _processor(hardware: Row) -> str:
    return str(hardware.get("gpu") or hardware["cpu"])


def read_rows(file: str | Path) -> list[Row]:
    """All rows of a file; none if there is no such file. What a crash left of a last line is no row."""
    path = Path(file)
    if not path.exists():
        return []
    lines = path.read_text(encoding="utf-8").split("\n")
    if not lines[-1] or _is_cut_off(lines[-1]):
        lines.pop()
    rows = []
    for number, line in enumerate(lines, start=1):
        row = _parse(line)
        if row is None or not set(KEY) <= row.keys():
            raise InstanceError("not a result row", file=str(file), line=number)
        rows.append(row)
    return rows


def append_row(file: str | Path, row: Row) -> None:
    """Add one line, in one write, in place of what a crash may have left of another."""
    path = Path(file)
    path.parent.mkdir(parents=True, exist_ok=True)
    line = json.dumps(row, allow_nan=False) + "\n"
    with path.open("a+b") as stream:
        stream.seek(0)
        whole, newline, rest = stream.read().rpartition(b"\n")
        if _is_cut_off(rest.decode(errors="replace")):
            stream.truncate(len(whole + newline))
        elif rest:
            line = "\n" + line
        stream.write(line.encode())


def record(
    rows: Iterable[Row], out: str | Path | None = None, progress: Callable[[Row], None] | None = None
) -> list[Row]:
    """Take measurements as they come: each gets its date and what it was made with, goes to `out` and is told."""
    taken = []
    for row in rows:
        row = {**row, "date": datetime.now(UTC).isoformat(timespec="seconds"), **environment()}
        taken.append(row)
        if out is not None:
            append_row(out, row)
        if progress is not None:
            progress(row)
    return taken


def latest(rows: Iterable[Row]) -> dict[tuple[Any, ...], Row]:
    """The last row of every run."""
    return {key(row): row for row in rows}


def _parse(line: str) -> Row | None:
    try:
        row = json.loads(line)
    except json.JSONDecodeError:
        return None
    return row if isinstance(row, dict) else None


def _is_cut_off(line: str) -> bool:
    """Whether this is how a row begins, and not a whole one."""
    start = f'{{"{KEY[0]}": "'
    return line != "" and (start.startswith(line) or line.startswith(start)) and _parse(line) is None
