"""Result rows: one JSON object per line, appended and never edited."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ndsvrp.errors import InstanceError

Row = dict[str, Any]

KEY = ("set", "instance", "data", "solver", "solver_version", "seed", "budget", "threads", "hardware")
"""What makes two runs the same run. A row with the same key is not run again, unless it tells of an error.

`data` is a digest of the instance's file; `solver_version` of our own solvers is a digest of the code that searches
(of others, their release); of `hardware` the processor counts, since seconds on another one are other seconds.
"""


def key(row: Row) -> tuple[Any, ...]:
    """The identity of a run."""
    return tuple(row[name]["cpu"] if name == "hardware" else row[name] for name in KEY)


def read_rows(file: str | Path) -> list[Row]:
    """All rows of a file; none if there is no such file. A last line without its end is no row."""
    path = Path(file)
    if not path.exists():
        return []
    rows = []
    for number, line in enumerate(path.read_text(encoding="utf-8").split("\n")[:-1], start=1):
        try:
            row = json.loads(line)
        except json.JSONDecodeError:
            row = None
        if not isinstance(row, dict) or not set(KEY) <= row.keys():
            raise InstanceError("not a result row", file=str(file), line=number)
        rows.append(row)
    return rows


def append_row(file: str | Path, row: Row) -> None:
    """Add one line, in one write, in place of what a crash may have left of another."""
    path = Path(file)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as stream:
        stream.truncate(_whole_lines(path))
        stream.write((json.dumps(row, allow_nan=False) + "\n").encode())


def latest(rows: Iterable[Row]) -> dict[tuple[Any, ...], Row]:
    """The last row of every run."""
    return {key(row): row for row in rows}


def _whole_lines(path: Path) -> int:
    """The length of a file up to and with its last newline."""
    return path.read_bytes().rfind(b"\n") + 1
