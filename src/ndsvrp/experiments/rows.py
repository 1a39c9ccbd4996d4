"""Rows of an experiment: result rows as `nds bench run` writes them, with a few more fields; they resume it.

| field | meaning |
| --- | --- |
| `series` | the line of a table that the run belongs to |
| `budget` | seconds; null if the limit is a number of iterations |
| `iterations` | that limit |
| `threads` | cores of our own search on a CPU; 1 on a GPU |
| `point` | what sets rows of one run apart: the number of a rollout, the instances trained on |
"""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ndsvrp.bench.rows import Row, append_row, numbered_rows, processor
from ndsvrp.errors import InstanceError
from ndsvrp.io.environment import environment
from ndsvrp.io.result import plain

KEY = ("set", "instance", "data", "series", "solver", "solver_version", "seed", "budget", "iterations", "point",
       "threads")  # fmt: skip
"""The identity of a run, together with the processor."""
NEEDED = ("set", "instance", "solver", "hardware")
FILE = "rows.jsonl"


def key(row: Row) -> tuple[Any, ...]:
    """Return the identity of a run."""
    return *(row.get(name) for name in KEY), processor(row)


def read_rows(file: Path) -> list[Row]:
    """Return all rows of a file; none if it does not exist. An incomplete last line, as after a crash, is skipped."""
    rows = []
    for number, row in numbered_rows(file):
        for name in NEEDED:
            if not isinstance(row.get(name), dict if name == "hardware" else str):
                raise InstanceError("is missing or of another type", file=str(file), line=number, field=name)
        rows.append(row)
    return rows


class Rows:
    """The rows of an experiment, in a file that is only appended to."""

    def __init__(self, file: Path, gpu: str | None) -> None:
        self.file = file
        facts = environment()
        self._facts: Row = facts | {"hardware": facts["hardware"] | ({"gpu": gpu} if gpu else {})}
        self.reload()

    def reload(self) -> None:
        """Read the file again, after another program has appended to it."""
        self._known = {key(row): row for row in read_rows(self.file) if "error" not in row}

    def find(self, identity: Row) -> Row | None:
        """Return the row of a run that is there; None if there is none."""
        return self._known.get(key(identity | self._facts))

    def add(self, row: Row) -> Row:
        """Append a row, with date and environment, and return it. The field `set` comes first, as in benchmarks."""
        stamped = {"date": datetime.now(UTC).isoformat(timespec="seconds"), **self._facts}
        whole: Row = plain({"set": row["set"], **row, **stamped})
        append_row(self.file, whole)
        if "error" not in whole:
            self._known[key(whole)] = whole
        return whole
