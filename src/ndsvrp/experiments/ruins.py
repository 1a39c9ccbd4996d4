"""Ruins that only experiments use: the policy's customers in random order, and strings drawn beforehand."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from ndsvrp.engine.base import Ints
from ndsvrp.policy.rollout import torch_threads
from ndsvrp.problem import Problem
from ndsvrp.ruin import Ruin, RuinRequest
from ndsvrp.search.settings import Settings

AVERAGE = 15.0  #: customers of a set of strings, the M of the policy
WIDTH = 64  #: columns for such a set, which is random; longer ones are cut
NEAREST = 100  #: neighbours whose routes may lose a string
DEFAULTS = Settings()
STAY = 5  #: customers of a split string that stay, at most; more are as good as never drawn


class ShuffledPolicy(Ruin):
    """The policy's customers in random order, so that every insertion order is random."""

    on_device = True
    batched = True

    def __init__(self, policy: Ruin) -> None:
        self.policy = policy

    def __call__(self, request: RuinRequest) -> Any:
        """Return what the policy returns, each removal in random order."""
        removed = self.policy(request)
        if isinstance(removed, np.ndarray):
            return np.asarray(request.random.permuted(removed, axis=-1))
        generator = torch.Generator(removed.device).manual_seed(int(request.random.integers(1 << 62)))
        order = torch.rand(removed.shape, generator=generator, device=removed.device).argsort(dim=-1)
        return removed.gather(-1, order)

    def expected_seconds(self) -> float | None:
        """Return that of the policy."""
        return self.policy.expected_seconds()


class StringSets(Ruin):
    """SISRs' string removal in place of the policy: K sets of customers, drawn from the solution before the K steps.

    Each set has adjacent strings around a random customer (Christiaens & Vanden Berghe 2020, equations 5 to 9), with
    AVERAGE customers on average. Unserved customers that are nearer than the route of a string are removed too.
    """

    on_device = True
    batched = True

    def __init__(self) -> None:
        self._problems: tuple[Problem, ...] = ()
        self._near = torch.empty(0)

    def __call__(self, request: RuinRequest) -> Any:
        """Return (chains, K, M) int32 customers, as a tensor on the GPU if the view is one, else an array."""
        previous, route = (torch.as_tensor(request.view[part]).long() for part in (0, 2))
        device, chains = previous.device, len(previous)
        if self._problems != request.problems:
            self._problems = request.problems
            self._near = torch.as_tensor(np.stack([nearest(problem) for problem in request.problems]), device=device)
        seeds = request.random.integers(1, request.problem.customers + 1, (chains, request.rollouts))
        problem = torch.arange(chains, device=device) // (chains // len(request.problems))
        around = self._near[problem[:, None], torch.as_tensor(seeds, device=device)].long()
        with torch_threads(request.threads):
            sets = string_sets(previous, route, around, request.removals, request.random)
        return sets if isinstance(request.view[0], Tensor) else sets.numpy()


def nearest(problem: Problem) -> Ints:
    """Return (N+1, L) int32: of each customer, itself and its nearest ones; row 0 is not used."""
    nodes = np.arange(problem.customers + 1)
    lengths = np.array(problem.length(nodes[:, None], nodes), np.float64)
    lengths[:, 0] = np.inf
    np.fill_diagonal(lengths, -1.0)
    return np.argsort(lengths, axis=1, kind="stable")[:, : min(problem.customers, NEAREST)].astype(np.int32)


def string_sets(previous: Tensor, route: Tensor, around: Tensor, width: int, random: np.random.Generator) -> Tensor:
    """Return (chains, K, width) int32: sets of customers, each of adjacent strings; zeros at the end stand for none.

    previous, route: (chains, N+1) of the solutions, as in `View`; around: (chains, K, L) a seed customer and those
    around it, see `nearest`. All are int64. Random numbers are the same on every device.
    """
    chains, count, columns = around.shape
    device, lines = around.device, torch.arange(chains * count, device=around.device)

    def uniform(rows: int) -> Tensor:
        return torch.as_tensor(random.random((rows, len(lines))), device=device)

    solutions = _Solutions(previous, route)
    shift = (torch.arange(chains, device=device) * (previous.shape[1] - 1)).repeat_interleave(count)
    around = around.reshape(-1, columns) + shift[:, None]
    routes = solutions.route[around]
    longest = solutions.mean.clamp(max=float(DEFAULTS.string_longest)).repeat_interleave(count)
    left = (1 + uniform(1)[0] * (4 * AVERAGE / (1 + longest) - 1)).long().clamp(min=1)  # strings
    out = torch.zeros((len(lines), width), dtype=torch.int64, device=device)
    filled = torch.zeros_like(lines)

    def put(customers: Tensor, wanted: Tensor) -> None:
        """Append a customer to each wanted line that has room."""
        wanted = wanted & (filled < width)
        at = filled.clamp(max=width - 1)
        out[lines, at] = torch.where(wanted, customers, out[lines, at])
        filled.add_(wanted)

    is_open = routes >= 0  # of a route without a string so far
    unserved = _first_unserved(routes, int(AVERAGE))
    reach = torch.zeros_like(lines)
    while True:
        anchor = is_open.byte().argmax(dim=1)
        found, active = is_open[lines, anchor], left > 0
        until = torch.where(found, anchor, columns)
        for column in unserved.T:  # those nearer than the next string, in their order
            put(around[lines, column.clamp(max=columns - 1)], active & (column >= reach) & (column < until))
        active &= found
        if not bool(active.any()):
            break
        reach, left = torch.where(active, anchor, columns), left - 1
        chosen = routes[lines, anchor]
        for customer in solutions.strings(around[lines, anchor], chosen.clamp(min=0), longest, uniform(5)).T:
            put(customer, active & (customer > 0))
        is_open &= routes != chosen[:, None]
    sets = torch.where(out > 0, out - shift[:, None], 0)
    return sets.int().reshape(chains, count, width)


class _Solutions:
    """Solutions of several chains as one sequence of customers, route by route.

    Customer i of chain c has the number c N + i, route r the number c N + r.
    """

    def __init__(self, previous: Tensor, route: Tensor) -> None:
        chains, customers = len(previous), previous.shape[1] - 1
        shift = torch.arange(chains, device=route.device)[:, None] * customers
        before = torch.where(previous[:, 1:] == 0, 0, previous[:, 1:] + shift).flatten()
        of_route = torch.where(route[:, 1:] < 0, -1, route[:, 1:] + shift).flatten()
        self.route = torch.cat([of_route.new_full((1,), -1), of_route])
        self.stop = _ranks(torch.cat([before.new_zeros(1), before]))
        served = self.route >= 0
        last = chains * customers  # a number beyond all routes
        order = torch.where(served, self.route, last) * (customers + 1) + self.stop
        self.sequence = torch.argsort(order)  # unserved customers and the depot come last
        self.size = torch.zeros(last, dtype=torch.int64, device=route.device)
        self.size.scatter_add_(0, self.route.clamp(min=0), served.long())
        self.first = self.size.cumsum(0) - self.size
        sizes = self.size.view(chains, customers)
        self.mean = sizes.sum(dim=1).double() / sizes.count_nonzero(dim=1).clamp(min=1)

    def strings(self, anchor: Tensor, route: Tensor, longest: Tensor, uniform: Tensor) -> Tensor:
        """Return (K, columns) customers of a string around each anchor; 0 where there is none."""
        size = self.size[route]
        length = torch.minimum(size, (1 + uniform[0] * torch.minimum(size, longest)).long())
        splits = (length > 1) & (length < size) & (uniform[1] < DEFAULTS.string_split)
        depth = float(np.log(max(DEFAULTS.string_depth, 1e-300)))
        more = (uniform[2].clamp(min=1e-300).log() / depth).long()
        kept = torch.where(splits, torch.minimum((1 + more).clamp(max=STAY), size - length), 0)  # in the middle
        skip = 1 + (uniform[3] * (length - 1)).long()  # removed before those that stay
        span, stop = length + kept, self.stop[anchor]
        low, high = (stop - span + 1).clamp(min=0), torch.minimum(stop, size - span)
        start = low + (uniform[4] * (high - low + 1)).long()
        column = torch.arange(DEFAULTS.string_longest + STAY, device=anchor.device)
        stays = (column >= skip[:, None]) & (column < (skip + kept)[:, None])
        at = ((self.first[route] + start)[:, None] + column).clamp(max=len(self.sequence) - 1)
        return torch.where((column < span[:, None]) & ~stays, self.sequence[at], 0)


def _ranks(previous: Tensor) -> Tensor:
    """Return the position of each customer in its route, from 0, by doubling (list ranking)."""
    rank, jump = (previous != 0).long(), previous
    while bool(jump.any()):
        rank, jump = rank + rank[jump], jump[jump]
    return rank


def _first_unserved(routes: Tensor, most: int) -> Tensor:
    """Return (K, most) columns of the first unserved customers; beyond them the number of columns."""
    if not bool((routes < 0).any()):
        return routes[:, :0]
    columns = torch.arange(routes.shape[1], device=routes.device)
    return torch.where(routes < 0, columns, routes.shape[1]).sort(dim=1).values[:, :most]
