"""What can go wrong, in the words a person gets to read."""

from __future__ import annotations


class NdsError(Exception):
    """Base of all errors the program raises on purpose: one line, no traceback at the command."""


class InstanceError(NdsError):
    """Bad input: names file, line and field as far as they are known.

    `field` is the name of a `Problem` field (`demand`, `windows`, …) or of a file section, and
    `node` the index (depot 0) of the offending row, so that a reader can look up the line.
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
        """The same fault, seen at a place of a file; a line already known is kept."""
        line = self.line if line is None else line
        return InstanceError(self.message, file=file, line=line, field=self.field, node=self.node)

    def __str__(self) -> str:
        place = ":".join(str(part) for part in (self.file, self.line) if part is not None)
        words = [place] if place else []
        if self.field is not None:
            words.append(self.field)
        return ": ".join([*words, self.message])


class NdsWarning(UserWarning):
    """Something in the input was left aside that cannot change the answer."""


class EngineError(NdsError):
    """An engine cannot do what was asked of it (no such device, too little memory, …)."""


class NoSolutionError(NdsError):
    """No feasible solution was found; `unserved` lists the required customers left out."""

    def __init__(self, message: str, unserved: list[int]) -> None:
        super().__init__(message)
        self.unserved = unserved


class CheckpointError(NdsError):
    """A model or checkpoint that cannot be used: which file, and why."""
