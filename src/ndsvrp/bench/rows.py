"""Result rows: one JSON object per line, appended and never edited."""

import io
import json
import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ndsvrp.errors import InstanceError
from ndsvrp.io.environment import environment
from ndsvrp.io.files import exists, read_bytes, read_text, refused
from ndsvrp.io.tables import parse_json

Row = dict[str, Any]
_TEXT, _NUMBER, _NUMBER_OR_NONE = (str,), (int, float), (int, float, type(None))

KEY = ("set", "instance", "data", "solver", "solver_version", "seed", "budget", "threads", "hardware")
"""The identity of a run. A run with the same key is not repeated, unless its row has an error.

`data` is a digest of the instance's file. `solver_version` is a digest of the code for the solvers of this package, and
the release for others. Of `hardware` only the processor counts, or the GPU if the run used one.
"""


TYPES: dict[str, tuple[type, ...]] = {
    "set": _TEXT, "instance": _TEXT, "data": _TEXT, "solver": _TEXT, "solver_version": _TEXT, "seed": (int,),
    "budget": _NUMBER, "threads": (int,), "hardware": (dict,), "feasible": (bool, type(None)), "cost": _NUMBER,
    "seconds": _NUMBER, "cpu_seconds": _NUMBER, "gap": _NUMBER_OR_NONE, "error": _TEXT, "skipped": _TEXT,
    "best_known": _NUMBER_OR_NONE, "routes": (int,), "customers": (int,), "trace": (list,),
}  # fmt: skip
"""What reports read of a row."""
LARGEST = 1e100  # of a number in a row: sums and squares of such numbers are finite
END = 2**16  # bytes at the end of a file that are searched for its last line
SOLVED = ("feasible", "seconds", "cpu_seconds", "gap")  # those that a row with a cost has


def key(row: Row) -> tuple[Any, ...]:
    """Return the identity of a run."""
    return tuple(processor(row) if name == "hardware" else row[name] for name in KEY)


def processor(row: Row) -> Any:
    """Return the GPU of a run, or its CPU."""
    return row["hardware"].get("gpu") or row["hardware"].get("cpu")


def read_rows(file: str | Path) -> list[Row]:
    """Return all rows of a file; none if it does not exist. An incomplete last line, as after a crash, is skipped."""
    rows = []
    for number, row in numbered_rows(file):
        if not set(KEY) <= row.keys():
            raise InstanceError("not a result row", file=str(file), line=number)
        if wrong := _mistyped(row):
            raise InstanceError(f"not a result row, {wrong} is missing or of another type", file=str(file), line=number)
        rows.append(row)
    return rows


def numbered_rows(file: str | Path) -> Iterator[tuple[int, Row]]:
    """Yield the number and the table of each line, of rows of any kind; for the last line see `read_rows`."""
    lines = read_text(file, may_be_empty=True).split("\n") if exists(file) else [""]
    if not lines[-1] or _is_cut_off(lines[-1]):
        lines.pop()
    for number, line in enumerate(lines, start=1):
        row = _parse(line)
        if row is None:
            raise InstanceError("not a result row", file=str(file), line=number)
        yield number, row


def append_row(file: str | Path, row: Row) -> None:
    """Append one line, in place of an incomplete last line. Several programs may append to a file at the same time."""
    path = Path(file)
    line = json.dumps(row, allow_nan=False) + "\n"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists():
            read_bytes(path, may_be_empty=True, last=0)  # refuses a pipe, which would wait for its reader when opened
        with path.open("ab", buffering=0) as stream:
            _lock(stream)
            rest, keep = _last_line(path), stream.seek(0, io.SEEK_END)
            if _is_cut_off(rest.decode(errors="replace")):
                keep -= len(rest)
                stream.truncate(keep)
            elif rest:
                line = "\n" + line
            try:
                _write_all(stream, line.encode())
            except OSError:
                stream.truncate(keep)  # no half of a row
                raise
    except OSError as error:
        raise refused("written", path, error) from None


def _lock(stream: io.FileIO) -> None:
    """Wait until no other program has locked the file, and lock it until it is closed."""
    with suppress(ImportError, OSError):  # on Windows, and where a file system has no locks
        import fcntl

        fcntl.flock(stream, fcntl.LOCK_EX)


def _last_line(path: Path) -> bytes:
    """Return what follows the last newline. Long files are read from their end."""
    end = read_bytes(path, may_be_empty=True, last=END)
    if b"\n" not in end and len(end) == END:
        end = read_bytes(path, may_be_empty=True)
    return end.rpartition(b"\n")[2]


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


def _write_all(stream: io.RawIOBase, data: bytes) -> None:
    while data:  # a disk may be full after a part
        data = data[stream.write(data) or 0 :]


def _parse(line: str) -> Row | None:
    try:
        row = parse_json(line)
    except InstanceError:
        return None
    return row if isinstance(row, dict) else None


def _mistyped(row: Row) -> str | None:
    """Return the first field that reports cannot use, if there is one."""
    for name, types in TYPES.items():
        if name in row and not (isinstance(row[name], types) and _is_usable(row[name], name, bool in types)):
            return name
    if not row["budget"] > 0:
        return "budget"
    if not _is_trace(row.get("trace", [])):
        return "trace"
    missing = [name for name in SOLVED if name not in row] if "cost" in row else ()
    if missing or (row.get("feasible") and "cost" not in row):
        return missing[0] if missing else "cost"
    return None if isinstance(processor(row), str) else "hardware"


def _is_usable(value: Any, name: str, may_be_bool: bool = False) -> bool:
    """Return whether a value is no number, or one that can be computed with; only a gap may be negative."""
    if isinstance(value, bool):
        return may_be_bool
    return not isinstance(value, (int, float)) or (-LARGEST if name == "gap" else 0) <= value <= LARGEST


def _is_trace(points: list[Any]) -> bool:
    """Return whether these are pairs of seconds and cost, in the order of time."""
    if not all(isinstance(point, list) and len(point) == 2 for point in points):
        return False
    numbers = [x for point in points for x in point]
    if not set(map(type, numbers)) <= {int, float} or any(map(math.isnan, numbers)):
        return False
    seconds = numbers[::2]
    return not numbers or (min(numbers) >= 0 and max(numbers) <= LARGEST and seconds == sorted(seconds))


def _is_cut_off(line: str) -> bool:
    """Return whether a line is the beginning of a row, and not a complete one."""
    start = f'{{"{KEY[0]}": "'
    return line != "" and (start.startswith(line) or line.startswith(start)) and _parse(line) is None
