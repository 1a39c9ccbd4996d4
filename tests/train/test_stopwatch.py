"""Where the time goes, on a CPU; tests/gpu has the other half."""

from __future__ import annotations

import time

import pytest
import torch

from ndsvrp.train.stopwatch import Stopwatch


def test_parts_are_summed() -> None:
    watch = Stopwatch(torch.device("cpu"))
    for part, seconds in (("a", 0.02), ("b", 0.01), ("a", 0.03)):
        with watch.timed(part):
            time.sleep(seconds)
    found = watch.seconds()
    assert list(found) == ["a", "b"]
    assert 0.05 <= found["a"] < 0.5 and 0.01 <= found["b"] < 0.5
    assert watch.seconds() == {}, "and begin anew"


def test_what_fails_is_not_counted() -> None:
    watch = Stopwatch(torch.device("cpu"))
    with pytest.raises(ValueError, match="no"), watch.timed("a"):
        raise ValueError("no")
    assert watch.seconds() == {}
