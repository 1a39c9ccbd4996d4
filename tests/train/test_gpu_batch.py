"""Batches of instances: valid, a function of their number, the same bits in numpy, torch and kernels."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from generator_reference import full_problem
from gpu.emulated import EmulatedDevice
from gpu.instance_cases import CPU, SOURCES, Host, cells_by, cells_of, named
from ndsvrp.counter_random import Words, key_of
from ndsvrp.generate import Clustered, generate
from ndsvrp.generate.attraction import halved, place
from ndsvrp.generate.compare import statistics
from ndsvrp.generate.config import CustomerPosition, DemandKind, RouteSize
from ndsvrp.generate.instances import Instances, draw
from ndsvrp.policy.inputs import static_inputs
from ndsvrp.problem import Problem
from ndsvrp.search.plane import plane
from ndsvrp.train.config import Recipe, Source, TrainConfig
from ndsvrp.train.data import BatchMaker, Share, recipe_of
from ndsvrp.train.gpu_batch import GpuBatch, draw_on_gpu, inputs_of, place_clustered
from ndsvrp.train.own_instances import OwnInstances
from ndsvrp.train.prefetch import GpuPrefetch
from ndsvrp.variants import VARIANTS, variant_of

FIELDS = ("coordinates", "demand", "capacity", "windows", "service", "prize")


def made(source: Source, n: int, seed: int, first: int, count: int) -> Instances:
    return draw(recipe_of(source, n), seed, torch.arange(first, first + count))


def engine(device: Any, neighbours: int = 5) -> Any:
    """What `draw_on_gpu` needs of an engine."""
    return SimpleNamespace(device=device, neighbours=neighbours)


def problems(drawn: Instances) -> list[Problem]:
    return [drawn.problem(i) for i in range(len(drawn.capacity))]


def same(one: Instances, other: Instances, part: slice = slice(None)) -> bool:
    pairs = [(getattr(one, field), getattr(other, field)) for field in FIELDS]
    return all(a is b is None or torch.equal(a, b[part]) for a, b in pairs)


# --- each of them ----------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("source", SOURCES, ids=named)
def test_they_pass_the_gate(source: Source) -> None:
    """And are what the source says; what the network sees of them is what it would see of the problems."""
    for n in (1, 2, 17, 70):
        drawn = made(source, n, 4, 2, 8)
        found = problems(drawn)
        for problem in found:
            assert (problem.customers, variant_of(problem).name, problem.vehicles) == (n, source.problem, None)
            assert problem.capacity == int(problem.capacity) >= problem.demand.max()
            places = problem.coordinates
            assert places is not None and len({tuple(place) for place in places.tolist()}) == n + 1
            assert places.min() >= 0 and places.max() <= 1
            if source.layout == "clustered":
                assert np.array_equal(np.rint(places * 1000) / 1000, places), "thousandths, to the last bit"
            if source.layout == "clustered" and source.depot != "random":
                assert places[0].tolist() == ([0, 0] if source.depot else [0.5, 0.5])
            if problem.windows is not None:
                assert np.array_equal(np.rint(problem.windows * 1000) / 1000, problem.windows)
        inputs = inputs_of(drawn)
        expected = static_inputs(found, np.stack([plane(problem) for problem in found]), "cpu")
        assert all(map(torch.equal, inputs.tensors(), expected.tensors()))
        assert drawn.side().tolist() == [problem.side() for problem in found]


@pytest.mark.parametrize("source", SOURCES[::2], ids=named)
def test_nothing_is_read_or_sent(source: Source) -> None:
    """Drawn on a device that has no numbers at all: torch refuses whatever asks for one, or brings one of the CPU."""
    read: list[Any] = []
    launches: list[Any] = []
    launcher = SimpleNamespace(
        read=read.append, kernel=lambda *which: which, launch=lambda *arguments: launches.append(arguments)
    )
    there = draw_on_gpu(engine(launcher), torch.device("meta"), recipe_of(source, 30), 1, 0, 4)
    assert there.inputs.nodes.shape == (4, 31, 10) and there.inputs.nodes.is_meta
    assert [tuple(tensor.shape) for tensor in read] == [(6,)], "ticks per unit, and two lengths of routes"
    assert len(launches) == (source.layout == "clustered")


def test_nothing_is_read_or_sent_of_own_instances() -> None:
    """Those of a pool that is on the device."""
    read: list[Any] = []
    recipe = OwnInstances("pcvrptw", generate("pcvrptw", 9, count=2), []).recipe(12)
    there = draw_on_gpu(engine(SimpleNamespace(read=read.append)), torch.device("meta"), recipe, 1, 0, 4)
    assert there.inputs.nodes.shape == (4, 13, 10) and there.inputs.nodes.is_meta and len(read) == 1


def test_variants_share_places() -> None:
    """As in `generate`: only what a variant adds makes the difference."""
    for layout in ("uniform", "clustered"):
        ours = [made(Source(problem=v, layout=layout), 20, 1, 0, 3) for v in ("cvrp", "vrptw", "pcvrp", "pcvrptw")]
        for other in ours[1:]:
            assert all(torch.equal(getattr(ours[0], field), getattr(other, field)) for field in FIELDS[:3])
        assert torch.equal(ours[1].windows, ours[3].windows) and torch.equal(ours[2].prize, ours[3].prize)  # type: ignore[arg-type]


# --- by their number -------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", ["uniform", "clustered"])
@pytest.mark.parametrize("first", [0, 7, 2**32 - 3, 2**40 + 1])
def test_by_their_number_alone(layout: str, first: int) -> None:
    source = Source(problem="pcvrptw", layout=layout, customers_per_route=(3, 9))
    whole = made(source, 12, 8, first, 6)
    for begin, end in ((0, 2), (2, 6), (5, 6)):
        assert same(made(source, 12, 8, first + begin, end - begin), whole, slice(begin, end))
    others = (made(source, 12, 9, first, 6), made(source, 12, 8, first + 6, 6), made(source, 12, 8, first ^ 2**32, 6))
    for other in others:
        equal = [torch.equal(getattr(whole, field)[i], getattr(other, field)[i]) for field in FIELDS for i in range(6)]
        assert sum(equal) <= 6, "service times are the same for all; the rest by chance only"


def launched(share: Share, **recipe: Any) -> BatchMaker:
    sources = (Source(customers=(8, 16)), Source(problem="vrptw", customers=(12,), customers_per_route=(2, 4)))
    config = TrainConfig(train=Recipe(seed=3, batch=8, **recipe), data=sources)

    def make(*which: Any) -> GpuBatch:
        with pytest.MonkeyPatch.context() as patch:  # no compiler is needed
            patch.setattr("ndsvrp.train.gpu_batch.place_clustered", lambda gpu, *how: place(*how))
            return draw_on_gpu(engine(Host()), CPU, *which)

    return BatchMaker(config, share, make)


def test_shares_make_up_the_batch() -> None:
    """Also of large instances, which come in smaller batches."""
    seen = set()
    for number in range(6):
        whole = launched(Share.of(8, 0, 1), batch_customers=64)(number)
        shares = [launched(Share.of(8, rank, 2), batch_customers=64)(number) for rank in (0, 1)]
        assert isinstance(whole.problems, GpuBatch)
        assert [len(share.problems) for share in shares] == [share.share.count for share in shares]
        for rank, share in enumerate(shares):
            assert isinstance(share.problems, GpuBatch)
            half = slice(rank * share.share.count, (rank + 1) * share.share.count)
            assert same(share.problems.instances, whole.problems.instances, half)
            assert torch.equal(share.problems.inputs.nodes, whole.problems.inputs.nodes[half])
        seen.add((whole.customers, len(whole.problems)))
    assert seen == {(8, 8), (16, 4), (12, 4)}


def test_the_next_one_is_launched_ahead() -> None:
    """Before a batch is handed out, and after a jump the right ones."""
    asked: list[int] = []
    task = launched(Share.of(8, 0, 1))

    def make(number: int) -> Any:
        asked.append(number)
        return task(number)

    ahead = GpuPrefetch(make)
    batches = [ahead.take(number) for number in (0, 1, 7, 8, 3)]
    assert asked == [0, 1, 2, 7, 8, 9, 3, 4]
    for batch, number in zip(batches, (0, 1, 7, 8, 3), strict=True):
        assert batch.number == number and batch.first == 8 * number
        assert isinstance(batch.problems, GpuBatch)
        assert same(batch.problems.instances, task(number).problems.instances)  # type: ignore[union-attr]
    ahead.close()


# --- the kernel ------------------------------------------------------------------------------------------


def test_the_exponential() -> None:
    t = np.concatenate([np.linspace(0, 40, 100_001), [99.9, 100, 101, 1e9]]).astype(np.float32)
    exact = 2.0 ** -np.minimum(t, 100).astype(np.float64)
    assert np.abs(halved(t) / exact - 1).max() < 2e-7
    assert halved(np.float32(0)) == 1.0 and halved(np.float32(3)) == 0.125


CELLS = [
    (1, 5, 10**6, {"depot": "random"}),
    (2, 5, 10**6, {"depot": "cornered"}),
    (100, 4, 10**6, {}),
    (700, 2, 10**6, {"depot": "random"}),
    (50, 3, 10**6, {"seeds": (7, 32)}),
    (40, 3, 10**6, {"anywhere": 20}),
    (300, 2, 10**6, {"anywhere": 300}),
    (300, 2, 9000, {"halving": 2.0}),  # hardly a cell around the seeds is left
    (20, 2, 500, {"halving": 0.01}),  # no attraction anywhere else
    (4000, 1, 700, {"halving": 1000.0}),  # most of a round is accepted, all of it in the end
]


@pytest.mark.slow
@pytest.mark.parametrize(("n", "count", "patience", "changes"), [CELLS[i] for i in (0, 1, 4, 5)])
def test_numpy_finds_the_cells_of_the_reference(n: int, count: int, patience: int, changes: Any) -> None:
    key, first = key_of(1, 2), 2**32 - 2

    def one_by_one(words: Words, depots: Any, seeds: Any, *how: Any) -> Any:
        rows = zip(depots.tolist(), seeds.tolist(), strict=True)
        return torch.tensor([cells_of(words.of_instance(i), *row, *how) for i, row in enumerate(rows)])

    found, expected = (cells_by(each, n, key, first, count, patience, **changes) for each in (place, one_by_one))
    assert torch.equal(found, expected)


@pytest.mark.emulator
@pytest.mark.parametrize(("n", "count", "patience", "changes"), CELLS)
def test_the_kernel_finds_the_cells_of_numpy(n: int, count: int, patience: int, changes: Any) -> None:
    how = (n, key_of(1, 2), 2**32 - 2, count, patience)
    found = cells_by(partial(place_clustered, EmulatedDevice()), *how, **changes)
    assert torch.equal(found, cells_by(place, *how, **changes))
    for row in found.tolist():
        assert len(set(row)) == n + 1 and min(row) >= 0 and max(row) < 1001**2


@pytest.mark.emulator
def test_blocks_of_any_size_place_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """And so do launches of any number of them, and chunks of any size in numpy."""
    how = (150, key_of(1, 2), 3, 5, 10**6)
    expected = cells_by(place, *how)
    for threads, at_once in ((32, 1024), (96, 2), (256, 1)):
        monkeypatch.setattr("ndsvrp.train.gpu_batch.THREADS", threads)
        monkeypatch.setattr("ndsvrp.train.gpu_batch.AT_ONCE", at_once)
        assert torch.equal(cells_by(partial(place_clustered, EmulatedDevice()), *how), expected)
    monkeypatch.setitem(place.__globals__, "LARGEST_CHUNK", 7)
    assert torch.equal(cells_by(place, *how), expected)


# --- numpy and torch -------------------------------------------------------------------------------------

SETTINGS = [
    {"customers": customers, "demand": demand, "route_size": size, "depot": depot}
    for i, demand in enumerate(DemandKind.__args__)
    for customers, size, depot in [
        (CustomerPosition.__args__[i % 3], RouteSize.__args__[i], ("centred", "cornered", "random")[i % 3])
    ]
]


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("routes", [(), (1.5, 40.0)])
def test_the_same_bits_in_numpy_and_torch(variant: str, routes: tuple[float, ...]) -> None:
    usual = recipe_of(Source(problem=variant, customers_per_route=routes), 25)
    recipes = [replace(usual, layout="uniform"), *(replace(usual, clustered=Clustered(**how)) for how in SETTINGS)]  # type: ignore[arg-type]
    for recipe in recipes:
        one, other = draw(recipe, 3, np.arange(2**33, 2**33 + 9)), draw(recipe, 3, torch.arange(2**33, 2**33 + 9))
        for name, value in vars(one).items():
            tensor = getattr(other, name)
            assert tensor is value is None or np.array_equal(tensor.numpy(), value), (recipe, name)
            assert value is None or str(tensor.dtype) == f"torch.{value.dtype}"
    alone = recipe.problems(3, 2**33 + 4, 1)[0]
    assert all(np.array_equal(getattr(alone, name), getattr(one.problem(4), name)) for name in FIELDS)


# --- distributions ---------------------------------------------------------------------------------------

MANY, N = 300, 60


def apart(one: Any, other: Any) -> float:
    """Kolmogorov–Smirnov, in units of what is exceeded once in a thousand times."""
    one, other = np.sort(one), np.sort(other)
    at = np.concatenate([one, other])
    shares = (np.searchsorted(values, at, side="right") / len(values) for values in (one, other))
    return float(np.abs(np.subtract(*shares)).max() / (1.95 * (1 / len(one) + 1 / len(other)) ** 0.5))


def figures(found: list[Problem]) -> dict[str, Any]:
    """Means over the customers of each instance, and what else tells them apart."""
    rows = []
    for problem in found:
        assert problem.coordinates is not None
        away = problem.length(0, np.arange(1, N + 1))
        row = statistics(problem) | {"farthest": away.max(), "side": problem.side(), "spread": away.std()}
        row |= {"spread of demand": problem.demand[1:].std(), "routes": problem.capacity / problem.demand[1:].mean()}
        if problem.windows is not None:
            middle = problem.windows[1:].mean(axis=1)
            row |= {"horizon": problem.windows[0, 1], "middle": middle.mean(), "spread of middles": middle.std()}
        if problem.prize is not None:
            row |= {"spread of prizes": problem.prize[1:].std(), "highest prize": problem.prize[1:].max()}
        rows.append(row)
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}


@pytest.mark.slow
@pytest.mark.parametrize(
    "source",
    [
        Source(problem="pcvrptw", layout="uniform"),
        Source(problem="pcvrptw"),
        Source(problem="pcvrptw", depot="random", customers_per_route=(3, 30)),
        Source(problem="pcvrptw", depot="cornered"),
    ],
    ids=named,
)
def test_distributions_are_those_of_the_reference(source: Source) -> None:
    random, config = np.random.default_rng(12), Clustered(depot=source.depot or "centred")  # type: ignore[arg-type]
    layout, routes = source.where(), source.customers_per_route
    theirs = figures([full_problem(N, random, layout, config, routes) for _ in range(MANY)])
    ours = figures(problems(made(source, N, 11, 0, MANY)))
    assert ours.keys() == theirs.keys() and len(ours) == 19
    for name, values in ours.items():
        assert apart(values, theirs[name]) < 1, name
        mean, error = values.mean() - theirs[name].mean(), np.hypot(values.std(), theirs[name].std()) / MANY**0.5
        assert abs(mean) <= 3.5 * error + 1e-12, name


@pytest.mark.slow
def test_that_would_be_noticed() -> None:
    """A fifth more or less of anything."""
    usual = figures(generate("cvrp", N, count=MANY, seed=12, layout="clustered"))
    for name, changes in {
        "distance to the nearest": ({"halving": 32.0}, {"halving": 48.0}, {"seeds": (3, 8)}),
        "demand": ({"demand": "5-10"},),
        "capacity": ({"route_size": "12-16"},),
        "distance to the depot": ({"depot": "cornered"},),
    }.items():
        for change in changes:
            other = generate("cvrp", N, count=MANY, seed=11, layout="clustered", clustered=Clustered(**change))  # type: ignore[arg-type]
            assert apart(usual[name], figures(other)[name]) > 1, change


def test_customers_one_by_one() -> None:
    """Demands by chi-square; uniform places; where windows are between the earliest and the latest moment."""
    source = Source(problem="vrptw", layout="uniform")
    drawn = made(source, 100, 3, 0, 200)
    for demand, most, limit in (
        (drawn.demand, 9, 26.1),  # chi-square with 8 and 9 degrees of freedom, 0.1 %
        (made(Source(problem="pcvrp"), 100, 3, 0, 40).demand, 10, 27.9),
    ):
        counts = np.bincount(demand[:, 1:].flatten().numpy(), minlength=most + 1)
        assert counts[0] == 0 and len(counts) == most + 1
        expected = counts.sum() / most
        assert ((counts[1:] - expected) ** 2 / expected).sum() < limit
    even = (np.arange(20_000) + 0.5) / 20_000
    for column in drawn.coordinates[:, 1:].flatten(0, 1).T:
        assert apart(column.numpy(), even) < 1
    random = np.random.default_rng(5)
    theirs = [full_problem(100, random, "uniform", Clustered()) for _ in range(200)]
    assert drawn.windows is not None
    for ours, others in (
        (drawn.windows[:, 1:, 0], [p.windows[1:, 0] for p in theirs if p.windows is not None]),
        (drawn.windows[:, 1:, 1], [p.windows[1:, 1] for p in theirs if p.windows is not None]),
    ):
        assert apart(ours.flatten().numpy(), np.concatenate(others)) < 2, "customers of an instance share a depot"


def test_capacities_on_a_logarithmic_scale() -> None:
    source = Source(customers_per_route=(3, 12))
    drawn = made(source, 60, 3, 0, 2000)
    fitting = (drawn.capacity / drawn.demand[:, 1:].double().mean(dim=1)).numpy()
    exact = np.exp(np.log(3) + np.log(4) * (np.arange(2000) + 0.5) / 2000)
    assert fitting.min() >= 3 and fitting.max() <= 13.2
    assert apart(fitting, exact + 0.5 / 5) < 1, "rounded up by a half on average"
