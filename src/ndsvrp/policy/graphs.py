"""CUDA graphs: functions of tensors of fixed shapes, captured once and replayed with one launch."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any
from weakref import ref

import torch
from torch import Tensor

MAX_GRAPHS = 32  # each holds its memory: the one unused for longest is dropped
WARM_UPS = 3  # calls before the capture, in which libraries allocate their workspaces


class CapturedGraph:
    """A captured graph of `function(*inputs)`. A call copies its inputs and overwrites the outputs of the last call.

    Other tensors that the function reads, such as weights, are read at each replay. An input is not copied again if
    the last call had the same tensor and torch has not written to it since. Torch does not notice writes by our
    kernels and by replays of other graphs: such an input must be a new tensor.
    """

    def __init__(self, function: Callable[..., Any], inputs: tuple[Tensor, ...], changed: Sequence[Tensor]) -> None:
        self._inputs = tuple(tensor.clone() for tensor in inputs)
        self._copies = InputCopies()
        before = [tensor.clone() for tensor in changed]
        side: Any = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        side.wait_stream(torch.cuda.current_stream())
        try:
            with torch.cuda.stream(side):
                for _ in range(WARM_UPS):
                    function(*self._inputs)
            torch.cuda.current_stream().wait_stream(side)
            self._graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self._graph):
                self._outputs = function(*self._inputs)
        finally:
            for tensor, value in zip(changed, before, strict=True):
                tensor.copy_(value)

    def __call__(self, *inputs: Tensor) -> Any:
        """Replay with these inputs."""
        self._copies.update(self._inputs, inputs)
        self._graph.replay()
        return self._outputs


class InputCopies:
    """Copies tensors into others, but only those that have changed since the last call."""

    def __init__(self) -> None:
        self._seen: list[tuple[ref[Tensor], int]] = []

    def update(self, copies: Sequence[Tensor], originals: Sequence[Tensor]) -> None:
        """Make each copy equal to its original."""
        before: list[Any] = self._seen or [(lambda: None, 0)] * len(copies)
        for (seen, version), copy, original in zip(before, copies, originals, strict=True):
            if seen() is not original or version != original._version:
                copy.copy_(original)
        self._seen = [(ref(original), original._version) for original in originals]


class GraphCache:
    """A captured graph per combination of input shapes and keyword arguments.

    changed: tensors that the function adds to, such as gradients; capturing a graph restores them.
    """

    def __init__(self, function: Callable[..., Any], changed: Sequence[Tensor] = ()) -> None:
        self._function, self._changed = function, changed
        self._graphs: dict[tuple[Any, ...], CapturedGraph] = {}

    def __call__(self, *inputs: Tensor, **fixed: int) -> Any:
        """Replay the graph for these shapes and keyword arguments; capture it at the first call."""
        key = (*(tensor.shape for tensor in inputs), *fixed.items())
        graph = self._graphs.pop(key, None)
        if graph is None:
            graph = self._capture(partial(self._function, **fixed), inputs)
        while len(self._graphs) >= MAX_GRAPHS:
            del self._graphs[next(iter(self._graphs))]
        self._graphs[key] = graph  # in the order of their last use
        return graph(*inputs)

    def _capture(self, function: Callable[..., Any], inputs: tuple[Tensor, ...]) -> CapturedGraph:
        try:
            return CapturedGraph(function, inputs, self._changed)
        except torch.cuda.OutOfMemoryError:
            self._graphs.clear()  # releases their memory
        torch.cuda.empty_cache()  # after the except block, whose exception holds tensors
        return CapturedGraph(function, inputs, self._changed)


def timing_event() -> Any:
    """Record an event whose time can be read, on torch's current stream."""
    event: Any = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
    event.record()
    return event


def low_precision(device: torch.device) -> torch.autocast:
    """Return an autocast to bfloat16 on a GPU, to float32 on a CPU. No cached casts: a graph would keep old weights."""
    return torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda", cache_enabled=False)
