"""Kernels of the network against plain formulas in float32, forward and backward; on a GPU or in the emulator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from ndsvrp.policy import Network, NetworkConfig, fused
from ndsvrp.policy.inputs import Inputs, input_names
from ndsvrp.policy.kernels import Kernels

SOLUTIONS = ("routes", "unserved", "one")


def solution(batch: int, nodes: int, kind: str, device: str, seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    """Return previous, next, route.

    routes: of 1 to 9 customers, a tenth unserved; unserved: all unserved; one: one route of all customers.
    """
    random = np.random.default_rng(seed)
    previous, following, route = (np.zeros((batch, nodes), np.int64) for _ in range(3))
    route -= 1
    for b in range(batch):
        left = list(random.permutation(np.arange(1, nodes)))
        left = {"routes": left[len(left) // 10 :], "unserved": [], "one": left}[kind]
        for r in range(nodes):
            size = len(left) if kind == "one" else int(random.integers(1, 10))
            tour, left = [0, *left[:size], 0], left[size:]
            for before, after in pairwise(tour):
                previous[b, after], following[b, before] = before, after
            route[b, tour[1:-1]] = r
        previous[b, 0] = following[b, 0] = 0
    first, second, third = (torch.from_numpy(part).to(device) for part in (previous, following, route))
    return first, second, third


class Case:
    """Random inputs and comparisons on one device."""

    def __init__(self, kernels: Kernels, device: str, seed: int = 1) -> None:
        self.kernels, self.device = kernels, device
        self.random = torch.Generator().manual_seed(seed)

    def normal(self, *shape: int, mean: float = 0.0, low: bool = True) -> Tensor:
        values = torch.randn(*shape, generator=self.random) + mean
        return (values.bfloat16() if low else values).to(self.device)

    def slopes(self, formula: Callable[..., Tensor], gradient: Tensor, *inputs: Tensor) -> tuple[Tensor, list[Tensor]]:
        """Return the result of a formula in float32, and its gradients."""
        leaves = [part.detach().float().requires_grad_() for part in inputs]
        out = formula(*leaves)
        return out.detach(), list(torch.autograd.grad(out, leaves, gradient.float()))

    # --- kernels -----------------------------------------------------------------------------

    def norm(self, batch: int, nodes: int, width: int, skip: int) -> None:
        x, y = self.normal(batch, nodes, width, mean=3.0), self.normal(batch, nodes, width)
        weight, bias = self.normal(width, low=False), self.normal(width, low=False)
        weight[0] = 0.0
        gradient = self.normal(batch, nodes - skip, width)

        def formula(x: Tensor, y: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
            variance, mean = torch.var_mean(x + y, dim=1, keepdim=True, correction=0)
            return (((x + y - mean) * torch.rsqrt(variance + 1e-5)) * weight + bias)[:, skip:]

        expected, (to_x, to_y, to_weight, to_bias) = self.slopes(formula, gradient, x, y, weight, bias)
        out, statistics = self.kernels.norm(x, y, weight, bias, skip)
        ours = self.kernels.norm_backward(gradient, x, y, weight, statistics, skip)
        near(out, expected, 2**-7)
        assert torch.equal(to_x, to_y)
        if nodes > 1:
            near(ours[0], to_x, 2**-7)
        near(ours[1], to_weight, 2e-3)
        near(ours[2], to_bias, 1e-5)

    def relu(self, rows: int, width: int) -> None:
        result, gradient = self.normal(rows, width).relu(), self.normal(rows, width)
        expected = gradient.float() * (result > 0)
        sums = self.kernels.relu_backward(gradient, result)
        assert torch.equal(gradient.float(), expected)
        near(sums, expected.sum(dim=0), 1e-5)

    def message(self, batch: int, nodes: int, width: int, kind: str) -> None:
        previous, following, _ = solution(batch, nodes, kind, self.device)
        parts, bias = self.normal(batch, nodes, 3 * width), self.normal(width, low=False)
        gradient = self.normal(batch, nodes, width)

        def formula(parts: Tensor, bias: Tensor) -> Tensor:
            own, before, after = parts.chunk(3, dim=-1)
            return F.relu(own + bias + rows_at(before, previous) + rows_at(after, following))

        expected, slopes = self.slopes(formula, gradient, parts, bias)
        out = self.kernels.message(parts, bias, previous, following)
        near(out, expected, 2**-7)
        for ours, theirs in zip(self.kernels.message_backward(gradient, out, previous, following), slopes, strict=True):
            near(ours, theirs, 2**-7)

    def tour(self, batch: int, nodes: int, width: int, kind: str, mean: bool) -> None:
        steps = solution(batch, nodes, kind, self.device)
        parts, bias = self.normal(batch, nodes, 2 * width), self.normal(width, low=False)
        gradient = self.normal(batch, nodes, width)
        together = (steps[2][:, :, None] == steps[2][:, None]) & (steps[2] >= 0)[:, None]  # (B, N, N) in one route
        share = together.float()
        if mean:
            share = share / share.sum(dim=2, keepdim=True).clamp(min=1.0)

        def formula(parts: Tensor, bias: Tensor) -> Tensor:
            own, other = parts.chunk(2, dim=-1)
            return F.relu(own + bias + share @ other)

        expected, slopes = self.slopes(formula, gradient, parts, bias)
        out = self.kernels.tour(parts, bias, steps, mean=mean)
        near(out, expected, 2**-7)
        for ours, theirs in zip(self.kernels.tour_backward(gradient, out, steps, mean=mean), slopes, strict=True):
            near(ours, theirs, 2**-7)

    def attention(self, batch: int, nodes: int, heads: int, spread: float = 1.0, *, gradient: bool = True) -> None:
        width = 16 * heads
        projected = self.normal(batch, nodes, 3 * width, low=False)
        projected[..., : 2 * width] *= spread  # how unequal the attention weights are
        projected = projected.bfloat16()
        slopes = self.normal(batch, nodes, width)

        def formula(projected: Tensor) -> Tensor:
            parts = projected.view(batch, nodes, 3, heads, 16).permute(2, 0, 3, 1, 4)
            probabilities = torch.softmax(parts[0] @ parts[1].transpose(-1, -2) / 4.0, dim=-1)
            return (probabilities @ parts[2]).transpose(1, 2).reshape(batch, nodes, width)

        expected, (slope,) = self.slopes(formula, slopes, projected)
        assert self.kernels.supports_attention(nodes, width, heads, gradient=gradient)
        out, logarithms = self.kernels.attention(projected, heads)
        # Attention weights and results are rounded to 2^-9; a few of many numbers have several such errors.
        assert far([out], [expected]) < 2**-8
        near(out, expected, 0.015)
        if gradient:
            ours = self.kernels.attention_backward(slopes, projected, out, logarithms, heads)
            assert far([ours], [slope]) < 0.01
            near(ours, slope, 0.03 if spread == 1.0 else 0.1)  # weights near 1: differences of rounded numbers

    def gru(self, steps: int, rows: int, width: int) -> None:
        fed, weight = self.normal(steps, rows, 3 * width), self.normal(3 * width, width, low=False) / width**0.5
        bias, gradient = self.normal(3 * width, low=False), self.normal(steps, rows, width)

        def formula(fed: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
            hidden, states = fed.new_zeros(rows, width), []
            for gates in fed:
                reset, update, new = gates.chunk(3, dim=-1)
                hidden_reset, hidden_update, hidden_new = F.linear(hidden, weight, bias).chunk(3, dim=-1)
                keep = torch.sigmoid(update + hidden_update)
                fresh = torch.tanh(new + torch.sigmoid(reset + hidden_reset) * hidden_new)
                hidden = fresh + keep * (hidden - fresh)
                states.append(hidden)
            return torch.stack(states)

        expected, slopes = self.slopes(formula, gradient, fed, weight, bias)
        leaves = [part.clone().requires_grad_() for part in (fed, weight, bias)]
        out = fused.Gru.apply(self.kernels, *leaves)  # type: ignore[no-untyped-call]
        near(out.detach(), expected, 2**-5)
        for ours, theirs in zip(torch.autograd.grad(out, leaves, gradient), slopes, strict=True):
            near(ours, theirs, 2**-4)

    # --- the network -------------------------------------------------------------------------

    def inputs(self, batch: int, nodes: int, kind: str = "routes") -> Inputs:
        numbers = torch.rand(batch, nodes, len(input_names()), generator=self.random).to(self.device)
        previous, following, route = solution(batch, nodes, kind, self.device)
        return Inputs(numbers, None, previous, following, route)

    def network(self, config: NetworkConfig) -> Network:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(5)
            network = Network(config)
            with torch.no_grad():
                for weight in network.parameters():
                    weight += 0.1 * torch.randn(weight.shape)
        return network.to(self.device)

    def results(
        self, network: Network, inputs: Inputs, removed: Tensor, seeds: Tensor, *, low: bool
    ) -> dict[str, list[Tensor]]:
        """Return results of the network by name, with the gradients of all weights; low: in bfloat16."""
        network.zero_grad()
        with torch.autocast(self.device, torch.bfloat16, enabled=low, cache_enabled=False):
            with torch.no_grad():
                memory = network.encode(inputs)
            probabilities = network(inputs, removed, seeds)
        probabilities.sum().backward()  # type: ignore[no-untyped-call]
        found = {name: [getattr(memory, name)] for name in ("keys", "values", "pointers", "gates", "first_gates")}
        found["probabilities"] = [probabilities.detach()]
        for name, weight in network.named_parameters():
            slope = torch.zeros_like(weight) if weight.grad is None else weight.grad.clone()
            found[f"gradient of {name}"] = [slope]
        return found

    def compare(
        self, exact: dict[str, list[Tensor]], plain: dict[str, list[Tensor]], ours: dict[str, list[Tensor]]
    ) -> None:
        """Check that ours are about as close to float32 as torch in bfloat16 is.

        The errors of single tensors vary, so their bound is wide; scalars are compared together.
        """
        slopes = [name for name in exact if name.startswith("gradient") and not is_cancelled(name)]
        size = max(float(exact[name][0].norm()) for name in slopes)
        alone = [name for name in slopes if exact[name][0].numel() == 1]

        def all_of(names: Sequence[str]) -> tuple[float, float]:
            """Return the errors of torch in bfloat16 and of ours."""
            expected, *others = ([part for name in names for part in of[name]] for of in (exact, plain, ours))
            return far(others[0], expected), far(others[1], expected)

        for names in (alone, *([name] for name in slopes if name not in alone)):
            theirs, own = all_of(names)
            assert own < 2.0 * theirs + 0.25, names
        for name, expected in exact.items():
            if name in slopes:
                continue
            if name.startswith("gradient"):
                assert not ours[name][0].any() and expected[0].norm() < 1e-4 * size, name
            else:
                assert far(ours[name], expected) < 1.5 * far(plain[name], expected) + 0.005, name
        theirs, own = all_of(slopes)
        assert own < 1.5 * theirs + 0.005


def is_cancelled(name: str) -> bool:
    """Return whether it is a bias just before a normalisation, which cancels it."""
    return name.endswith((".combine.bias", "feed_forward.2.bias"))


def rows_at(rows: Tensor, index: Tensor) -> Tensor:
    return rows.gather(1, index[..., None].expand(-1, -1, rows.shape[-1]))


def near(ours: Tensor, theirs: Tensor, tolerance: float) -> None:
    """Check the error relative to each number and to their root mean square."""
    apart = (ours.float() - theirs).abs()
    size = theirs.square().mean().sqrt()
    worst = (apart / (theirs.abs() + size + 1e-3)).max()
    assert worst <= tolerance, float(worst)


def far(ours: Sequence[Tensor], theirs: Sequence[Tensor]) -> float:
    """Return the distance relative to the norm."""
    assert all(a.shape == b.shape for a, b in zip(ours, theirs, strict=True))
    apart = sum(float((a.float() - b.float()).square().sum()) for a, b in zip(ours, theirs, strict=True))
    return (apart / max(sum(float(b.float().square().sum()) for b in theirs), 1e-12)) ** 0.5
