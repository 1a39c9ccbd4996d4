"""Where the time goes, on a CPU; tests/gpu has the other half."""

from __future__ import annotations

import pytest
import torch

from ndsvrp.train import stopwatch
from ndsvrp.train.stopwatch import Stopwatch


def test_parts_are_summed(monkeypatch: pytest.MonkeyPatch) -> None:
    watch, now = Stopwatch(torch.device("cpu")), 5.0
    monkeypatch.setattr(stopwatch, "perf_counter", lambda: now)
    for part, seconds in (("a", 2.0), ("b", 1.0), ("a", 3.0)):
        with watch.timed(part):
            now += seconds
    assert watch.seconds() == {"a": 5.0, "b": 1.0}
    assert watch.seconds() == {}, "and begin anew"


def test_what_fails_is_not_counted() -> None:
    watch = Stopwatch(torch.device("cpu"))
    with pytest.raises(ValueError, match="no"), watch.timed("a"):
        raise ValueError("no")
    assert watch.seconds() == {}
