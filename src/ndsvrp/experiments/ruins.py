"""Ruins that only experiments use: the policy's customers in random order, and strings drawn beforehand."""

from typing import Any

import numpy as np
import numpy.typing as npt

from ndsvrp.engine.base import Ints
from ndsvrp.problem import Problem
from ndsvrp.ruin import Ruin, RuinRequest
from ndsvrp.search.settings import Settings

Numbers = npt.NDArray[Any]
AVERAGE = 15.0  #: customers of a set of strings, the M of the policy
WIDTH = 64  #: columns for such a set, which is random; longer ones are cut
NEAREST = 100  #: neighbours whose routes may lose a string
DEFAULTS = Settings()


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
        import torch

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

    batched = True

    def __init__(self) -> None:
        self._problems: tuple[Problem, ...] = ()
        self._near: list[Ints] = []

    def __call__(self, request: RuinRequest) -> Ints:
        """Return (chains, K, M) int32 customers."""
        if self._problems != request.problems:
            self._problems, self._near = request.problems, [nearest(problem) for problem in request.problems]
        chains = len(request.coordinates) // len(request.problems)
        seeds = request.random.integers(1, request.problem.customers + 1, (len(request.coordinates), request.rollouts))
        around = np.stack([self._near[chain // chains][row] for chain, row in enumerate(seeds)])
        previous, route = (np.asarray(part) for part in (request.view.previous, request.view.route))
        return string_sets(previous, route, around, request.removals, request.random)


def nearest(problem: Problem) -> Ints:
    """Return (N+1, L) int32: of each customer, itself and its nearest ones; row 0 is not used."""
    nodes = np.arange(problem.customers + 1)
    lengths = np.array(problem.length(nodes[:, None], nodes), np.float64)
    lengths[:, 0] = np.inf
    np.fill_diagonal(lengths, -1.0)
    return np.argsort(lengths, axis=1, kind="stable")[:, : min(problem.customers, NEAREST)].astype(np.int32)


def string_sets(previous: Numbers, route: Numbers, around: Ints, width: int, random: np.random.Generator) -> Ints:
    """Return (chains, K, width) int32: sets of customers, each of adjacent strings; zeros at the end stand for none.

    previous, route: (chains, N+1) of the solutions, as in `View`; around: (chains, K, L) a seed customer and those
    around it, see `nearest`.
    """
    chains, count, columns = around.shape
    solutions = _Solutions(previous, route)
    shift = np.repeat(np.arange(chains) * (previous.shape[1] - 1), count)
    around = around.reshape(-1, columns) + shift[:, None]
    routes, lines = solutions.route[around], np.arange(chains * count)
    longest = np.repeat(np.minimum(float(DEFAULTS.string_longest), solutions.mean), count)
    left = np.maximum(1, (1 + random.random(len(lines)) * (4 * AVERAGE / (1 + longest) - 1)).astype(int))  # strings
    out, filled = np.zeros((len(lines), width), np.int64), np.zeros(len(lines), np.int64)
    is_open = routes >= 0  # of a route without a string so far
    unserved, reach = _unserved_first(routes, int(AVERAGE)), np.zeros(len(lines), np.int64)
    while True:
        anchor = np.argmax(is_open, axis=1)
        found = is_open[lines, anchor]
        active = left > 0
        until = np.where(found, anchor, columns)
        for column in unserved.T:  # those nearer than the next string, in their order
            nearby = around[lines, np.minimum(column, columns - 1)]
            _put(out, filled, nearby, active & (column >= reach) & (column < until))
        active &= found
        if not active.any():
            break
        reach, left = np.where(active, anchor, columns), left - 1
        chosen = routes[lines, anchor]
        for customer in solutions.strings(around[lines, anchor], np.maximum(chosen, 0), longest, random).T:
            _put(out, filled, customer, active & (customer > 0))
        is_open &= routes != chosen[:, None]
    return np.where(out > 0, out - shift[:, None], 0).astype(np.int32).reshape(chains, count, width)


class _Solutions:
    """Solutions of several chains as one sequence of customers, route by route.

    Customer i of chain c has the number c N + i, route r the number c N + r.
    """

    def __init__(self, previous: Numbers, route: Numbers) -> None:
        chains, customers = previous.shape[0], previous.shape[1] - 1
        shift = np.arange(chains)[:, None] * customers
        self.route = np.append(-1, np.where(route[:, 1:] < 0, -1, route[:, 1:] + shift))
        self.stop = _ranks(np.append(0, np.where(previous[:, 1:] == 0, 0, previous[:, 1:] + shift)))
        served = np.flatnonzero(self.route >= 0)
        self.sequence = served[np.lexsort((self.stop[served], self.route[served]))]
        self.size = np.bincount(self.route[served], minlength=chains * customers)
        self.first = np.cumsum(self.size) - self.size
        sizes = self.size.reshape(chains, customers)
        self.mean = sizes.sum(axis=1) / np.maximum(1, np.count_nonzero(sizes, axis=1))

    def strings(self, anchor: Numbers, route: Numbers, longest: Numbers, random: np.random.Generator) -> Numbers:
        """Return (K, columns) customers of a string around each anchor; 0 where there is none."""
        lines, size = len(anchor), self.size[route]
        draw = random.random((5, lines))
        length = np.minimum(size, (1 + draw[0] * np.minimum(size, longest)).astype(int))
        splits = (length > 1) & (length < size) & (draw[1] < DEFAULTS.string_split)
        more = (np.log(np.maximum(draw[2], 1e-300)) / np.log(DEFAULTS.string_depth)).astype(int)
        kept = np.where(splits, np.minimum(1 + more, size - length), 0)  # customers in the middle that stay
        skip = 1 + (draw[3] * (length - 1)).astype(int)  # removed before them
        span = length + kept
        stop = self.stop[anchor]
        low, high = np.maximum(0, stop - span + 1), np.minimum(stop, size - span)
        start = low + (draw[4] * (high - low + 1)).astype(int)
        column = np.arange(int(span.max(initial=0)))
        inside = (column < span[:, None]) & ~((column >= skip[:, None]) & (column < (skip + kept)[:, None]))
        at = np.minimum((self.first[route] + start)[:, None] + column, len(self.sequence) - 1)
        return np.asarray(np.where(inside, self.sequence[at], 0))


def _ranks(previous: Numbers) -> Numbers:
    """Return the position of each customer in its route, from 0, by doubling (list ranking)."""
    rank, jump = (previous != 0).astype(np.int64), previous.copy()
    while jump.any():
        rank, jump = rank + rank[jump], jump[jump]
    return np.asarray(rank)


def _unserved_first(routes: Numbers, most: int) -> Numbers:
    """Return (K, most) columns of the first unserved customers; beyond them the number of columns."""
    columns = np.where(routes < 0, np.arange(routes.shape[1]), routes.shape[1])
    return np.sort(columns, axis=1)[:, :most] if (routes < 0).any() else columns[:, :0]


def _put(out: Numbers, filled: Numbers, customers: Numbers, wanted: Numbers) -> None:
    """Append a customer to each wanted line that has room."""
    lines = np.flatnonzero(wanted & (filled < out.shape[1]))
    out[lines, filled[lines]] = customers[lines]
    filled[lines] += 1
