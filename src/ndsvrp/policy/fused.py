"""The encoder and the GRU of the network with our kernels, for bfloat16 on a GPU: the formulas of `network.py`.

Activations are bfloat16; weights are rounded to it once per call. Two changes affect rounding only: sums over routes,
neighbours and parts of `[h; message]` come after the matrix products, and a bias just before a normalisation is
omitted, because the normalisation cancels it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor
from torch.autograd import Function

from ndsvrp.policy import kernels as gpu_kernels
from ndsvrp.policy.inputs import Inputs
from ndsvrp.policy.kernels import Kernels

if TYPE_CHECKING:
    from ndsvrp.policy.network import Network

Kernel = Callable[..., Any]
MAX_HIDDEN = 2048  # width of a feed-forward layer: eight numbers for each thread of a block


def select_kernels(network: Network, nodes: Tensor) -> Kernels | None:
    """Return the kernels if they can replace torch operations: on a GPU, in bfloat16, for supported sizes."""
    device, width, hidden = nodes.device, network.config.width, network.config.feed_forward
    low = torch.is_autocast_enabled(device.type) and torch.get_autocast_dtype(device.type) == torch.bfloat16
    fits = width % gpu_kernels.BLOCK_CHANNELS == 0 and hidden % 8 == 0 and hidden <= MAX_HIDDEN
    found = gpu_kernels.kernels_for(device) if low and fits else None
    return found if found is not None and found.supports_nodes(nodes.shape[1]) else None


def encode(kernels: Kernels, network: Network, inputs: Inputs, between: Callable[[], None]) -> Tensor:
    """Return the customers' embeddings, (B, N, D) bfloat16; `between` is called before every layer."""
    layers = network.layers
    solution = tuple(part.contiguous() for part in (inputs.previous, inputs.next, inputs.route))
    with torch.autocast(inputs.nodes.device.type, enabled=False):
        embedding = _embedding(network)
        weights = [_weights(layer) for layer in layers]
        rounded = iter(_rounded([embedding, *(weight for some in weights for weight in some)]))
        h = _apply(Product, _embedding_inputs(inputs.nodes), embedding, next(rounded))
        for layer, some in zip(layers, weights, strict=True):
            between()
            pairs = [(weight, next(rounded)) for weight in some]
            skip = int(layer is layers[-1])  # the decoder does not read the depot
            h = _layer(kernels, layer, h, pairs, solution, skip)
        return h if layers else h[:, 1:]


def _layer(
    kernels: Kernels, layer: Any, h: Tensor, weights: list[tuple[Tensor, Tensor]], solution: tuple[Tensor, ...],
    skip: int,
) -> Tensor:  # fmt: skip
    first, *others, inner, bias, outer = weights
    parts = _apply(Product, h, *first)
    if hasattr(layer, "project"):
        out = _attention(kernels, parts, layer.heads)
        h = _apply(Combine, kernels, h, out, *others[0], layer.combine.bias, layer.norm.weight, layer.norm.bias)
        merged, norm = None, layer.norm_after
    else:
        merged = _apply(RouteLayer, *_route_kernels(kernels, layer, solution), parts, layer.merge.bias)
        norm = layer.norm
    last = layer.feed_forward[2].bias
    return _apply(FeedForward, kernels, h, merged, *inner, *bias, *outer, last, norm.weight, norm.bias, skip)


def _route_kernels(kernels: Kernels, layer: Any, solution: tuple[Tensor, ...]) -> tuple[Kernel, Kernel]:
    """Return the kernels of a layer that reads the solution, forward and backward."""
    how: dict[str, Any]
    if hasattr(layer, "mean"):
        how = {"solution": solution, "mean": layer.mean}
        return partial(kernels.tour, **how), partial(kernels.tour_backward, **how)
    how = {"previous": solution[0], "following": solution[1]}
    return partial(kernels.message, **how), partial(kernels.message_backward, **how)


# --- weights ----------------------------------------------------------------------------------


def _weights(layer: Any) -> list[Tensor]:
    """Return the matrices (out, in) of a layer, and the bias before the ReLU."""
    if hasattr(layer, "project"):
        first = [layer.project.weight, layer.combine.weight]
    else:
        own, other = layer.merge.weight.chunk(2, dim=1)
        if hasattr(layer, "neighbour_maps"):  # W3 [h; W1 h_prev + W2 h_next] is three products of h
            first = [torch.cat([own, *(other @ each.weight for each in layer.neighbour_maps)])]
        else:
            first = [torch.cat([own, other])]
    inner, _, outer = layer.feed_forward
    return [*first, inner.weight, inner.bias, outer.weight]


def _rounded(weights: Sequence[Tensor]) -> list[Tensor]:
    """Round to bfloat16 in one cast: a cast for each would take longer than many of the products."""
    flat = torch.cat([weight.detach().reshape(-1) for weight in weights]).bfloat16()
    parts = torch.split(flat, [weight.numel() for weight in weights])
    return [part.view(weight.shape) for part, weight in zip(parts, weights, strict=True)]


def _embedding_inputs(nodes: Tensor) -> Tensor:
    """Return (B, N+1, 2 x (inputs + 1)) bfloat16, padded to a multiple of 8 for the tensor cores.

    Inputs and a 1 stand on the left for the depot, on the right for customers: one product embeds both with biases.
    """
    batch, count, features = nodes.shape
    out = nodes.new_zeros(batch, count, _embedding_width(features), dtype=torch.bfloat16)
    out[:, 0, :features] = nodes[:, 0]
    out[:, 0, features] = 1.0
    out[:, 1:, features + 1 : 2 * features + 1] = nodes[:, 1:]
    out[:, 1:, 2 * features + 1] = 1.0
    return out


def _embedding(network: Network) -> Tensor:
    """Return the weights (D, 2 x (inputs + 1)) for `_embedding_inputs`, padded."""
    depot, customer = network.embed_depot, network.embed_customer
    parts = [depot.weight, depot.bias[:, None], customer.weight, customer.bias[:, None]]
    return F.pad(torch.cat(parts, dim=1), (0, _embedding_width(depot.in_features) - 2 * (depot.in_features + 1)))


def _embedding_width(features: int) -> int:
    return -(-2 * (features + 1) // 8) * 8


def _apply(function: type[Function], *arguments: Any) -> Tensor:
    return function.apply(*arguments)  # type: ignore[no-any-return, no-untyped-call]


# --- layers -----------------------------------------------------------------------------------


def _rows(x: Tensor) -> Tensor:
    return x.reshape(-1, x.shape[-1])


def _weight_gradient(gradient: Tensor, x: Tensor) -> Tensor:
    """Return the gradient (out, in) float32 of W from that of x W^T."""
    return _float_product(_rows(gradient).t(), _rows(x))


def _float_product(left: Tensor, right: Tensor) -> Tensor:
    """Multiply bfloat16 matrices with a float32 result, which torch supports on GPUs only."""
    if left.is_cuda:
        return torch.mm(left, right, out_dtype=torch.float32)
    return left.float() @ right.float()


class Product(Function):
    """x W^T. W is float32; `rounded` is W in bfloat16."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, rounded: Tensor) -> Tensor:
        """(B, N, in) to (B, N, out)."""
        ctx.save_for_backward(x, rounded)
        return F.linear(x, rounded)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        x, rounded = ctx.saved_tensors
        to = gradient @ rounded if ctx.needs_input_grad[0] else None
        return to, _weight_gradient(gradient, x), None


class Combine(Function):
    """Norm(h + W x): the residual connection after the heads x of attention."""

    @staticmethod
    def forward(
        ctx: Any, kernels: Kernels, h: Tensor, x: Tensor, weight: Tensor, rounded: Tensor, bias: Tensor,
        scale: Tensor, shift: Tensor,
    ) -> Tensor:  # fmt: skip
        """(B, N, D) to the same."""
        added = F.linear(x, rounded)
        out, statistics = kernels.norm(h, added, scale, shift)
        ctx.kernels = kernels
        ctx.save_for_backward(h, x, rounded, added, scale, *statistics)
        return out

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        h, x, rounded, added, scale, *statistics = ctx.saved_tensors
        to, to_scale, to_shift = ctx.kernels.norm_backward(gradient.contiguous(), h, added, scale, statistics)
        return (
            None, to, to @ rounded, _weight_gradient(to, x), None, torch.zeros_like(to_shift), to_scale, to_shift,
        )  # fmt: skip


class FeedForward(Function):
    """Norm(h + W' ReLU(W x + b)); x = None stands for x = h, as in attention layers."""

    @staticmethod
    def forward(
        ctx: Any, kernels: Kernels, h: Tensor, x: Tensor | None, weight: Tensor, rounded: Tensor, bias: Tensor,
        rounded_bias: Tensor, last_weight: Tensor, last_rounded: Tensor, last_bias: Tensor, scale: Tensor,
        shift: Tensor, skip: int,
    ) -> Tensor:  # fmt: skip
        """(B, N, D) twice to (B, N - skip, D)."""
        ctx.kernels, ctx.skip, ctx.same = kernels, skip, x is None
        x = h if x is None else x
        hidden = torch._addmm_activation(rounded_bias, _rows(x), rounded.t())
        added = (hidden @ last_rounded.t()).view_as(h)
        out, statistics = kernels.norm(h, added, scale, shift, skip)
        ctx.save_for_backward(h, x, rounded, hidden, last_rounded, added, scale, *statistics)
        return out

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        h, x, rounded, hidden, last_rounded, added, scale, *statistics = ctx.saved_tensors
        to, to_scale, to_shift = ctx.kernels.norm_backward(gradient.contiguous(), h, added, scale, statistics, ctx.skip)
        to_last = _weight_gradient(to, hidden)
        to_hidden = _rows(to) @ last_rounded
        to_bias = ctx.kernels.relu_backward(to_hidden, hidden)
        to_weight = _weight_gradient(to_hidden, x)
        if ctx.same:  # the product adds to the gradient
            _rows(to).addmm_(to_hidden, rounded)
            to_x = None
        else:
            to_x = (to_hidden @ rounded).view_as(x)
        return (
            None, to, to_x, to_weight, None, to_bias, None, to_last, None, torch.zeros_like(to_shift), to_scale,
            to_shift, None,
        )  # fmt: skip


class RouteLayer(Function):
    """Message passing or tour encoding, by a kernel and the kernel of its gradient."""

    @staticmethod
    def forward(ctx: Any, forward: Kernel, backward: Kernel, parts: Tensor, bias: Tensor) -> Tensor:
        """(B, N, 3 D) for messages, (B, N, 2 D) for tours, to (B, N, D)."""
        out: Tensor = forward(parts, bias)
        ctx.backward_kernel = backward
        ctx.save_for_backward(out)
        return out

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        return None, None, *ctx.backward_kernel(gradient.contiguous(), *ctx.saved_tensors)


def _attention(kernels: Kernels, projected: Tensor, heads: int) -> Tensor:
    """(B, N, 3 D) to (B, N, D)."""
    batch, nodes, width = projected.shape[0], projected.shape[1], projected.shape[2] // 3
    gradient = torch.is_grad_enabled() and projected.requires_grad
    if kernels.supports_attention(nodes, width, heads, gradient=gradient):
        return _apply(SelfAttention, kernels, projected, heads)
    parts = projected.view(batch, nodes, 3, heads, width // heads).permute(2, 0, 3, 1, 4)
    return F.scaled_dot_product_attention(*parts).transpose(1, 2).reshape(batch, nodes, width)


class SelfAttention(Function):
    """`Kernels.attention` with its gradient."""

    @staticmethod
    def forward(ctx: Any, kernels: Kernels, projected: Tensor, heads: int) -> Tensor:
        """(B, N, 3 D) to (B, N, D)."""
        out, log_sums = kernels.attention(projected, heads)
        ctx.kernels, ctx.heads = kernels, heads
        ctx.save_for_backward(projected, out, log_sums)
        return out

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        return None, ctx.kernels.attention_backward(gradient.contiguous(), *ctx.saved_tensors, ctx.heads), None


# --- decoder ----------------------------------------------------------------------------------


class Scores(Function):
    """Glimpses (B, Q, D) times pointers (B, D, N), which lie in memory as (B, N, D).

    The gradient of the pointers has the same layout, so it is never transposed in memory.
    """

    @staticmethod
    def forward(ctx: Any, glimpses: Tensor, pointers: Tensor) -> Tensor:
        """(B, Q, N)."""
        ctx.save_for_backward(glimpses, pointers)
        return torch.bmm(glimpses, pointers)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        glimpses, pointers = ctx.saved_tensors
        to_pointers = torch.bmm(gradient.transpose(1, 2), glimpses).transpose(1, 2)
        return torch.bmm(gradient, pointers.transpose(1, 2)), to_pointers


def scores(glimpses: Tensor, pointers: Tensor) -> Tensor:
    """Return the scores (B, Q, N) of a network in bfloat16."""
    return _apply(Scores, glimpses.to(pointers.dtype), pointers)


def gru_states(kernels: Kernels, network: Network, h: Tensor, chosen: Tensor) -> Tensor:
    """Return the GRU states (B, R, M, D) before each selection of chosen (B, R, M)."""
    batch, rollouts, steps = chosen.shape
    width = h.shape[2]
    index = chosen[:, :, :-1].flatten(1)[..., None].expand(-1, -1, width)
    picked = h.gather(1, index).view(batch * rollouts, steps - 1, width).transpose(0, 1)
    inputs = torch.cat([network.start.to(h.dtype).expand(1, batch * rollouts, -1), picked])
    hidden = network.gru_hidden
    out = _apply(Gru, kernels, network.gru_input(inputs), hidden.weight, hidden.bias)
    return out.transpose(0, 1).reshape(batch, rollouts, steps, width)


class Gru(Function):
    """All steps of the GRU: from W x + b of the inputs (M, rows, 3 D) to states (M, rows, D)."""

    @staticmethod
    def forward(ctx: Any, kernels: Kernels, inputs: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        """weight, bias: of the hidden state, float32."""
        steps, rows, width = inputs.shape[0], inputs.shape[1], inputs.shape[2] // 3
        rounded, bias = weight.to(inputs.dtype), bias.to(inputs.dtype)
        states = inputs.new_zeros(steps + 1, rows, width)
        hidden = torch.empty_like(inputs)
        for m in range(steps):
            torch.addmm(bias, states[m], rounded.t(), out=hidden[m])
            kernels.gru(inputs[m], hidden[m], states[m], states[m + 1])
        ctx.kernels = kernels
        ctx.save_for_backward(inputs, hidden, states, rounded)
        return states[1:]

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        inputs, hidden, states, rounded = ctx.saved_tensors
        gradient = gradient.contiguous()
        to_inputs, to_hidden = torch.empty_like(inputs), torch.empty_like(hidden)
        direct = torch.zeros(gradient.shape[1:], dtype=torch.float32, device=gradient.device)
        through = torch.zeros_like(direct)
        for m in reversed(range(len(inputs))):
            arguments = (inputs[m], hidden[m], states[m], gradient[m], through, direct, to_inputs[m], to_hidden[m])
            ctx.kernels.gru_backward(*arguments)
            through = _float_product(to_hidden[m], rounded) if m else through
        return None, to_inputs, _weight_gradient(to_hidden, states[:-1]), _rows(to_hidden).float().sum(dim=0)
