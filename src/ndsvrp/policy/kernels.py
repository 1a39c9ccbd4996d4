"""Kernels of the network (native/cuda/network.cu, attention.cu): what stands between its matrix products on a GPU.

Activations are bfloat16, what is summed up is float32. The plain formula of each is in tests/gpu/network_cases.py.
Shapes: B instances, N nodes (the depot is 0), D the width, F any width.
"""

from __future__ import annotations

import warnings
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ndsvrp.engine.device import Device
from ndsvrp.errors import EngineError, NdsWarning

THREADS = 256
SLICE = 32  # channels of a block
RESERVED = (THREADS // 32 + 1) * 3 * SLICE * 4  # bytes of shared memory for sums
KEPT = 100_000  # bytes of shared memory that still let two blocks share a multiprocessor
HEAD = 16  # width of the heads that our attention knows
MOST_ATTENDED = 1536  # nodes whose attention has a gradient: what that needs fits into shared memory
STAGED = 1024  # nodes that attention has in shared memory at once


class Kernels:
    """The kernels on a device."""

    def __init__(self, device: Device) -> None:
        self.device = device

    def norm(
        self, x: Tensor, y: Tensor, weight: Tensor, bias: Tensor, skip: int = 0
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """Instance normalisation of x + y, both (B, N, D), without the first `skip` nodes; and what `norm_backward`
        needs to know."""
        batch, nodes, width = x.shape
        out = x.new_empty(batch, nodes - skip, width)
        statistics = (weight.new_empty(batch, width), weight.new_empty(batch, width))
        size = nodes * SLICE * 4
        self._blocks(
            "norm_forward", x, size, self._keeps(size), x, y, weight, bias, out, *statistics, nodes, width, skip
        )
        return out, statistics

    def norm_backward(
        self, gradient: Tensor, x: Tensor, y: Tensor, weight: Tensor, statistics: tuple[Tensor, Tensor], skip: int = 0
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Gradients of x (and of y: the same), weight and bias."""
        batch, nodes, width = x.shape
        out, parts = torch.empty_like(x), weight.new_empty(2, batch, width)
        size = nodes * SLICE * 6
        self._blocks(
            "norm_backward", x, size, self._keeps(size),
            gradient, x, y, weight, *statistics, out, parts, batch, nodes, width, skip,
        )  # fmt: skip
        of_weight, of_bias = parts.sum(dim=1)
        return out, of_weight, of_bias

    def relu_backward(self, gradient: Tensor, result: Tensor) -> Tensor:
        """Set the gradient (rows, F) to 0 where the ReLU's result is. Returns its sum over rows, (F,)."""
        rows, width = result.shape
        lanes = width // 8
        threads = THREADS // lanes * lanes
        blocks = min(4 * self.device.multiprocessors, -(-rows * lanes // threads))
        parts = gradient.new_empty(blocks, width, dtype=torch.float32)
        self._launch("network", "relu_backward", blocks, threads, threads * 8 * 4, gradient, result, parts, rows, width)
        return parts.sum(dim=0)

    def message(self, parts: Tensor, bias: Tensor, previous: Tensor, following: Tensor) -> Tensor:
        """ReLU(own + bias + of the one before + of the one after), from (B, N, 3 D)."""
        batch, nodes, width = parts.shape[0], parts.shape[1], parts.shape[2] // 3
        out = parts.new_empty(batch, nodes, width)
        blocks = -(-out.numel() // (8 * THREADS))
        arguments = (parts, bias, previous, following, out, batch * nodes, nodes, width)
        self._launch("network", "message_forward", blocks, THREADS, 0, *arguments)
        return out

    def message_backward(
        self, gradient: Tensor, result: Tensor, previous: Tensor, following: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Gradients of the parts and of the bias. `following` must be the opposite of `previous`."""
        batch, nodes, width = result.shape
        to, sums = result.new_empty(batch, nodes, 3 * width), result.new_empty(batch, width, dtype=torch.float32)
        size = nodes * SLICE * 2
        arguments = (gradient, result, previous, following, to, sums, nodes, width)
        self._blocks("message_backward", result, size, self._keeps(size), *arguments)
        return to, sums.sum(dim=0)

    def tour(self, parts: Tensor, bias: Tensor, solution: tuple[Tensor, ...], *, mean: bool) -> Tensor:
        """ReLU(own + bias + mean or sum over the route), from (B, N, 2 D). solution: previous, next, route."""
        batch, nodes, width = parts.shape[0], parts.shape[1], parts.shape[2] // 2
        out = parts.new_empty(batch, nodes, width)
        self._blocks(
            "tour_forward", out, 4 * (2 * nodes + 1), True, parts, bias, *solution, out, nodes, width, last=int(mean)
        )
        return out

    def tour_backward(
        self, gradient: Tensor, result: Tensor, solution: tuple[Tensor, ...], *, mean: bool
    ) -> tuple[Tensor, Tensor]:
        """Gradients of the parts and of the bias."""
        batch, nodes, width = result.shape
        to, sums = result.new_empty(batch, nodes, 2 * width), result.new_empty(batch, width, dtype=torch.float32)
        self._blocks(
            "tour_backward", result, 4 * (2 * nodes + 1), True,
            gradient, result, *solution, to, sums, nodes, width, last=int(mean),
        )  # fmt: skip
        return to, sums.sum(dim=0)

    def reads(self, nodes: int) -> bool:
        """Whether the kernels of the layers are for so many: `tour` has a word for each in shared memory, and more."""
        return RESERVED + 4 * (2 * nodes + 1) <= self.device.shared_limit

    def _keeps(self, size: int) -> bool:
        return size <= min(KEPT, self.device.shared_limit - RESERVED)

    def attends(self, nodes: int, width: int, heads: int, *, gradient: bool) -> bool:
        """Whether `attention` is for such."""
        most = min(MOST_ATTENDED, self.device.shared_limit // 136 // 64 * 64)
        return width == heads * HEAD and (nodes <= most or not gradient)

    def attention(self, projected: Tensor, heads: int) -> tuple[Tensor, Tensor]:
        """Self-attention from queries, keys and values side by side, (B, N, 3 D), to (B, N, D); and what
        `attention_backward` needs to know, (B, heads, N)."""
        batch, nodes, width = projected.shape[0], projected.shape[1], projected.shape[2] // 3
        out = projected.new_empty(batch, nodes, width)
        logarithms = projected.new_empty(batch, heads, nodes, dtype=torch.float32)
        units = -(-nodes // 32)
        rounds = 2 if nodes <= STAGED else 1  # if all are staged once, they are there for more queries
        parts = max(-(-units // (8 * rounds)), min(-(-units // 8), 2 * self.device.multiprocessors // (batch * heads)))
        staged = min(_rounded(nodes), STAGED)
        arguments = (projected, out, logarithms, nodes, width, heads, parts, staged)
        shared = 64 * staged + 16
        self._launch("attention", "attention_forward", batch * heads * parts, THREADS, shared, *arguments)
        return out, logarithms

    def attention_backward(
        self, gradient: Tensor, projected: Tensor, out: Tensor, logarithms: Tensor, heads: int
    ) -> Tensor:
        """Gradient of queries, keys and values, (B, N, 3 D)."""
        batch, nodes, width = out.shape
        to = torch.empty_like(projected)
        arguments = (projected, out, logarithms, gradient, to, nodes, width, heads)
        shared = 136 * _rounded(nodes)
        self._launch("attention", "attention_backward", batch * heads, THREADS, shared, *arguments)
        return to

    def gru(self, fed: Tensor, hidden: Tensor, before: Tensor, after: Tensor) -> None:
        """One step, from `before` to `after`, (rows, D), by what is fed and what the state adds, (rows, 3 D) each."""
        rows, width = before.shape
        blocks = -(-rows * width // THREADS)
        self._launch("network", "gru_forward", blocks, THREADS, 0, fed, hidden, before, after, rows, width)

    def gru_backward(
        self, fed: Tensor, hidden: Tensor, before: Tensor, gradient: Tensor, through: Tensor, direct: Tensor,
        to_fed: Tensor, to_hidden: Tensor,
    ) -> None:  # fmt: skip
        """The same backwards. through, direct: (rows, D) float32, of the step that follows; `direct` is overwritten."""
        rows, width = before.shape
        arguments = (fed, hidden, before, gradient, through, direct, to_fed, to_hidden, rows, width)
        self._launch("network", "gru_backward", -(-rows * width // THREADS), THREADS, 0, *arguments)

    def _blocks(self, name: str, of: Tensor, size: int, fits: bool, *arguments: Any, last: int | None = None) -> None:
        """A block per instance and slice of channels. The last argument: whether `size` bytes are kept in shared
        memory."""
        blocks = of.shape[0] * (of.shape[2] // SLICE)
        shared = RESERVED + (size if fits else 0)
        self._launch("network", name, blocks, THREADS, shared, *arguments, int(fits) if last is None else last)

    def _launch(self, file: str, name: str, blocks: int, threads: int, shared: int, *arguments: Any) -> None:
        numbers = (np.int32(a) if isinstance(a, int) else a for a in arguments)
        self.device.launch(self.device.kernel(file, name, ()), blocks, threads, shared, *numbers)


def _rounded(nodes: int) -> int:
    return -(-nodes // 64) * 64


def kernels_for(device: torch.device) -> Kernels | None:
    """Those of a GPU; None, with a warning, where there is no compiler for them."""
    if device.type != "cuda":
        return None
    return _kernels_of(torch.cuda.current_device())


@cache
def _kernels_of(index: int) -> Kernels | None:
    try:
        return Kernels(Device())
    except EngineError as error:
        warnings.warn(f"the network runs without kernels of its own, and slower: {error}", NdsWarning, stacklevel=2)
        return None
