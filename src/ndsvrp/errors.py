"""Errors and warnings, with messages for the user."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ndsvrp.search.result import Result


class NdsError(Exception):
    """Base of all errors that the program raises on purpose; the command prints one line, without a traceback."""


class InstanceError(NdsError):
    """Bad input, with file, line and field if known.

    `field` is the name of a `Problem` field (`demand`, `windows`, …) or of a file section, and
    `node` the index (depot 0) of the offending row, from which a reader finds the line.
    """

    def __init__(
        self,
        message: str,
        *,
        file: str | None = None,
        line: int | None = None,
        field: str | None = None,
        node: int | None = None,
    ) -> None:
        super().__init__(message)
        self.message, self.file, self.line, self.field, self.node = message, file, line, field, node

    def located(self, file: str, line: int | None = None) -> InstanceError:
        """Return the same error with its file and line; None keeps a known line."""
        line = self.line if line is None else line
        return InstanceError(self.message, file=file, line=line, field=self.field, node=self.node)

    def __str__(self) -> str:
        position = ":".join(str(part) for part in (self.file, self.line) if part is not None)
        return ": ".join(part for part in (position, self.field, self.message) if part)


class NdsWarning(UserWarning):
    """Input that was ignored or changed without an effect on feasibility."""


_collected: ContextVar[list[str] | None] = ContextVar("_collected", default=None)


@contextmanager
def collected_warnings() -> Iterator[list[str]]:
    """Collect the warnings of this thread in a list instead; `warnings.catch_warnings` would change all threads."""
    messages: list[str] = []
    token = _collected.set(messages)
    try:
        yield messages
    finally:
        _collected.reset(token)


def warn(message: str) -> None:
    """Warn the user, at the line outside of this package that led here."""
    if (messages := _collected.get()) is not None:
        messages.append(message)
        return
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "ndsvrp":
        frame, level = frame.f_back, level + 1
    warnings.warn(message, NdsWarning, stacklevel=level)


class EngineError(NdsError):
    """An engine cannot carry out a request: no such device, too little memory, …"""


class MissingPackageError(NdsError, ImportError):
    """A package of an extra is not installed; the message has the command that installs it."""


class NoSolutionError(NdsError):
    """No feasible solution was found; `unserved` lists the required customers in no route.

    `result` has the best partial solution, with its violations in the report; None if there was no search.
    `preparation`: as that of a `Result`.
    """

    def __init__(
        self, message: str, unserved: list[int], preparation: float = 0.0, result: Result | None = None
    ) -> None:
        super().__init__(message)
        self.unserved, self.preparation, self.result = unserved, preparation, result

    def __reduce__(self) -> tuple[type[NoSolutionError], tuple[Any, ...]]:
        return type(self), (*self.args, self.unserved, self.preparation, self.result)


class CallbackError(NdsError):
    """A callback or stop criterion raised an exception, which is the cause of this error.

    `result` has the best solution so far; for `solve_set`, `results` has those of all problems.
    """

    def __init__(self, cause: BaseException | None, results: list[Result | NoSolutionError]) -> None:
        super().__init__(f"a callback or stop criterion raised {type(cause).__name__}: {cause}")
        self.results = results
        first = results[0]
        self.result: Result | None = first.result if isinstance(first, NoSolutionError) else first

    def __reduce__(self) -> tuple[Any, ...]:
        return _callback_error, (str(self), self.results)  # a pool of processes waits forever for what it cannot read


def _callback_error(message: str, results: list[Result | NoSolutionError]) -> CallbackError:
    """Return a CallbackError from another process, without its cause."""
    error = CallbackError(None, results)
    error.args = (message,)
    return error


class ClusterError(NdsError):
    """A cluster cannot be used: no connection, no node with what a search needs, another version of this package."""


class CheckpointError(NdsError):
    """A model or checkpoint cannot be used; the message says which file, and why."""
