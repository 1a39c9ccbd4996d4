"""Measure the parts of a batch."""

from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import Any

import torch

from ndsvrp.policy.graphs import timing_event


class Stopwatch:
    """Seconds by the name of a part.

    On a GPU events are recorded in the stream and read at the end. The CPU does not wait for them, and a part that
    waits is not charged for the parts before it.
    """

    def __init__(self, device: torch.device) -> None:
        self._on_gpu = device.type == "cuda"
        self._marks: list[tuple[str, Any, Any]] = []

    @contextmanager
    def timed(self, part: str) -> Iterator[None]:
        """Add the time of the `with` block to this part."""
        began = self._mark()
        yield
        self._marks.append((part, began, self._mark()))

    def seconds(self) -> dict[str, float]:
        """Return the seconds of every part since the last call. Waits for the GPU."""
        if self._on_gpu:
            torch.cuda.synchronize()
        marks, self._marks = self._marks, []
        found: dict[str, float] = {}
        for part, began, ended in marks:
            passed = began.elapsed_time(ended) / 1000.0 if self._on_gpu else ended - began
            found[part] = found.get(part, 0.0) + passed
        return found

    def _mark(self) -> Any:
        return timing_event() if self._on_gpu else perf_counter()
