"""Result rows: one JSON object per line, appended and never edited."""

import json
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ndsvrp.errors import InstanceError
from ndsvrp.io.environment import environment

Row = dict[str, Any]

KEY = ("set", "instance", "data", "solver", "solver_version", "seed", "budget", "threads", "hardware")
"""The identity of a run. A run with the same key is not repeated, unless its row has an error.

`data` is a digest of the instance's file. `solver_version` is a digest of the code for the solvers of this package, and
the release for others. Of `hardware` only the processor counts, or the GPU if the run used one.
"""


def key(row: Row) -> tuple[Any, ...]:
    """Return the identity of a run."""
    processor = row["hardware"].get("gpu") or row["hardware"]["cpu"]
    return tuple(processor if name == "hardware" else row[name] for name in KEY)


def read_rows(file: str | Path) -> list[Row]:
    """Return all rows of a file; none if it does not exist. An incomplete last line, as after a crash, is skipped."""
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
    """Append one line in one write, in place of an incomplete last line."""
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
    """Add date and environment to each measurement, append it to `out`, and call `progress`. Return all of them."""
    taken = []
    for row in rows:
        row = {**row, "date": datetime.now(UTC).isoformat(timespec="seconds"), **environment()}
        taken.append(row)
        if out is not None:
            append_row(out, row)
        if progress is not None:
            progress(row)
    return taken


def _parse(line: str) -> Row | None:
    try:
        row = json.loads(line)
    except json.JSONDecodeError:
        return None
    return row if isinstance(row, dict) else None


def _is_cut_off(line: str) -> bool:
    """Return whether a line is the beginning of a row, and not a complete one."""
    start = f'{{"{KEY[0]}": "'
    return line != "" and (start.startswith(line) or line.startswith(start)) and _parse(line) is None
