"""Standard output and error that never fail: a full disk or a closed pipe behind them must not cost a solution."""

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class Unfailing:
    """A text stream that drops what it cannot write. A character that its encoding lacks is escaped."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")

    def write(self, text: str) -> int:
        """Write at once, or drop the text."""
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):  # ValueError: closed
            self._drop()
        return len(text)

    def flush(self) -> None:
        """Do nothing: `write` flushes."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def _drop(self) -> None:
        """Empty the buffer of the stream, which would be tried again, at the latest when the process ends."""
        try:
            number = self._stream.fileno()
            kept, nowhere = os.dup(number), os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, number)
            try:
                self._stream.flush()
            finally:
                os.dup2(kept, number)
                os.close(kept)
                os.close(nowhere)
        except (OSError, ValueError):  # no file behind it: nothing is tried again
            pass


@contextmanager
def unfailing_streams() -> Iterator[None]:
    """Replace both streams; one that was closed before the start (`>&-`) becomes /dev/null."""
    before = sys.stdout, sys.stderr
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            stream = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115 – for the rest of the process
        setattr(sys, name, Unfailing(stream))
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before
