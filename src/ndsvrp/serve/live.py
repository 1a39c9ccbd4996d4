"""What is known of a running search, and those who follow it."""

import asyncio
import json
from collections.abc import AsyncGenerator
from typing import Any

HEARTBEAT = 15.0  # seconds without news after which a comment shows that the connection lives


class Signal:
    """Wakes all who wait. Take `next` before looking at what may change: then no change is missed."""

    def __init__(self) -> None:
        self.next = asyncio.Event()

    def send(self) -> None:
        """Wake them. Call it in the event loop, after a change."""
        sent, self.next = self.next, asyncio.Event()
        sent.set()


class Live:
    """The course of one search. Followers read it at their own pace: a slow one misses incumbents, not points."""

    def __init__(self) -> None:
        self.points: list[tuple[float, int, float]] = []  #: seconds, iteration and checked cost of new incumbents
        self.incumbent: bytes | None = None  #: JSON of `incumbent_view`
        self.progress: bytes | None = None  #: JSON
        self.job: bytes | None = None  #: JSON of the job
        self.ended = False
        self.closed = False  #: whether the service stops before the search ends
        self.changed = Signal()

    @property
    def cost(self) -> float | None:
        """Cost of the incumbent."""
        return self.points[-1][2] if self.points else None

    def view(self) -> bytes:
        """Return all of it as JSON, as it is kept after the end."""
        parts = {"points": json.dumps(self.points).encode(), "incumbent": self.incumbent, "progress": self.progress}
        return b"{" + b", ".join(b'"%s": %s' % (name.encode(), data or b"null") for name, data in parts.items()) + b"}"

    def restore(self, view: bytes | None) -> None:
        """Take over what `view` returned, of a search that has ended."""
        stored: dict[str, Any] = {} if view is None else json.loads(view)
        self.points = [(seconds, iteration, cost) for seconds, iteration, cost in stored.get("points", [])]
        self.incumbent, self.progress = (
            json.dumps(stored[name]).encode() if stored.get(name) else None for name in ("incumbent", "progress")
        )

    async def follow(self) -> AsyncGenerator[bytes, None]:
        """Yield server-sent events until the search has ended."""
        sent, shown, progress, job = 0, None, None, None
        while True:
            changed = self.changed.next
            ended, closed = self.ended, self.closed  # before the rest: news may come between two events
            if self.job is not None and self.job is not job and not ended:
                job = self.job
                yield event("job", job)
            if len(self.points) > sent:
                new, sent = self.points[sent:], len(self.points)
                yield event("points", json.dumps(new).encode())
            if self.incumbent is not None and self.incumbent is not shown:
                shown = self.incumbent
                yield event("incumbent", shown)
            if self.progress is not None and self.progress is not progress:
                progress = self.progress
                yield event("progress", progress)
            if ended:
                yield event("end", self.job or b"{}")
            if ended or closed:
                return
            try:
                async with asyncio.timeout(HEARTBEAT):
                    await changed.wait()
            except TimeoutError:
                yield b": nothing new\n\n"


def event(kind: str, data: bytes) -> bytes:
    """Return a server-sent event; the data are one line of JSON."""
    return b"event: " + kind.encode() + b"\ndata: " + data.strip() + b"\n\n"
