"""How a user steers a running search: stop criteria, callbacks, signals."""

from __future__ import annotations

import inspect
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import numpy as np

from ndsvrp.errors import NdsError
from ndsvrp.search.result import Progress

Callback = Callable[[Progress], Any]
"""Called after each iteration. Returning False ends the search; any other answer does not."""

Stop = Callable[[Progress], Any] | Callable[[], Any]
"""Asked after each iteration, with the progress if it takes an argument. A true answer ends the search."""


class CallbackFailure(Exception):  # noqa: N818 – never leaves the package
    """A callback or stop criterion raised an exception, which is the cause of this."""


class Control:
    """Calls the callback and asks the stop criterion, until one of them has ended the search."""

    def __init__(self, callback: Callback | None = None, stop: Stop | None = None) -> None:
        for name, given in (("callback", callback), ("stop", stop)):
            if given is not None and not callable(given):
                raise NdsError(f"{name} must be a function of a Progress, got {type(given).__name__}")
        self._callback, self._stop = callback, None if stop is None else _with_progress(stop)
        self._ended = False

    def reason(self, progress: Progress) -> str | None:
        """Return why the user ends the search after this iteration: callback, stop; None if it continues."""
        if self._ended:  # an iteration that was running already
            return None
        try:
            answer = None if self._callback is None else self._callback(progress)
            ended = "callback" if isinstance(answer, bool | np.bool_) and not answer else None
            if ended is None and self._stop is not None and self._stop(progress):
                ended = "stop"
        except Exception as error:
            self._ended = True
            raise CallbackFailure from error
        self._ended = ended is not None
        return ended


def _with_progress(stop: Stop) -> Callable[[Progress], Any]:
    """Return a criterion that takes the progress, also for a function without arguments such as `event.is_set`."""
    try:
        signature = inspect.signature(stop)
    except (TypeError, ValueError):  # of some built-in functions
        return stop  # type: ignore[return-value]
    try:
        signature.bind(None)
    except TypeError:
        without: Any = stop
        return lambda progress: without()
    return stop  # type: ignore[return-value]


@contextmanager
def interruptible() -> Iterator[None]:
    """Make SIGTERM raise KeyboardInterrupt, as Ctrl-C does, unless the program handles it, or in another thread."""
    alone = threading.current_thread() is not threading.main_thread()
    if alone or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt
