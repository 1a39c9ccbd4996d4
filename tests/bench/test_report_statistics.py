"""Statistics beside independent computations: enumeration, integration step by step, published examples."""

from __future__ import annotations

import math
from functools import cache
from itertools import product
from random import Random
from statistics import NormalDist

import pytest

from ndsvrp.bench.report.statistics import gap, is_tie, mean, primal_integral, standard_error, wilcoxon


def enumerate_p(differences: list[float]) -> float:
    """All choices of signs, each as likely as any other."""
    sizes = [abs(d) for d in differences if d != 0]
    ranks = [sum(y < x for y in sizes) + (1 + sum(y == x for y in sizes)) / 2 for x in sizes]
    middle = sum(ranks) / 2
    observed = sum(r for r, d in zip(ranks, [d for d in differences if d != 0], strict=True) if d > 0)
    far = 0
    for signs in product((0, 1), repeat=len(ranks)):
        value = sum(r for r, sign in zip(ranks, signs, strict=True) if sign)
        far += abs(value - middle) >= abs(observed - middle)
    return far / 2 ** len(ranks)


@pytest.mark.parametrize("count", range(1, 11))
@pytest.mark.parametrize("ties", [False, True])
def test_wilcoxon_up_to_25_pairs_is_exact(count: int, ties: bool) -> None:
    random = Random(count)
    for _ in range(4):
        sizes = [random.randint(1, 3) if ties else i + 1 for i in range(count)]
        differences = [float(size * random.choice((-1, 1))) for size in sizes]
        result = wilcoxon([*differences, 0.0])
        assert result is not None and result.exact and result.pairs == count
        assert result.p == pytest.approx(enumerate_p(differences), abs=1e-15)


def test_wilcoxon_of_a_published_example() -> None:
    """Hollander and Wolfe 1973, p. 29, as in the help of R's wilcox.test: V = 40, p = 0.01953 on one side."""
    first = [1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30]
    second = [0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29]
    result = wilcoxon([x - y for x, y in zip(first, second, strict=True)])
    assert result is not None
    assert (result.statistic, result.p) == (40, 0.0390625)


@cache
def choices(rank: int, value: int) -> int:
    """Return how many subsets of 1, …, rank have this sum."""
    if value < 0:
        return 0
    return int(value == 0) if rank == 0 else choices(rank - 1, value) + choices(rank - 1, value - rank)


def test_wilcoxon_of_25_pairs() -> None:
    """The ranks 1, …, 9 are positive: their sum is 45."""
    result = wilcoxon([float(i if i < 10 else -i) for i in range(1, 26)])
    assert result is not None and result.exact
    assert result.p == 2 * sum(choices(25, value) for value in range(46)) / 2**25


def test_wilcoxon_above_25_pairs_is_normal() -> None:
    """The ranks 1, …, 15 of 30 are positive; then each size occurs twice."""
    result = wilcoxon([float(i if i <= 15 else -i) for i in range(1, 31)])
    assert result is not None and not result.exact
    deviation = math.sqrt(30 * 31 * 61 / 24)
    assert (result.pairs, result.statistic) == (30, 120)
    assert result.p == pytest.approx(2 * NormalDist().cdf((120 + 0.5 - 232.5) / deviation))
    assert result.p == pytest.approx(2 * sum(choices(30, value) for value in range(121)) / 2**30, abs=2e-3)

    paired = [float((i + 1) // 2 * (1 if i <= 20 else -1)) for i in range(1, 31)]  # ranks 1.5, 1.5, 3.5, 3.5, …
    result = wilcoxon(paired)
    assert result is not None and result.statistic == sum(range(1, 21))
    deviation = math.sqrt(30 * 31 * 61 / 24 - 15 * (2**3 - 2) / 48)
    assert result.p == pytest.approx(2 * NormalDist().cdf((210 + 0.5 - 232.5) / deviation))


def test_equal_percentages_share_a_rank() -> None:
    """1% of 3 and of 7 differ in the last bits."""
    one, other = gap(3.03, 3.0), -gap(7.07, 7.0)
    assert one != -other
    result = wilcoxon([one, other])
    assert result is not None and (result.statistic, result.p) == (1.5, 1.0)


def test_wilcoxon_without_a_difference() -> None:
    assert wilcoxon([]) is None
    assert wilcoxon([0.0, 0.0]) is None


def test_mean_and_standard_error() -> None:
    assert mean([]) is None and mean([1.0, 2.0, 6.0]) == 3
    assert standard_error([5.0]) is None
    assert standard_error([1.0, math.inf]) is None
    # deviations from 3: -2, -1, 3; their squares sum to 14; 14 / (3 - 1) / 3
    assert standard_error([1.0, 2.0, 6.0]) == pytest.approx(math.sqrt(14 / 6))


def test_gaps_and_ties() -> None:
    assert gap(102.0, 100.0) == 2 and gap(95.0, 100.0) == -5
    assert gap(0.0, 0.0) == 0 and gap(1.0, 0.0) == math.inf
    assert is_tie(1e6, 1e6 + 0.9) and not is_tie(1e6, 1e6 + 1.1) and is_tie(0.0, 0.0)


def test_primal_integral() -> None:
    """10% until 1 s, 5% until 4 s, 1% until 10 s: (10 + 15 + 6) / 10."""
    assert primal_integral([(1.0, 105.0), (4.0, 101.0)], 100.0, 10.0) == pytest.approx(3.1)
    assert primal_integral([(0.0, 300.0), (5.0, 100.0)], 100.0, 10.0) == pytest.approx(5.0), "at most 10%"
    assert primal_integral([(20.0, 100.0)], 100.0, 10.0) == 10, "found after the end"
    assert primal_integral([], 100.0, 10.0) == 10


def test_primal_integral_beside_a_sum_over_moments() -> None:
    random = Random(7)
    trace = [(second, 1200.0 - 10 * i) for i, second in enumerate(sorted(random.uniform(0, 30) for _ in range(40)))]
    moments = [(i + 0.5) * 30 / 200_000 for i in range(200_000)]
    total, position, height = 0.0, 0, 10.0
    for moment in moments:
        while position < len(trace) and trace[position][0] <= moment:
            height = min(10.0, (trace[position][1] - 800) / 8)
            position += 1
        total += height
    assert primal_integral(trace, 800.0, 30.0) == pytest.approx(total / len(moments), abs=1e-3)
