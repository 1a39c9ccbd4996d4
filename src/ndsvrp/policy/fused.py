"""The encoder and the GRU of the network by kernels of our own, for a GPU and bfloat16: the formulas of `network.py`,
with as few passes over memory as they allow.

Activations stay in bfloat16, weights are rounded to it once per call. Two things are done in another order, which
changes rounding alone: sums over routes, neighbours and parts of `[h; message]` are taken after the products they are
linear in; and what is added to all nodes alike just before a normalisation (a bias) is left out, for it is gone after.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor
from torch.autograd import Function

from ndsvrp.policy import kernels
from ndsvrp.policy.inputs import Inputs
from ndsvrp.policy.kernels import Kernels

if TYPE_CHECKING:
    from ndsvrp.policy.network import Attention, MessagePassing, Network, TourEncoding

Kernel = Callable[..., Any]
MOST_HIDDEN = 2048  # width of a feed-forward part: eight numbers for each thread of a block


def select_kernels(network: Network, nodes: Tensor) -> Kernels | None:
    """The kernels, where they can stand in for plain operations: on a GPU, in bfloat16, for widths they know."""
    config, device = network.config, nodes.device
    low = torch.is_autocast_enabled(device.type) and torch.get_autocast_dtype(device.type) == torch.bfloat16
    fits = config.width % kernels.SLICE == 0 and config.feed_forward % 8 == 0 and config.feed_forward <= MOST_HIDDEN
    make = kernels.kernels_for(device) if low and fits else None
    return make if make is not None and make.reads(nodes.shape[1]) else None


def encode(make: Kernels, network: Network, inputs: Inputs, between: Callable[[], None]) -> Tensor:
    """(B, N, D) bfloat16: the customers in their solution."""
    with torch.autocast(inputs.nodes.device.type, enabled=False):
        return _encode(make, network, inputs, between)


def _encode(make: Kernels, network: Network, inputs: Inputs, between: Callable[[], None]) -> Tensor:
    readers: list[Any] = [network.message_passing, network.tour_encoding]
    if network.config.tour_first:
        readers.reverse()
    layers = [*network.before, *(reader for reader in readers if reader is not None), *network.after]
    solution = tuple(part.contiguous() for part in (inputs.previous, inputs.next, inputs.route))
    embedding = _embedding(network)
    weights = [_weights(layer) for layer in layers]
    rounded = iter(_rounded([embedding, *(weight for some in weights for weight in some)]))
    h = _apply(Product, _embedded(inputs.nodes), embedding, next(rounded))
    for layer, some in zip(layers, weights, strict=True):
        between()
        pairs = [(weight, next(rounded)) for weight in some]
        skip = int(layer is layers[-1])  # the decoder does not ask for the depot
        h = _layer(make, layer, h, pairs, solution, skip)
    return h if layers else h[:, 1:]


def _layer(
    make: Kernels, layer: Any, h: Tensor, weights: list[tuple[Tensor, Tensor]], solution: tuple[Tensor, ...], skip: int
) -> Tensor:
    first, *others, inner, bias, outer = weights
    parts = _apply(Product, h, *first)
    if hasattr(layer, "project"):
        attention: Attention = layer
        heard = _attention(make, parts, attention.heads)
        h = _apply(
            Combine, make, h, heard, *others[0], attention.combine.bias, attention.norm.weight, attention.norm.bias
        )
        merged, norm = None, attention.norm_after
    else:
        reader: MessagePassing | TourEncoding = layer
        merged, norm = _apply(Reading, *_reading(make, reader, solution), parts, reader.merge.bias), reader.norm
    last = layer.feed_forward[2].bias
    return _apply(FeedForward, make, h, merged, *inner, *bias, *outer, last, norm.weight, norm.bias, skip)


def _reading(make: Kernels, reader: Any, solution: tuple[Tensor, ...]) -> tuple[Kernel, Kernel]:
    """The kernels by which a layer reads solutions, there and back."""
    how: dict[str, Any]
    if hasattr(reader, "mean"):
        how = {"solution": solution, "mean": reader.mean}
        return partial(make.tour, **how), partial(make.tour_backward, **how)
    how = {"previous": solution[0], "following": solution[1]}
    return partial(make.message, **how), partial(make.message_backward, **how)


# --- weights ----------------------------------------------------------------------------------


def _weights(layer: Any) -> list[Tensor]:
    """What a layer's products read: matrices (out, in), and the bias before the ReLU."""
    if hasattr(layer, "project"):
        first = [layer.project.weight, layer.combine.weight]
    else:
        own, heard = layer.merge.weight.chunk(2, dim=1)
        if hasattr(layer, "from_next"):  # W3 [h; W1 h_prev + W2 h_next] is three products of h
            first = [torch.cat([own, heard @ layer.from_previous.weight, heard @ layer.from_next.weight])]
        else:
            first = [torch.cat([own, heard])]
    inner, _, outer = layer.feed_forward
    return [*first, inner.weight, inner.bias, outer.weight]


def _rounded(weights: Sequence[Tensor]) -> list[Tensor]:
    """In bfloat16, all at once: a cast for each would take longer than many of the products."""
    flat = torch.cat([weight.detach().reshape(-1) for weight in weights]).bfloat16()
    parts = torch.split(flat, [weight.numel() for weight in weights])
    return [part.view(weight.shape) for part, weight in zip(parts, weights, strict=True)]


def _embedded(nodes: Tensor) -> Tensor:
    """(B, N+1, 2 x (inputs + 1)) bfloat16: inputs and a 1, on the left for the depot, on the right for customers, so
    that one product embeds both, biases included. Filled up to a multiple of 8, as tensor cores like it."""
    batch, count, features = nodes.shape
    out = nodes.new_zeros(batch, count, _embedding_width(features), dtype=torch.bfloat16)
    out[:, 0, :features] = nodes[:, 0]
    out[:, 0, features] = 1.0
    out[:, 1:, features + 1 : 2 * features + 1] = nodes[:, 1:]
    out[:, 1:, 2 * features + 1] = 1.0
    return out


def _embedding(network: Network) -> Tensor:
    """(D, 2 x (inputs + 1)), filled up, to go with `_embedded`."""
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


def _slope(gradient: Tensor, of: Tensor) -> Tensor:
    """(out, in) float32: the gradient of a matrix, from that of its products and what it was multiplied with."""
    return _wide_product(_rows(gradient).t(), _rows(of))


def _wide_product(left: Tensor, right: Tensor) -> Tensor:
    """Of bfloat16, in float32; CPUs do not have it."""
    if left.is_cuda:
        return torch.mm(left, right, out_dtype=torch.float32)
    return left.float() @ right.float()


class Product(Function):
    """x W^T. W is float32, given beside it as rounded."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, rounded: Tensor) -> Tensor:
        """(B, N, in) to (B, N, out)."""
        ctx.save_for_backward(x, rounded)
        return F.linear(x, rounded)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        """Gradients of x and W."""
        x, rounded = ctx.saved_tensors
        to = gradient @ rounded if ctx.needs_input_grad[0] else None
        return to, _slope(gradient, x), None


class Combine(Function):
    """Norm(h + W heard): the residual part of an attention layer."""

    @staticmethod
    def forward(
        ctx: Any, make: Kernels, h: Tensor, heard: Tensor, weight: Tensor, rounded: Tensor, bias: Tensor,
        scale: Tensor, shift: Tensor,
    ) -> Tensor:  # fmt: skip
        """(B, N, D) to the same."""
        added = F.linear(heard, rounded)
        out, statistics = make.norm(h, added, scale, shift)
        ctx.make = make
        ctx.save_for_backward(h, heard, rounded, added, scale, *statistics)
        return out

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        """Gradients of the tensors above."""
        h, heard, rounded, added, scale, *statistics = ctx.saved_tensors
        to, to_scale, to_shift = ctx.make.norm_backward(gradient.contiguous(), h, added, scale, statistics)
        return (
            None, to, to @ rounded, _slope(to, heard), None, torch.zeros_like(to_shift), to_scale, to_shift,
        )  # fmt: skip


class FeedForward(Function):
    """Norm(h + W' ReLU(W x + b)), where x is h itself if it is None, as in attention layers."""

    @staticmethod
    def forward(
        ctx: Any, make: Kernels, h: Tensor, x: Tensor | None, weight: Tensor, rounded: Tensor, bias: Tensor,
        rounded_bias: Tensor, last_weight: Tensor, last_rounded: Tensor, last_bias: Tensor, scale: Tensor,
        shift: Tensor, skip: int,
    ) -> Tensor:  # fmt: skip
        """(B, N, D) twice to (B, N - skip, D)."""
        ctx.make, ctx.skip, ctx.same = make, skip, x is None
        x = h if x is None else x
        hidden = torch._addmm_activation(rounded_bias, _rows(x), rounded.t())
        added = (hidden @ last_rounded.t()).view_as(h)
        out, statistics = make.norm(h, added, scale, shift, skip)
        ctx.save_for_backward(h, x, rounded, hidden, last_rounded, added, scale, *statistics)
        return out

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        """Gradients of the tensors above."""
        h, x, rounded, hidden, last_rounded, added, scale, *statistics = ctx.saved_tensors
        to, to_scale, to_shift = ctx.make.norm_backward(gradient.contiguous(), h, added, scale, statistics, ctx.skip)
        to_last = _slope(to, hidden)
        to_hidden = _rows(to) @ last_rounded
        to_bias = ctx.make.relu_backward(to_hidden, hidden)
        to_weight = _slope(to_hidden, x)
        if ctx.same:  # added up by the product itself
            _rows(to).addmm_(to_hidden, rounded)
            to_x = None
        else:
            to_x = (to_hidden @ rounded).view_as(x)
        return (
            None, to, to_x, to_weight, None, to_bias, None, to_last, None, torch.zeros_like(to_shift), to_scale,
            to_shift, None,
        )  # fmt: skip


class Reading(Function):
    """What a customer makes of itself and of others in its solution: a kernel, and the one that goes back."""

    @staticmethod
    def forward(ctx: Any, read: Kernel, go_back: Kernel, parts: Tensor, bias: Tensor) -> Tensor:
        """(B, N, 3 D) with neighbours, (B, N, 2 D) with a route, to (B, N, D)."""
        out: Tensor = read(parts, bias)
        ctx.go_back = go_back
        ctx.save_for_backward(out)
        return out

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        """Gradients of the tensors above."""
        return None, None, *ctx.go_back(gradient.contiguous(), *ctx.saved_tensors)


def _attention(make: Kernels, projected: Tensor, heads: int) -> Tensor:
    """(B, N, 3 D) to (B, N, D)."""
    batch, nodes, width = projected.shape[0], projected.shape[1], projected.shape[2] // 3
    gradient = torch.is_grad_enabled() and projected.requires_grad
    if make.attends(nodes, width, heads, gradient=gradient):
        return _apply(SelfAttention, make, projected, heads)
    parts = projected.view(batch, nodes, 3, heads, width // heads).permute(2, 0, 3, 1, 4)
    return F.scaled_dot_product_attention(*parts).transpose(1, 2).reshape(batch, nodes, width)


class SelfAttention(Function):
    """`kernels.attention`."""

    @staticmethod
    def forward(ctx: Any, make: Kernels, projected: Tensor, heads: int) -> Tensor:
        """(B, N, 3 D) to (B, N, D)."""
        out, logarithms = make.attention(projected, heads)
        ctx.make, ctx.heads = make, heads
        ctx.save_for_backward(projected, out, logarithms)
        return out

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        """Gradient of queries, keys and values."""
        return None, ctx.make.attention_backward(gradient.contiguous(), *ctx.saved_tensors, ctx.heads), None


# --- decoder ----------------------------------------------------------------------------------


class Scores(Function):
    """Glimpses (B, Q, D) times pointers (B, D, N), which lie in memory as (B, N, D), and so does their gradient here:
    nobody has to turn it round."""

    @staticmethod
    def forward(ctx: Any, glimpses: Tensor, pointers: Tensor) -> Tensor:
        """(B, Q, N)."""
        ctx.save_for_backward(glimpses, pointers)
        return torch.bmm(glimpses, pointers)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        """Gradients of both."""
        glimpses, pointers = ctx.saved_tensors
        to_pointers = torch.bmm(gradient.transpose(1, 2), glimpses).transpose(1, 2)
        return torch.bmm(gradient, pointers.transpose(1, 2)), to_pointers


def scores(glimpses: Tensor, pointers: Tensor) -> Tensor:
    """`Scores` of a network in bfloat16."""
    return _apply(Scores, glimpses.to(pointers.dtype), pointers)


# --- GRU --------------------------------------------------------------------------------------


def states(make: Kernels, network: Network, h: Tensor, chosen: Tensor) -> Tensor:
    """(B, R, M, D) of the GRU before each selection of chosen (B, R, M). Only customers that are fed have gates."""
    batch, rollouts, steps = chosen.shape
    width = h.shape[2]
    index = chosen[:, :, :-1].flatten(1)[..., None].expand(-1, -1, width)
    picked = h.gather(1, index).view(batch * rollouts, steps - 1, width).transpose(0, 1)
    fed = torch.cat([network.start.to(h.dtype).expand(1, batch * rollouts, -1), picked])
    hidden = network.gru_hidden
    out = _apply(Gru, make, network.gru_input(fed), hidden.weight, hidden.bias)
    return out.transpose(0, 1).reshape(batch, rollouts, steps, width)


class Gru(Function):
    """All steps of the GRU, from what is fed at each: (M, rows, 3 D) to states (M, rows, D)."""

    @staticmethod
    def forward(ctx: Any, make: Kernels, fed: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        """weight, bias: of the hidden state, float32."""
        steps, rows, width = fed.shape[0], fed.shape[1], fed.shape[2] // 3
        rounded, bias = weight.to(fed.dtype), bias.to(fed.dtype)
        states = fed.new_zeros(steps + 1, rows, width)
        hidden = torch.empty_like(fed)
        for m in range(steps):
            torch.addmm(bias, states[m], rounded.t(), out=hidden[m])
            make.gru(fed[m], hidden[m], states[m], states[m + 1])
        ctx.make = make
        ctx.save_for_backward(fed, hidden, states, rounded)
        return states[1:]

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        """Gradients of the tensors above."""
        fed, hidden, states, rounded = ctx.saved_tensors
        gradient = gradient.contiguous()
        to_fed, to_hidden = torch.empty_like(fed), torch.empty_like(hidden)
        direct = torch.zeros(gradient.shape[1:], dtype=torch.float32, device=gradient.device)
        through = torch.zeros_like(direct)
        for m in reversed(range(len(fed))):
            ctx.make.gru_backward(fed[m], hidden[m], states[m], gradient[m], through, direct, to_fed[m], to_hidden[m])
            through = _wide_product(to_hidden[m], rounded) if m else through
        return None, to_fed, _slope(to_hidden, states[:-1]), _rows(to_hidden).float().sum(dim=0)
