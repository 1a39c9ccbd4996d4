"""Clocks for tests of time limits, which must not depend on the load of the machine."""

from __future__ import annotations

import time

import pytest


class FakeClock:
    """In the place of `time.perf_counter`: begins at 100 s, and moves on by `tick` whenever somebody looks."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, tick: float) -> None:
        self.now, self.tick = 100.0, tick
        monkeypatch.setattr(time, "perf_counter", self._look)

    def _look(self) -> float:
        self.now += self.tick
        return self.now
