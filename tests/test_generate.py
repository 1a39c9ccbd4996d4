"""Generators: numbers that must not change, sets that extend, and the distributions the recipes promise."""

from __future__ import annotations

import dataclasses
import hashlib
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ndsvrp.errors import InstanceError, NdsError
from ndsvrp.generate import TEST_SEEDS, Clustered, Prizes, Uniform, Windows, generate, uniform_capacity
from ndsvrp.generate.compare import averages
from ndsvrp.generate.config import CustomerPosition, DemandKind, DepotPosition, RouteSize
from ndsvrp.problem import Problem
from ndsvrp.variants import VARIANTS, variant_of

FIELDS = ("coordinates", "demand", "capacity", "windows", "service", "prize")


def same(a: Problem, b: Problem) -> bool:
    return all(np.array_equal(getattr(a, f), getattr(b, f)) for f in FIELDS if getattr(a, f) is not None)


def places(problem: Problem) -> np.ndarray:
    """Customers on the grid of 0 … 1000."""
    assert problem.coordinates is not None
    return np.rint(problem.coordinates[1:] * 1000).astype(int)


def pooled(variant: str = "cvrp", n: int = 200, count: int = 30, **options: Any) -> list[Problem]:
    return generate(variant, n, count=count, seed=7, **options)


def means(problems: list[Problem]) -> dict[str, float]:
    return {quantity: mean for quantity, (mean, _) in averages(problems).items()}


def clustered(count: int = 30, n: int = 200, **options: Any) -> list[Problem]:
    return pooled(count=count, n=n, layout="clustered", clustered=Clustered(**options))


# --- seeds -------------------------------------------------------------------------------------


def test_a_seed_gives_these_numbers() -> None:
    uniform = generate("cvrp", 3, seed=1)[0]
    assert uniform.name == "cvrp3-seed1-0000"
    assert uniform.coordinates.tolist() == [
        [0.5189493051730096, 0.864278118358925],
        [0.9299202912952751, 0.016519858734682202],
        [0.7874673157930374, 0.38948194473050535],
        [0.843720844713971, 0.25096843764185905],
    ]
    assert (uniform.demand.tolist(), uniform.capacity) == ([0, 5, 4, 6], 30)
    full = generate("pcvrptw", 3, seed=1, first=2)[0]
    assert full.name == "pcvrptw3-seed1-0002"
    assert full.coordinates.tolist() == [[0.5, 0.5], [0.657, 0.957], [0.272, 0.724], [0.585, 0.919]]
    assert (full.demand.tolist(), full.capacity) == ([0, 7, 4, 4], 49)
    assert full.windows.tolist() == [[0.0, 1.8], [1.032, 1.265], [0.794, 1.194], [0.429, 0.753]]
    assert full.service.tolist() == [0.0, 0.05, 0.05, 0.05]
    assert full.prize.tolist() == [0.0, 0.1639092802768573, 0.12985310223884883, 0.1372331744991243]


DIGESTS = {
    ("cvrp", "uniform", 20, 8, 0): "fd2a5362a02d2ef5",
    ("cvrp", "uniform", 500, 2, 1): "84dbe696fbe94f2d",
    ("cvrp", "clustered", 20, 8, 0): "a03aaf26cc8f1e9a",
    ("cvrp", "clustered", 500, 2, 1): "88e6adb88a1157ab",
    ("vrptw", "uniform", 20, 8, 0): "a51a0946460115a3",
    ("vrptw", "uniform", 500, 2, 1): "fbdc4be7baf0b396",
    ("vrptw", "clustered", 20, 8, 0): "b4818ba3252e766a",
    ("vrptw", "clustered", 500, 2, 1): "5bd55d9149d2e57d",
    ("pcvrp", "uniform", 20, 8, 0): "0c9ac95894edf1a9",
    ("pcvrp", "uniform", 500, 2, 1): "8db85414ee302788",
    ("pcvrp", "clustered", 20, 8, 0): "97096e62888f6a32",
    ("pcvrp", "clustered", 500, 2, 1): "ee20110cc61886a0",
    ("pcvrptw", "uniform", 20, 8, 0): "07673eff0a87d569",
    ("pcvrptw", "uniform", 500, 2, 1): "c03ad52f92f8e05f",
    ("pcvrptw", "clustered", 20, 8, 0): "5bb37da83826d38c",
    ("pcvrptw", "clustered", 500, 2, 1): "eae53973b563134b",
}  # (variant, layout, customers, count, seed): first half of a SHA-256 of all numbers


@pytest.mark.parametrize("case", DIGESTS, ids=str)
def test_digests(case: tuple[str, str, int, int, int]) -> None:
    variant, layout, n, count, seed = case
    digest = hashlib.sha256()
    for problem in generate(variant, n, count=count, seed=seed, layout=layout):
        parts = [getattr(problem, field) for field in FIELDS]
        digest.update(b"".join(np.asarray(part, "<f8").tobytes() for part in parts if part is not None))
    assert digest.hexdigest()[:16] == DIGESTS[case]


def test_torch_is_not_imported(tmp_path: Path) -> None:
    out = tmp_path / "set.npz"
    for code in (
        "import ndsvrp.generate as g; [g.generate(v, 20) for v in ('cvrp', 'vrptw', 'pcvrptw')]",
        f"from ndsvrp.cli import app; app(['generate', 'vrptw', '-n', '9', '--out', {str(out)!r}])",
    ):
        check = "import sys, atexit; atexit.register(lambda: print('torch' in sys.modules)); "
        done = subprocess.run([sys.executable, "-c", check + code], capture_output=True, text=True)
        assert done.stdout.endswith("False\n"), done.stdout + done.stderr
    assert out.exists()


@pytest.mark.parametrize("variant", VARIANTS)
def test_sets_extend(variant: str) -> None:
    short, long = generate(variant, 40, count=3, seed=5), generate(variant, 40, count=6, seed=5)
    assert all(map(same, short, long))
    assert all(map(same, generate(variant, 40, count=2, seed=5, first=4), long[4:]))
    assert [p.name for p in long[4:]] == [f"{variant}40-seed5-0004", f"{variant}40-seed5-0005"]


def test_seeds_and_instances_differ() -> None:
    problems = [*generate("vrptw", 20, count=4, seed=5), *generate("vrptw", 20, count=4, seed=6)]
    assert len({p.coordinates.tobytes() for p in problems}) == 8
    assert len({p.windows.tobytes() for p in problems}) == 8


def test_variants_of_a_layout_share_customers() -> None:
    cvrp, vrptw, pcvrp, both = (
        generate(v, 50, seed=3, layout="clustered")[0] for v in ("cvrp", "vrptw", "pcvrp", "pcvrptw")
    )
    for other in (vrptw, pcvrp, both):
        assert np.array_equal(cvrp.coordinates, other.coordinates)
        assert np.array_equal(cvrp.demand, other.demand)
        assert cvrp.capacity == other.capacity
    assert np.array_equal(vrptw.windows, both.windows)
    assert np.array_equal(pcvrp.prize, both.prize)


# --- all of them pass the gate -----------------------------------------------------------------


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("n", [1, 2, 3, 10, 1000, 10_000])
@pytest.mark.parametrize("layout", ["uniform", "clustered"])
def test_every_size_of_every_variant(variant: str, n: int, layout: str) -> None:
    (problem,) = generate(variant, n, seed=2, layout=layout)
    assert problem.customers == n
    assert variant_of(problem).name == variant


@settings(max_examples=60, deadline=None)
@given(
    n=st.integers(1, 60),
    seed=st.integers(0, 2**64),
    depot=st.sampled_from(DepotPosition.__args__),
    customers=st.sampled_from(CustomerPosition.__args__),
    demand=st.sampled_from(DemandKind.__args__),
    route_size=st.sampled_from(RouteSize.__args__),
    horizon=st.floats(0.01, 5),
    width=st.floats(0.01, 3),
    service=st.floats(0, 1),
)
def test_every_setting_passes_the_gate(
    n: int, seed: int, depot: Any, customers: Any, demand: Any, route_size: Any,
    horizon: float, width: float, service: float,
) -> None:  # fmt: skip
    places_ = Clustered(depot=depot, customers=customers, demand=demand, route_size=route_size)
    times = Windows(horizon=horizon, width=width, service=service)
    (problem,) = generate("pcvrptw", n, seed=seed, clustered=places_, windows=times)
    required = problem.replace(prize=None)  # now the gate also checks that everyone can be reached in time
    assert required.customers == n


# --- uniform -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n", "capacity"),
    [
        (100, 50), (500, 100), (1000, 200), (2000, 300),  # the paper's
        (1, 30), (20, 30), (50, 40), (75, 45), (300, 75), (750, 150), (1500, 250), (10_000, 300),
    ],
)  # fmt: skip
def test_uniform_capacity(n: int, capacity: int) -> None:
    assert uniform_capacity(n) == capacity
    assert generate("cvrp", n)[0].capacity == capacity


def test_uniform_distribution() -> None:
    problems = pooled(count=50)
    xy = np.concatenate([p.coordinates for p in problems])
    assert xy.min() >= 0
    assert xy.max() <= 1
    assert xy.mean(axis=0) == pytest.approx([0.5, 0.5], abs=0.01)
    assert xy.std(axis=0) == pytest.approx([12**-0.5] * 2, abs=0.01)
    depots = np.array([p.coordinates[0] for p in problems])
    assert depots.std(axis=0) == pytest.approx([12**-0.5] * 2, abs=0.06)
    values, counts = np.unique(np.concatenate([p.demand[1:] for p in problems]), return_counts=True)
    assert values.tolist() == list(range(1, 10))
    assert counts / counts.sum() == pytest.approx([1 / 9] * 9, abs=0.01)


def test_uniform_settings() -> None:
    (problem,) = generate("cvrp", 300, uniform=Uniform(smallest=4, largest=5), capacity=17)
    assert set(problem.demand[1:]) == {4.0, 5.0}
    assert problem.capacity == 17
    with pytest.raises(InstanceError, match="is above the capacity 3"):
        generate("cvrp", 10, uniform=Uniform(smallest=4, largest=5), capacity=3)


# --- the X generator ---------------------------------------------------------------------------


@pytest.mark.parametrize("customers", CustomerPosition.__args__)
@pytest.mark.parametrize("n", [100, 10_000])
def test_no_two_customers_share_a_point(customers: Any, n: int) -> None:
    for problem in clustered(count=3, n=n, customers=customers):
        xy = places(problem)
        assert np.array_equal(xy / 1000, problem.coordinates[1:])
        assert len(np.unique(xy, axis=0)) == n
        assert not np.any(np.all(xy == 500, axis=1))  # nobody lives at the depot
        assert xy.min() >= 0
        assert xy.max() <= 1000


def test_depot_position() -> None:
    assert {tuple(p.coordinates[0]) for p in clustered(depot="centred")} == {(0.5, 0.5)}
    assert {tuple(p.coordinates[0]) for p in clustered(depot="cornered")} == {(0.0, 0.0)}
    anywhere = np.array([p.coordinates[0] for p in clustered(count=200, n=5, depot="random")])
    assert len(np.unique(anywhere, axis=0)) == 200
    assert anywhere.mean(axis=0) == pytest.approx([0.5, 0.5], abs=0.06)
    assert anywhere.std(axis=0) == pytest.approx([12**-0.5] * 2, abs=0.04)


def test_customer_position() -> None:
    nearest = {kind: means(clustered(customers=kind))["distance to the nearest"] for kind in CustomerPosition.__args__}
    # On average 0.5 / √n = 0.035 apart when anywhere (a little more at the border), much less in clusters.
    assert nearest["random"] == pytest.approx(0.0365, abs=0.001)
    assert nearest["clustered"] == pytest.approx(0.0234, abs=0.002)
    assert nearest["clustered"] < nearest["random-clustered"] < nearest["random"]


def test_half_of_the_random_clustered_are_anywhere() -> None:
    # Tiny clusters: the half around the one seed stays within 40 grid units.
    for problem in clustered(count=3, n=101, customers="random-clustered", seeds=(1, 1), halving=1):
        xy = places(problem)
        anywhere, around = xy[:50], xy[50:]
        assert np.ptp(around, axis=0).max() < 40
        assert np.ptp(anywhere, axis=0).min() > 800


@pytest.mark.slow
def test_attraction_halves() -> None:
    # Around a single seed the density falls as 2^(-d / 40): the mean distance is 2 · 40 / ln 2 = 115 in the
    # plane. Seeds away from the border are looked at, and distances within 300.
    distances = []
    for problem in clustered(count=800, n=100, seeds=(1, 1)):
        xy = places(problem)
        if np.all(np.abs(xy[0] - 500) < 200):
            distances.append(np.hypot(*(xy[1:] - xy[0]).T))
    pooled_distances = np.concatenate(distances)
    pooled_distances = pooled_distances[pooled_distances < 300]
    scale = 40 / math.log(2)
    r = np.arange(0, 300, 0.1)
    density = r * np.exp(-r / scale)
    assert pooled_distances.mean() == pytest.approx(np.sum(r * density) / np.sum(density), rel=0.02)


@pytest.mark.slow
def test_seeds_and_reach_of_the_attraction() -> None:
    def nearest(**options: Any) -> float:
        return means(clustered(**options))["distance to the nearest"]

    assert nearest(seeds=(1, 1)) < nearest(seeds=(8, 8))  # fewer seeds, denser clusters
    assert nearest(halving=40 * math.log(2)) < nearest(halving=40)  # exp(-d / 40), as in Uchoa et al.


@pytest.mark.slow
def test_crowded_clusters_still_end() -> None:
    # 2,000 customers around one seed whose attraction halves with each grid step: they fill a disc of
    # radius √(2000 / π) = 25.
    (problem,) = clustered(count=1, n=2000, seeds=(1, 1), halving=1)
    xy = places(problem)
    assert len(np.unique(xy, axis=0)) == 2000
    assert np.median(np.hypot(*(xy - xy[0]).T)) < 25


@pytest.mark.parametrize(
    ("kind", "low", "high"), [("1-10", 1, 10), ("5-10", 5, 10), ("1-100", 1, 100), ("50-100", 50, 100)]
)
def test_demand_ranges(kind: Any, low: int, high: int) -> None:
    demand = np.concatenate([p.demand[1:] for p in clustered(demand=kind)])
    assert set(demand) == set(range(low, high + 1))
    assert demand.mean() == pytest.approx((low + high) / 2, rel=0.02)


def test_unitary_demand_counts_customers() -> None:
    for problem in clustered(demand="unitary", route_size="5-8"):
        assert set(problem.demand[1:]) == {1.0}
        assert problem.capacity in (5, 6, 7)  # the whole part of the route size


def test_demand_by_quadrant() -> None:
    for problem in clustered(demand="quadrant", customers="random", n=500, count=5):
        x, y = places(problem).T
        heavy = (x < 500) == (y < 500)
        assert (problem.demand[1:][heavy].min(), problem.demand[1:][heavy].max()) == pytest.approx((51, 100), abs=3)
        assert (problem.demand[1:][~heavy].min(), problem.demand[1:][~heavy].max()) == pytest.approx((1, 50), abs=3)


def test_many_small_and_few_large() -> None:
    shares = []
    for problem in clustered(demand="many-small", n=500, count=20):
        demand = problem.demand[1:]
        assert set(demand) <= {*range(1, 11), *range(50, 101)}
        route_size = problem.capacity / demand.mean()
        shares.append(np.mean(demand >= 50) * route_size)
        assert 0 < np.mean(np.flatnonzero(demand >= 50)) - 150 < 200  # spread over the customers, not in front
    assert np.mean(shares) == pytest.approx(1.5, rel=0.02)


@pytest.mark.parametrize("size", RouteSize.__args__)
def test_route_size(size: Any) -> None:
    low, high = (3.0, 25.0) if size == "triangular" else map(float, size.split("-"))
    sizes = np.array([p.capacity / p.demand[1:].mean() for p in clustered(count=100, n=100, route_size=size)])
    assert sizes.min() >= low
    assert sizes.max() <= high + 0.25  # capacities are rounded up
    mean = (3 + 6 + 25) / 3 if size == "triangular" else (low + high) / 2
    assert sizes.mean() == pytest.approx(mean + 0.1, abs=0.12 * (high - low))


def test_the_capacity_carries_the_largest_demand() -> None:
    for problem in clustered(demand="many-small", route_size="3-5", n=5, count=50):
        assert problem.capacity >= problem.demand.max()


# --- windows -----------------------------------------------------------------------------------


def test_windows() -> None:
    for problem in pooled("vrptw", count=20):
        assert problem.windows[0].tolist() == [0, 1.8]
        assert problem.service.tolist() == [0.0] + [0.05] * 200
        ticks = problem.windows * 1000
        assert np.abs(ticks - np.rint(ticks)).max() < 1e-9
        away = np.ceil(np.hypot(*(places(problem) - 500).T) - 1e-9)
        ready, due = np.rint(ticks[1:]).T
        earliest, latest = away + 1, 1749 - away
        assert np.all(ready >= earliest)
        assert np.all(due <= latest)
        width = due - ready
        assert width.min() >= 200
        assert width.max() == 400
        assert np.all((width == 400) | (ready == earliest) | (due == latest))


def test_window_centres_are_uniform() -> None:
    positions = []
    for problem in pooled("vrptw", count=50):
        away = problem.length(0, np.arange(1, 201))
        ready, due = problem.windows[1:].T
        whole = (due - ready) > 0.3995
        centre, room = (ready + due)[whole] / 2, (1.75 - 2 * away)[whole]
        positions.append((centre - away[whole] - 0.2) / (room - 0.4))
    share = np.concatenate(positions)
    assert np.quantile(share, [0.25, 0.5, 0.75]) == pytest.approx([0.25, 0.5, 0.75], abs=0.02)


def test_the_horizon_grows_for_a_depot_in_the_corner() -> None:
    options = {"clustered": Clustered(depot="cornered", customers="random"), "windows": Windows()}
    for problem in pooled("vrptw", count=10, **options):
        away = np.ceil(np.hypot(*places(problem).T) - 1e-9)
        assert problem.windows[0, 1] == pytest.approx((2 * (away.max() + 1) + 50 + 200) / 1000)
        assert np.diff(problem.windows[1:], axis=1).min() > 0.1999


def test_window_settings() -> None:
    (problem,) = generate("vrptw", 300, windows=Windows(horizon=5, width=1, service=0.25, tick=0.01))
    assert problem.windows[0].tolist() == [0, 5]
    assert set(problem.service[1:]) == {0.25}
    assert np.diff(problem.windows[1:], axis=1).max() == pytest.approx(1)
    assert np.array_equal(problem.windows, np.rint(problem.windows * 100) / 100)


# --- prizes ------------------------------------------------------------------------------------


def test_prizes() -> None:
    for problem in pooled("pcvrp", count=20):
        prize, demand = problem.prize[1:], problem.demand[1:]
        floor = 0.1 + 0.05 * (demand - 1) / 9  # half of it by demand, from 1 to 10
        assert np.all(prize >= floor)
        assert np.all(prize <= floor + 0.05)
        assert prize.mean() == pytest.approx(0.15, abs=0.006)
        assert problem.prize[0] == 0
        assert problem.required.sum() == 0


def test_prize_settings() -> None:
    (problem,) = generate("pcvrp", 200, prizes=Prizes(low=2, high=4, share=1))
    expected = 2 + 2 * (problem.demand[1:] - 1) / 9
    assert problem.prize[1:] == pytest.approx(expected)
    (chance,) = generate("pcvrp", 200, prizes=Prizes(low=2, high=4, share=0))
    assert abs(np.corrcoef(chance.prize[1:], chance.demand[1:])[0, 1]) < 0.2
    (equal,) = generate("pcvrp", 9, clustered=Clustered(demand="unitary"), prizes=Prizes(share=1))
    assert equal.prize[1:] == pytest.approx(0.15)


# --- against the paper's sets ------------------------------------------------------------------


@pytest.mark.slow
def test_statistics_of_the_papers_sets() -> None:
    # Means over the paper's test sets of 500 customers, by `python -m ndsvrp.generate.compare`.
    cvrp = means(generate("cvrp", 500, count=30, seed=1))
    assert cvrp == pytest.approx(
        {"demand": 5.0, "capacity": 100, "distance to the depot": 0.52, "distance to the nearest": 0.0227}, rel=0.06
    )
    both = means(generate("pcvrptw", 500, count=60, seed=1))
    paper = {
        "demand": 5.486,
        "capacity": 54.89,
        "distance to the depot": 0.365,
        "distance to the nearest": 0.0155,
        "window width": 0.3573,
        "windows of full width": 0.5718,
        "ready time": 0.697,
        "prize": 0.15,
        "correlation of prize and demand": 0.7434,
    }
    assert both == pytest.approx(paper, rel=0.08)


def test_the_papers_test_seeds_are_named() -> None:
    assert {1233, 1234} == TEST_SEEDS


# --- refusals ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: generate("cvrpp", 5), "unknown variant 'cvrpp' (known: cvrp, vrptw, pcvrp, pcvrptw)"),
        (lambda: generate("cvrp", 5, layout="ring"), "unknown layout 'ring' (known: uniform, clustered)"),
        (lambda: generate("cvrp", 0), "n must be at least 1, got 0"),
        (lambda: generate("cvrp", "20"), "n must be a whole number, got '20'"),
        (
            lambda: generate("cvrp", 5, seeds=1),
            "generate: unknown 'seeds' (seed takes it; known: variant, n, count, seed, first, layout, capacity, "
            "uniform, clustered, windows, prizes)",
        ),
        (lambda: generate("cvrp", 5, count=-1), "count must be at least 0, got -1"),
        (lambda: generate("cvrp", 5, seed=-1), "seed must be at least 0, got -1"),
        (
            lambda: generate("cvrp", 5, windows=Windows()),
            "settings for 'windows' were given, which a uniform cvrp does not have",
        ),
        (
            lambda: generate("vrptw", 5, windows={"width": 1}),  # type: ignore[arg-type]
            "windows must be a Windows, got dict (from ndsvrp.generate import Windows)",
        ),
        (
            lambda: generate("cvrp", 5, uniform={}),  # type: ignore[arg-type]
            "uniform must be a Uniform, got dict (from ndsvrp.generate import Uniform)",
        ),
        (
            lambda: generate("vrptw", 5, uniform=Uniform()),
            "settings for 'uniform' were given, which a clustered vrptw does not have",
        ),
        (
            lambda: Clustered(depot="middle"),  # type: ignore[arg-type]
            "unknown depot position 'middle' (known: random, centred, cornered)",
        ),
        (
            lambda: Clustered(route_size="8-13"),  # type: ignore[arg-type]
            "unknown route size '8-13' (known: 3-5, 5-8, 8-12, 12-16, 16-25, 25-50, triangular)",
        ),
        (lambda: Clustered(seeds=(0, 3)), "seeds must satisfy 1 <= fewest <= most, got 0 and 3"),
        (lambda: Clustered(seeds=(1, 2**63)), f"seeds must be below 2,147,483,648, got {2**63}"),
        (lambda: Uniform(largest=2**31), f"largest must be below 2,147,483,648, got {2**31}"),
        (lambda: Clustered(halving=0), "halving must be positive, got 0"),
        (lambda: Uniform(smallest=3, largest=2), "demands must satisfy 0 <= smallest <= largest, got 3 and 2"),
        (lambda: Windows(width="1"), "width must be a number, got '1'"),
        (lambda: Prizes(low=None), "low must be a number, got None"),
        (lambda: Uniform(largest=9.5), "largest must be a whole number, got 9.5"),
        (lambda: Clustered(halving=True), "halving must be a number, got True"),
        (lambda: Clustered(seeds=3), "seeds must be two numbers, got 3"),
        (lambda: Clustered(seeds=(2, "6")), "seeds must be a whole number, got '6'"),
        (lambda: Windows(width=-1), "width must be positive, got -1"),
        (lambda: Windows(service=-1), "service must not be negative, got -1"),
        (lambda: Prizes(low=0), "prizes must satisfy 0 < low <= high, got 0 and 0.2"),
        (lambda: Prizes(share=2), "share must be between 0 and 1, got 2"),
        (
            lambda: generate("vrptw", 1001 * 1001),
            "1002001 customers do not fit on a grid of 1001 x 1001 points",
        ),
    ],
)  # fmt: skip
def test_refuses(call: Any, message: str) -> None:
    with pytest.raises(NdsError) as caught:
        call()
    assert str(caught.value) == message


@pytest.mark.parametrize("record", [Uniform, Clustered, Windows, Prizes])
def test_every_setting_is_described(record: Any) -> None:
    for field in dataclasses.fields(record):
        assert field.metadata["doc"].endswith(".")
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(record(), dataclasses.fields(record)[0].name, 1)
