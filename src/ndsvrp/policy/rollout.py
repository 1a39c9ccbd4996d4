"""Sampling from the network: K rollouts of M selections for every problem of a batch.

Random numbers are inputs: a seed vector per rollout, a uniform number per selection.
"""

import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor

from ndsvrp.errors import NdsWarning
from ndsvrp.policy.fused_decoder import FusedDecoder, supports
from ndsvrp.policy.graphs import GraphCache, low_precision
from ndsvrp.policy.inputs import Inputs
from ndsvrp.policy.kernels import kernels_for
from ndsvrp.policy.network import Network, pick
from ndsvrp.policy.random_numbers import RandomNumbers
from ndsvrp.policy.windows import Divided, Windows, windows

PART = 20_000  # rollouts x customers of a part of the batch: what fits into the caches of a core


class Rollouts(NamedTuple):
    """Sampled rollouts."""

    removed: Tensor  #: (B, K, M) int64 customers 1 … N, in the order of their selection
    log_probability: Tensor  #: (B, K) float32


class Sampler:
    """Samples from a network: on a GPU in bfloat16, with one kernel in a CUDA graph, on a CPU in float32.

    On a CPU the batch is split into parts of a fixed size, one thread each. This is faster than several threads within
    every operation, and rounding does not depend on the number of threads.
    """

    def __init__(self, network: Network) -> None:
        self.network = network
        self._graphs = GraphCache(self._sample)
        self._graphs_in_regions = GraphCache(self._sample_in_regions)

    def __call__(
        self, inputs: Inputs, numbers: RandomNumbers, *, threads: int = 1, deadline: float | None = None
    ) -> Rollouts | None:
        """Sample rollouts. Return None if the deadline (of `time.perf_counter`) passes meanwhile."""
        rollouts = self._roll_out(inputs, numbers, threads, deadline)
        if rollouts is None or inputs.nodes.device.type == "cpu":
            return rollouts
        return Rollouts(*(tensor.clone() for tensor in rollouts))

    def customers(
        self, inputs: Inputs, numbers: RandomNumbers, *, threads: int = 1, deadline: float | None = None
    ) -> Tensor | None:
        """Sample rollouts, and return only the removed customers, (B, K, M) int32 as engines take them."""
        rollouts = self._roll_out(inputs, numbers, threads, deadline)
        return None if rollouts is None else rollouts.removed.to(torch.int32, copy=True)

    def customers_in_regions(
        self, divided: Divided, numbers: RandomNumbers, *, threads: int = 1, deadline: float | None = None
    ) -> Tensor | None:
        """Sample rollouts for the parts of solutions, as `customers` does for whole ones."""
        if divided.nodes.device.type != "cpu":
            return None if _is_over(deadline) else self._graphs_in_regions(*numbers, *divided).clone()
        shown = _windows(divided, numbers.uniforms)
        removed = self.customers(shown.inputs, numbers, threads=threads, deadline=deadline)
        return None if removed is None else _named(shown, removed)

    def _sample_in_regions(self, seeds: Tensor, uniforms: Tensor, *tensors: Tensor) -> Tensor | None:
        shown = _windows(Divided(*tensors), uniforms)
        rollouts = self._sample(seeds, uniforms, *shown.inputs.tensors())
        return None if rollouts is None else _named(shown, rollouts.removed)

    def _roll_out(
        self, inputs: Inputs, numbers: RandomNumbers, threads: int, deadline: float | None
    ) -> Rollouts | None:
        """Return tensors that the next call overwrites."""
        if inputs.nodes.device.type == "cpu":
            return self._in_parts(inputs, numbers, threads, deadline)
        return None if _is_over(deadline) else Rollouts(*self._graphs(*numbers, *inputs.tensors()))

    def _sample(self, seeds: Tensor, uniforms: Tensor, *tensors: Tensor) -> Rollouts | None:
        inputs = Inputs.of_tensors(*tensors)
        with torch.no_grad(), low_precision(seeds.device):
            if self._fused is not None and self._fused.fits(inputs.nodes.shape[1] - 1):
                return Rollouts(*self._fused(inputs, seeds, uniforms))
            return sample(self.network, inputs, RandomNumbers(seeds, uniforms))

    @cached_property
    def _fused(self) -> FusedDecoder | None:
        """The fused decoder, or None if it does not support the network or cannot be compiled."""
        if not supports(self.network.config):
            message = "no kernel selects customers for a network of this shape: plain operations do, which takes longer"
            warnings.warn(message, NdsWarning, stacklevel=2)
            return None
        kernels = kernels_for(torch.device("cuda"))
        return None if kernels is None else FusedDecoder(self.network, kernels.device)

    def _in_parts(
        self, inputs: Inputs, numbers: RandomNumbers, threads: int, deadline: float | None
    ) -> Rollouts | None:
        batch, rollouts, _ = numbers.uniforms.shape
        size = max(1, PART // (rollouts * (inputs.nodes.shape[1] - 1)))
        begins = range(0, batch, size)

        def part(begin: int) -> Rollouts | None:
            end = begin + size
            some = RandomNumbers(numbers.seeds[begin:end], numbers.uniforms[begin:end])
            return sample(self.network, inputs.part(begin, end), some, deadline)

        with torch_threads(1):
            if min(threads, len(begins)) == 1:
                parts = [part(begin) for begin in begins]
            else:
                with ThreadPoolExecutor(threads) as pool:
                    parts = list(pool.map(part, begins))
        whole = [found for found in parts if found is not None]
        return Rollouts(*map(torch.cat, zip(*whole, strict=True))) if len(whole) == len(parts) else None


def _windows(divided: Divided, uniforms: Tensor) -> Windows:
    """Return the windows, placed by the number of the last selection: one more would have to be sent to a GPU."""
    return windows(divided, uniforms[:, -1, -1], uniforms.shape[2])


def _named(shown: Windows, removed: Tensor) -> Tensor:
    """Return the customers of a window as those of the problem, int32."""
    return shown.nodes.gather(1, removed.to(torch.int64).flatten(1)).view(removed.shape).to(torch.int32)


@contextmanager
def torch_threads(count: int) -> Iterator[None]:
    """Set the number of threads of torch operations."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def sample(network: Network, inputs: Inputs, numbers: RandomNumbers, deadline: float | None = None) -> Rollouts | None:
    """Sample rollouts. Return None if the deadline (of `time.perf_counter`) passes before the last selection."""

    def check_deadline() -> None:
        if _is_over(deadline):
            raise _Late

    try:
        with torch.no_grad():
            return _sample(network, inputs, numbers, check_deadline)
    except _Late:
        return None


class _Late(Exception):  # noqa: N818  # not an error
    """The deadline has passed."""


def _sample(network: Network, inputs: Inputs, numbers: RandomNumbers, between: Callable[[], None]) -> Rollouts:
    seeds, uniforms = numbers
    memory = network.encode(inputs, between)
    batch, rollouts, removals = uniforms.shape
    allowed = torch.ones(batch, rollouts, memory.gates.shape[1], dtype=torch.bool, device=seeds.device)
    hidden = memory.gates.new_zeros(batch, rollouts, network.config.width)
    gates, last = memory.first_gates.expand(batch, rollouts, -1), None
    total = torch.zeros(batch, rollouts, device=seeds.device)
    selected = []
    for m in range(removals):
        between()
        hidden = network.gru_step(gates, hidden)
        probabilities = torch.softmax(network.logits(memory, hidden, seeds, allowed, last), dim=-1)
        last = invert(probabilities, uniforms[:, :, m])
        total += probabilities.gather(2, last[..., None])[..., 0].log()
        allowed.scatter_(2, last[..., None], False)
        gates = pick(memory.gates, last)
        selected.append(last + 1)
    return Rollouts(torch.stack(selected, dim=2), total)


def _is_over(deadline: float | None) -> bool:
    return deadline is not None and time.perf_counter() >= deadline


def invert(probabilities: Tensor, uniforms: Tensor) -> Tensor:
    """Return the entries (B, K) of probabilities (B, K, N) at which the running sum exceeds the uniform number.

    An entry of probability 0 is never returned.
    """
    sums = probabilities.cumsum(dim=-1)
    whole = sums[..., -1:]
    # A number rounded up to the total would select the last entry, even one of probability 0.
    goal = torch.minimum(uniforms[..., None] * whole, torch.nextafter(whole, torch.zeros_like(whole)))
    return torch.searchsorted(sums, goal, right=True)[..., 0]
