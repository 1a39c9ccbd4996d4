"""CUDA graphs: a function of tensors of fixed shapes, recorded once and replayed without the CPU in its way."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any
from weakref import ref

import torch
from torch import Tensor

KEPT = 32  # recordings, each with memory of its own: those not used for longest go
WARM_UPS = 3  # calls before the recording, in which libraries allocate what they keep


class Recorded:
    """A recording of `function(*inputs)`. Calls copy their inputs into it; what they return is overwritten by the next.

    What the function reads besides its inputs, such as weights, is read anew at each replay. A tensor that is the one
    of the last call, with nothing written to it since by torch, is not copied again. What torch does not see written,
    by kernels of our own or by the replay of another recording, must come in a tensor that is new.
    """

    def __init__(self, function: Callable[..., Any], inputs: tuple[Tensor, ...], changed: Sequence[Tensor]) -> None:
        self._inputs = tuple(tensor.clone() for tensor in inputs)
        self._copied = Copied()
        before = [tensor.clone() for tensor in changed]
        apart: Any = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        apart.wait_stream(torch.cuda.current_stream())
        try:
            with torch.cuda.stream(apart):
                for _ in range(WARM_UPS):
                    function(*self._inputs)
            torch.cuda.current_stream().wait_stream(apart)
            self._graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self._graph):
                self._outputs = function(*self._inputs)
        finally:
            for tensor, value in zip(changed, before, strict=True):
                tensor.copy_(value)

    def __call__(self, *inputs: Tensor) -> Any:
        """Replay with these inputs."""
        self._copied.into(self._inputs, inputs)
        self._graph.replay()
        return self._outputs


class Copied:
    """Tensors copied from elsewhere, those that have changed since the last time."""

    def __init__(self) -> None:
        self._seen: list[tuple[ref[Tensor], int]] = []

    def into(self, held: Sequence[Tensor], given: Sequence[Tensor]) -> None:
        """Make `held` what is given, one for one."""
        before: list[Any] = self._seen or [(lambda: None, 0)] * len(held)
        for (seen, version), to, tensor in zip(before, held, given, strict=True):
            if seen() is not tensor or version != tensor._version:
                to.copy_(tensor)
        self._seen = [(ref(tensor), tensor._version) for tensor in given]


class Recordings:
    """One recording per combination of shapes, and of numbers that stay as they are in it. `changed` are tensors that
    the function adds to, such as gradients: making a recording must not."""

    def __init__(self, function: Callable[..., Any], changed: Sequence[Tensor] = ()) -> None:
        self._function, self._changed = function, changed
        self._made: dict[tuple[Any, ...], Recorded] = {}

    def __call__(self, *inputs: Tensor, **fixed: int) -> Any:
        """Replay the recording for these shapes and numbers; the first call makes it."""
        kind = (*(tensor.shape for tensor in inputs), *fixed.items())
        recorded = self._made.pop(kind, None)
        if recorded is None:
            recorded = self._record(partial(self._function, **fixed), inputs)
        while len(self._made) >= KEPT:
            del self._made[next(iter(self._made))]
        self._made[kind] = recorded  # the one used last stands last
        return recorded(*inputs)

    def _record(self, function: Callable[..., Any], inputs: tuple[Tensor, ...]) -> Recorded:
        try:
            return Recorded(function, inputs, self._changed)
        except torch.cuda.OutOfMemoryError:
            self._made.clear()  # they keep memory for themselves
        torch.cuda.empty_cache()  # out here, where what was raised does not hold on to what it had made
        return Recorded(function, inputs, self._changed)


def low_precision(device: torch.device) -> torch.autocast:
    """bfloat16 on a GPU, float32 on a CPU. Casts of weights are not cached: a recording would keep them for good."""
    return torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda", cache_enabled=False)
