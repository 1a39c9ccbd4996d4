"""Ctrl-C ends a search, but never the writing of its result."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any


class Interrupts:
    """Makes Ctrl-C raise KeyboardInterrupt once, and only inside `searching`; elsewhere it only sets `asked`."""

    def __init__(self) -> None:
        self.asked = False
        self._searching = False
        self._before: Any = None

    def __enter__(self) -> Interrupts:
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # not if it is ignored, as with nohup
            self._before = signal.signal(signal.SIGINT, self._handle)
        return self

    def __exit__(self, *_: object) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)

    @contextmanager
    def searching(self) -> Iterator[None]:
        """Let Ctrl-C take effect at once."""
        self._searching = True
        try:
            yield
        finally:
            self._searching = False

    def _handle(self, number: int, frame: FrameType | None) -> None:
        del number, frame
        first, self.asked = not self.asked, True
        if first and self._searching:
            raise KeyboardInterrupt
