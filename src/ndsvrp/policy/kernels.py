"""Kernels of the network (native/cuda): what stands between its matrix products on a GPU, forward and backward.

Activations are bfloat16, sums are float32. tests/gpu/network_cases.py has the plain formula of each kernel.
Shapes: B instances, N nodes (the depot is 0), D the width, F any width.
"""

import warnings
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ndsvrp.engine.device import Device
from ndsvrp.errors import EngineError, NdsWarning

THREADS = 256
BLOCK_CHANNELS = 32  # kBlockChannels of bf16.hpp
SUM_BYTES = (THREADS // 32 + 1) * 3 * BLOCK_CHANNELS * 4  # kSumBytes of bf16.hpp
MAX_KEPT_BYTES = 100_000  # of shared memory, so that two blocks still share a multiprocessor
HEAD = 16  # channels of a head in our attention
MAX_GRADIENT_NODES = 1536  # whose attention gradient fits into shared memory
STAGED_NODES = 1024  # of attention, in shared memory at once
Pair = tuple[Tensor, Tensor]


class Kernels:
    """The kernels on a device."""

    def __init__(self, device: Device) -> None:
        self.device = device

    def norm(self, x: Tensor, y: Tensor, weight: Tensor, bias: Tensor, skip: int = 0) -> tuple[Tensor, Pair]:
        """Return the instance normalisation of x + y, both (B, N, D), without the first `skip` nodes.

        Also return the statistics that `norm_backward` needs.
        """
        batch, nodes, width = x.shape
        out = x.new_empty(batch, nodes - skip, width)
        statistics = (weight.new_empty(batch, width), weight.new_empty(batch, width))
        arguments = (x, y, weight, bias, out, *statistics, nodes, width, skip)
        self._launch_keeping("normalization", "norm_forward", x, nodes * BLOCK_CHANNELS * 4, *arguments)
        return out, statistics

    def norm_backward(
        self, gradient: Tensor, x: Tensor, y: Tensor, weight: Tensor, statistics: Pair, skip: int = 0
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return the gradients of x (that of y is the same), weight and bias."""
        batch, nodes, width = x.shape
        out, parts = torch.empty_like(x), weight.new_empty(2, batch, width)
        arguments = (gradient, x, y, weight, *statistics, out, parts, batch, nodes, width, skip)
        self._launch_keeping("normalization", "norm_backward", x, nodes * BLOCK_CHANNELS * 6, *arguments)
        weight_gradient, bias_gradient = parts.sum(dim=1)
        return out, weight_gradient, bias_gradient

    def relu_backward(self, gradient: Tensor, result: Tensor) -> Tensor:
        """Set the gradient (rows, F) to 0 where the ReLU's result is 0. Return its sum over rows, (F,)."""
        rows, width = result.shape
        lanes = width // 8
        threads = THREADS // lanes * lanes
        blocks = min(4 * self.device.multiprocessors, -(-rows * lanes // threads))
        parts = gradient.new_empty(blocks, width, dtype=torch.float32)
        arguments = (gradient, result, parts, rows, width)
        self._launch("pointwise", "relu_backward", blocks, threads, threads * 8 * 4, *arguments)
        return parts.sum(dim=0)

    def message(self, parts: Tensor, bias: Tensor, previous: Tensor, following: Tensor) -> Tensor:
        """Return ReLU(own part + bias + parts of the previous and of the next node), from parts (B, N, 3 D)."""
        batch, nodes, width = parts.shape[0], parts.shape[1], parts.shape[2] // 3
        out = parts.new_empty(batch, nodes, width)
        blocks = -(-out.numel() // (8 * THREADS))
        arguments = (parts, bias, previous, following, out, batch * nodes, nodes, width)
        self._launch("route_layers", "message_forward", blocks, THREADS, 0, *arguments)
        return out

    def message_backward(self, gradient: Tensor, result: Tensor, previous: Tensor, following: Tensor) -> Pair:
        """Return the gradients of parts and bias. `following` must be the inverse of `previous`."""
        batch, nodes, width = result.shape
        out, sums = result.new_empty(batch, nodes, 3 * width), result.new_empty(batch, width, dtype=torch.float32)
        arguments = (gradient, result, previous, following, out, sums, nodes, width)
        self._launch_keeping("route_layers", "message_backward", result, nodes * BLOCK_CHANNELS * 2, *arguments)
        return out, sums.sum(dim=0)

    def tour(self, parts: Tensor, bias: Tensor, solution: tuple[Tensor, ...], *, mean: bool) -> Tensor:
        """Return ReLU(own part + bias + mean or sum over the route), from parts (B, N, 2 D).

        solution: previous, next, route.
        """
        batch, nodes, width = parts.shape[0], parts.shape[1], parts.shape[2] // 2
        out = parts.new_empty(batch, nodes, width)
        self._launch_tour("tour_forward", out, parts, bias, *solution, out, nodes, width, int(mean))
        return out

    def tour_backward(self, gradient: Tensor, result: Tensor, solution: tuple[Tensor, ...], *, mean: bool) -> Pair:
        """Return the gradients of parts and bias."""
        batch, nodes, width = result.shape
        out, sums = result.new_empty(batch, nodes, 2 * width), result.new_empty(batch, width, dtype=torch.float32)
        self._launch_tour("tour_backward", result, gradient, result, *solution, out, sums, nodes, width, int(mean))
        return out, sums.sum(dim=0)

    def supports_nodes(self, nodes: int) -> bool:
        """Return whether the layers work for N nodes: `tour` needs the most shared memory."""
        return SUM_BYTES + _tour_bytes(nodes) <= self.device.shared_limit

    def supports_attention(self, nodes: int, width: int, heads: int, *, gradient: bool) -> bool:
        """Return whether `attention` works for this shape, and `attention_backward` if a gradient is needed."""
        most = min(MAX_GRADIENT_NODES, self.device.shared_limit // 136 // 64 * 64)
        return width == heads * HEAD and (nodes <= most or not gradient)

    def attention(self, projected: Tensor, heads: int) -> Pair:
        """Return self-attention (B, N, D) of queries, keys and values side by side, (B, N, 3 D).

        Also return log-sums of exponentials (B, heads, N), which `attention_backward` needs.
        """
        batch, nodes, width = projected.shape[0], projected.shape[1], projected.shape[2] // 3
        out = projected.new_empty(batch, nodes, width)
        log_sums = projected.new_empty(batch, heads, nodes, dtype=torch.float32)
        units = -(-nodes // 32)
        rounds = 2 if nodes <= STAGED_NODES else 1  # keys that are staged once serve two rounds of queries
        parts = max(-(-units // (8 * rounds)), min(-(-units // 8), 2 * self.device.multiprocessors // (batch * heads)))
        staged = min(_round_up(nodes), STAGED_NODES)
        arguments = (projected, out, log_sums, nodes, width, heads, parts, staged)
        shared = 64 * staged + 16
        self._launch("attention", "attention_forward", batch * heads * parts, THREADS, shared, *arguments)
        return out, log_sums

    def attention_backward(
        self, gradient: Tensor, projected: Tensor, out: Tensor, log_sums: Tensor, heads: int
    ) -> Tensor:
        """Return the gradient of queries, keys and values, (B, N, 3 D)."""
        batch, nodes, width = out.shape
        to = torch.empty_like(projected)
        arguments = (projected, out, log_sums, gradient, to, nodes, width, heads)
        self._launch("attention", "attention_backward", batch * heads, THREADS, 136 * _round_up(nodes), *arguments)
        return to

    def gru(self, inputs: Tensor, hidden: Tensor, before: Tensor, after: Tensor) -> None:
        """Write the GRU step from state `before` to `after`, (rows, D).

        inputs, hidden: W x + b of the input and of the state, (rows, 3 D).
        """
        rows, width = before.shape
        blocks = -(-rows * width // THREADS)
        self._launch("pointwise", "gru_forward", blocks, THREADS, 0, inputs, hidden, before, after, rows, width)

    def gru_backward(
        self, inputs: Tensor, hidden: Tensor, before: Tensor, gradient: Tensor, through: Tensor, direct: Tensor,
        to_inputs: Tensor, to_hidden: Tensor,
    ) -> None:  # fmt: skip
        """Write the gradients of `gru` to `to_inputs` and `to_hidden`.

        through, direct: (rows, D) float32, from the next step through its gates and past them; `direct` is
        overwritten by that of this step.
        """
        rows, width = before.shape
        arguments = (inputs, hidden, before, gradient, through, direct, to_inputs, to_hidden, rows, width)
        self._launch("pointwise", "gru_backward", -(-rows * width // THREADS), THREADS, 0, *arguments)

    def _launch_keeping(self, file: str, name: str, shape_of: Tensor, kept: int, *arguments: Any) -> None:
        """Launch a block per instance and channels, with `kept` bytes in shared memory if these fit."""
        fits = kept <= min(MAX_KEPT_BYTES, self.device.shared_limit - SUM_BYTES)
        shared = SUM_BYTES + (kept if fits else 0)
        self._launch(file, name, _blocks(shape_of), THREADS, shared, *arguments, int(fits))

    def _launch_tour(self, name: str, shape_of: Tensor, *arguments: Any) -> None:
        shared = SUM_BYTES + _tour_bytes(shape_of.shape[1])
        self._launch("route_layers", name, _blocks(shape_of), THREADS, shared, *arguments)

    def _launch(self, file: str, name: str, blocks: int, threads: int, shared: int, *arguments: Any) -> None:
        numbers = (np.int32(a) if isinstance(a, int) else a for a in arguments)
        self.device.launch(self.device.kernel(file, name, ()), blocks, threads, shared, *numbers)


def _blocks(of: Tensor) -> int:
    return of.shape[0] * (of.shape[2] // BLOCK_CHANNELS)


def _tour_bytes(nodes: int) -> int:
    return 4 * (2 * nodes + 1)


def _round_up(nodes: int) -> int:
    return -(-nodes // 64) * 64


def kernels_for(device: torch.device) -> Kernels | None:
    """Return the kernels of a GPU; None on a CPU, and with a warning where they cannot be compiled."""
    return _kernels_of(torch.cuda.current_device()) if device.type == "cuda" else None


@cache
def _kernels_of(index: int) -> Kernels | None:
    try:
        return Kernels(Device())
    except EngineError as error:
        warnings.warn(f"the network runs without kernels of its own, and slower: {error}", NdsWarning, stacklevel=2)
        return None
