"""Ctrl-C and SIGTERM end a search, but never the writing of its result."""

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Self

EXIT_CODES = {signal.SIGINT: 130, signal.SIGTERM: 143}


class Interrupts:
    """Makes both signals raise KeyboardInterrupt once, and only inside `searching`; elsewhere they only set `asked`."""

    def __init__(self) -> None:
        self.asked = False
        self.exit_code = EXIT_CODES[signal.SIGINT]  #: of a search that was ended; that of the first signal
        self._searching = False
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        for number in EXIT_CODES:
            if signal.getsignal(number) is not signal.SIG_IGN:  # ignored, as with nohup
                self._before[number] = signal.signal(number, self._handle)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    @contextmanager
    def searching(self) -> Iterator[None]:
        """Let a signal take effect at once."""
        self._searching = True
        try:
            yield
        finally:
            self._searching = False

    def _handle(self, number: int, frame: FrameType | None) -> None:
        del frame
        if self.asked:
            return
        self.asked, self.exit_code = True, EXIT_CODES[signal.Signals(number)]
        if self._searching:
            raise KeyboardInterrupt


def exit_on_sigterm() -> None:
    """Make SIGTERM end the process as an exception does: temporary files are removed, worker processes ended."""
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(EXIT_CODES[signal.SIGTERM]))
