"""The log of a run: JSON lines, and TensorBoard if it is installed."""

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from ndsvrp.errors import NdsError
from ndsvrp.io.files import read_bytes, refused
from ndsvrp.io.result import plain

LOG = "log.jsonl"


class Log:
    """Rows of a run, appended and never edited: `run` for each start, `batch`, `validation`, `end`."""

    def __init__(self, folder: Path) -> None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            file = folder / LOG
            self._stream = file.open("a", encoding="utf-8")
            if file.is_file() and read_bytes(file, may_be_empty=True, last=1) not in (b"", b"\n"):
                self._stream.write("\n")  # a killed run left an incomplete row: the next one begins on its own line
        except OSError as error:
            raise NdsError(f"{folder}: cannot be written ({error.strerror})") from None
        self._board = _tensorboard(folder)

    def write(self, kind: str, row: dict[str, Any]) -> None:
        """Append a row and flush it, so that it survives a killed run."""
        try:
            self._stream.write(json.dumps(plain({"kind": kind, **row}), allow_nan=False) + "\n")
            self._stream.flush()
        except OSError as error:
            raise refused("written", self._stream.name, error) from None
        if self._board is not None and kind in ("batch", "validation"):
            for name, value in _numbers(row):
                self._board.add_scalar(f"{kind}/{name}", value, row["instances"])

    def close(self) -> None:
        """Close the files."""
        with suppress(OSError):  # of a row that could not be written, which was raised then
            self._stream.close()
        if self._board is not None:
            self._board.close()


def _tensorboard(folder: Path) -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        return None
    return SummaryWriter(str(folder / "tensorboard"))


def _numbers(row: dict[str, Any], lead: str = "") -> Iterator[tuple[str, float]]:
    for name, value in row.items():
        if isinstance(value, dict):
            yield from _numbers(value, f"{lead}{name}/")
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield f"{lead}{name}", value
