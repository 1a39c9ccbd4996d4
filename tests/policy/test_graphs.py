"""Which graph is replayed. On a CPU a graph is a plain call; tests/gpu replays them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from torch import Tensor

from ndsvrp.policy import graphs
from ndsvrp.policy.graphs import GraphCache, InputCopies


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, ...]]:
    """The input shapes of graphs in the order of their capture."""
    shapes: list[tuple[int, ...]] = []

    class Plain:
        def __init__(self, function: Callable[..., Any], inputs: tuple[Tensor, ...], changed: Sequence[Tensor]) -> None:
            shapes.append(tuple(inputs[0].shape))
            self._function = function

        def __call__(self, *inputs: Tensor) -> Any:
            return self._function(*inputs)

    monkeypatch.setattr(graphs, "CapturedGraph", Plain)
    return shapes


def test_one_per_shape_and_number(made: list[tuple[int, ...]]) -> None:
    cache = GraphCache(lambda x, times: (times * x.sum()).item())
    three, four = torch.ones(3), torch.ones(4)
    found = [
        cache(three, times=2),
        cache(four, times=2),
        cache(three, times=5),
        cache(three, times=2),
    ]
    assert found == [6, 8, 15, 6]
    assert made == [(3,), (4,), (3,)], "the last one is captured already"


def test_the_least_recently_used_graph_is_dropped(made: list[tuple[int, ...]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graphs, "MAX_GRAPHS", 2)
    cache = GraphCache(lambda x: x.sum().item())
    for size in (1, 2, 1, 3, 1, 2):
        assert cache(torch.ones(size)) == size
    assert made == [(1,), (2,), (3,), (2,)]


def test_unchanged_inputs_are_not_copied() -> None:
    copied, held = InputCopies(), [torch.zeros(2), torch.zeros(2)]
    first, second = torch.ones(2), torch.full((2,), 2.0)

    def copies(*given: Tensor) -> int:
        """Copy, and return how many tensors were written."""
        before = [tensor._version for tensor in held]
        copied.update(held, given)
        assert all(map(torch.equal, held, given))
        return sum(tensor._version != version for tensor, version in zip(held, before, strict=True))

    assert copies(first, second) == 2
    assert copies(first, second) == 0
    second += 1
    assert copies(first, second) == 1, "it has changed"
    assert copies(first, second.clone()) == 1, "another tensor of equal values"
    assert copies(second, first) == 2
    assert copies(second, torch.ones(2)) == 1, "a tensor may take the memory of a deleted one"
    assert copies(second, torch.full((2,), 5.0)) == 1
