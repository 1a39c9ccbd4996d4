"""Means, standard errors, the Wilcoxon test and the primal integral. Plain functions of numbers."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

EQUAL = 1e-6  # relative difference up to which two costs are a tie
EXACT = 25  # pairs up to which the distribution of the Wilcoxon test is computed exactly
WORST_GAP = 10.0  # percent: the largest gap that the primal integral counts


def mean(values: Sequence[float]) -> float | None:
    """Return the mean; None without values."""
    return fmean(values) if values else None


def standard_error(values: Sequence[float]) -> float | None:
    """Return the sample standard deviation over the root of the number of values; None below two finite values."""
    if len(values) < 2 or not all(map(math.isfinite, values)):
        return None
    return stdev(values) / math.sqrt(len(values))


def gap(cost: float, reference: float) -> float:
    """Return how far a cost lies above a reference, in percent of the reference."""
    if reference == 0:
        return 0.0 if cost == 0 else math.inf
    return 100.0 * (cost - reference) / reference


def is_tie(one: float, other: float) -> bool:
    """Return whether two costs are equal up to rounding."""
    return abs(one - other) <= EQUAL * max(abs(one), abs(other))


@dataclass(frozen=True)
class Wilcoxon:
    """The result of a two-sided Wilcoxon signed-rank test."""

    pairs: int  #: differences that are not zero
    statistic: float  #: sum of the ranks of the positive differences
    p: float  #: probability of a statistic at least as far from its mean, if neither side were better
    exact: bool


def wilcoxon(differences: Sequence[float]) -> Wilcoxon | None:
    """Return the test of paired differences; None if all are zero.

    Zeros are left out (Wilcoxon 1945); equal differences share the mean of their ranks. Up to 25 pairs, the probability
    is exact for these ranks. Above, it is that of the normal distribution with corrections for ties and continuity.
    """
    signed = [difference for difference in differences if difference != 0]
    if not signed:
        return None
    doubled = _doubled_ranks([abs(difference) for difference in signed])
    positive = sum(rank for rank, difference in zip(doubled, signed, strict=True) if difference > 0)
    exact = len(signed) <= EXACT
    p = _exact_p(doubled, positive) if exact else _normal_p(doubled, positive)
    return Wilcoxon(len(signed), positive / 2, p, exact)


def _doubled_ranks(sizes: Sequence[float]) -> list[int]:
    """Return twice the rank of each number from 1, a whole number also where equal numbers share a mean rank."""
    rounded = [round(size, 9) if math.isfinite(size) else size for size in sizes]  # 1% is 1% of any cost
    counts = Counter(rounded)
    rank: dict[float, int] = {}
    below = 0
    for size in sorted(counts):
        rank[size] = 2 * below + counts[size] + 1  # twice the mean of below + 1, …, below + count
        below += counts[size]
    return [rank[size] for size in rounded]


def _exact_p(doubled: Sequence[int], positive: int) -> float:
    """Count the choices of signs for every sum of ranks, rank by rank."""
    total = sum(doubled)
    choices = [1] + [0] * total
    for rank in doubled:
        for value in range(total, rank - 1, -1):
            choices[value] += choices[value - rank]
    tail = sum(choices[: min(positive, total - positive) + 1])
    return min(1.0, 2 * tail / (1 << len(doubled)))


def _normal_p(doubled: Sequence[int], positive: int) -> float:
    n = len(doubled)
    ties = sum(count**3 - count for count in Counter(doubled).values())
    variance = n * (n + 1) * (2 * n + 1) / 24 - ties / 48
    distance = max(0.0, abs(positive / 2 - n * (n + 1) / 4) - 0.5)
    return math.erfc(distance / math.sqrt(2 * variance))


def primal_integral(trace: Sequence[Sequence[float]], reference: float, end: float) -> float:
    """Return the gap to a reference, integrated over the time from 0 to `end` and divided by `end`, in percent.

    The gap is that of the best solution at each moment. It counts at most 10%, also before the first solution, so that
    a late first solution has a finite price. `trace` has a row (seconds, cost) for each new best solution.
    """
    area, since, height = 0.0, 0.0, WORST_GAP
    for seconds, cost in trace:
        moment = min(max(seconds, since), end)
        area += height * (moment - since)
        since, height = moment, min(WORST_GAP, gap(cost, reference))
    return (area + height * (end - since)) / end
