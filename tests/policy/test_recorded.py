"""Which recording is replayed. What recordings do is for tests/gpu: here they are plain calls."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from torch import Tensor

from ndsvrp.policy import recorded
from ndsvrp.policy.recorded import Copied, Recordings


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, ...]]:
    """The shapes of recordings, as they are made."""
    shapes: list[tuple[int, ...]] = []

    class Plain:
        def __init__(self, function: Callable[..., Any], inputs: tuple[Tensor, ...], changed: Sequence[Tensor]) -> None:
            shapes.append(tuple(inputs[0].shape))
            self._function = function

        def __call__(self, *inputs: Tensor) -> Any:
            return self._function(*inputs)

    monkeypatch.setattr(recorded, "Recorded", Plain)
    return shapes


def test_one_per_shape_and_number(made: list[tuple[int, ...]]) -> None:
    recordings = Recordings(lambda x, times: (times * x.sum()).item())
    three, four = torch.ones(3), torch.ones(4)
    found = [
        recordings(three, times=2),
        recordings(four, times=2),
        recordings(three, times=5),
        recordings(three, times=2),
    ]
    assert found == [6, 8, 15, 6]
    assert made == [(3,), (4,), (3,)], "the last one was there already"


def test_the_one_not_used_for_longest_goes(made: list[tuple[int, ...]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorded, "KEPT", 2)
    recordings = Recordings(lambda x: x.sum().item())
    for size in (1, 2, 1, 3, 1, 2):
        assert recordings(torch.ones(size)) == size
    assert made == [(1,), (2,), (3,), (2,)]


def test_what_has_not_changed_is_not_copied() -> None:
    copied, held = Copied(), [torch.zeros(2), torch.zeros(2)]
    first, second = torch.ones(2), torch.full((2,), 2.0)

    def copies(*given: Tensor) -> int:
        """How many were copied; afterwards all are what was given."""
        before = [tensor._version for tensor in held]
        copied.into(held, given)
        assert all(map(torch.equal, held, given))
        return sum(tensor._version != version for tensor, version in zip(held, before, strict=True))

    assert copies(first, second) == 2
    assert copies(first, second) == 0
    second += 1
    assert copies(first, second) == 1, "it was written to"
    assert copies(first, second.clone()) == 1, "another, though it holds the same"
    assert copies(second, first) == 2
    assert copies(second, torch.ones(2)) == 1, "one that is gone leaves its place to another"
    assert copies(second, torch.full((2,), 5.0)) == 1
