"""Your own instances: what is refused, what is held back, and what resampling makes of the others."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from gpu.instance_cases import CPU, Host
from ndsvrp import write, write_set
from ndsvrp.errors import NdsError
from ndsvrp.generate import generate
from ndsvrp.generate.resample import NEAR, Resampled
from ndsvrp.problem import Problem
from ndsvrp.train.config import Recipe, Source, TrainConfig, Validation
from ndsvrp.train.data import BatchMaker, Share
from ndsvrp.train.gpu_batch import GpuBatch, draw_on_gpu
from ndsvrp.train.own_instances import (
    MOST_HELD_BACK,
    OwnInstances,
    neighbourhood,
    pool_of,
    read_instances,
    read_own,
    whole_demand,
)  # fmt: skip
from ndsvrp.variants import VARIANTS, variant_of

FIELDS = ("coordinates", "demand", "capacity", "windows", "service", "prize")


def own(variant: str, sizes: Sequence[int] = (12, 12, 20), **how: Any) -> OwnInstances:
    problems = [generate(variant, n, seed=i, **how)[0] for i, n in enumerate(sizes)]
    return OwnInstances(variant, problems, [])


def symmetric(points: Any) -> list[Any]:
    """The eight symmetries of the unit square."""
    x, y = points[..., 0], points[..., 1]
    pairs = [(a, b) for a in (x, 1 - x) for b in (y, 1 - y)]
    return [np.stack(pair, axis=-1) for a, b in pairs for pair in ((a, b), (b, a))]


# --- resampling ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("n", [7, 12, 30])
def test_the_same_bits_in_numpy_and_torch(variant: str, n: int) -> None:
    """And valid problems of the size that is asked for, by their number alone."""
    recipe = own(variant).recipe(n)
    numbers = np.arange(2**33, 2**33 + 6)
    one, other = recipe.draw(3, numbers), recipe.draw(3, torch.from_numpy(numbers))
    for name, value in vars(one).items():
        assert value is None or np.array_equal(getattr(other, name).numpy(), value), name
    for i, problem in enumerate(recipe.problems(3, 2**33, 6)):
        assert (problem.customers, variant_of(problem).name, problem.vehicles) == (n, variant, None)
        assert all(np.array_equal(getattr(problem, name), getattr(one.problem(i), name)) for name in FIELDS)
    later = recipe.draw(3, numbers[2:5])
    assert np.array_equal(later.coordinates, one.coordinates[2:5])
    assert not np.array_equal(recipe.draw(4, numbers).coordinates, one.coordinates)


def test_customers_stay_near_and_keep_their_data_together() -> None:
    """Each is within reach of a given customer, with all data of that one or of one of its nearest."""
    given = generate("pcvrptw", 25, seed=5)[0]
    given = given.replace(prize=np.arange(26) * given.side(), service=np.arange(26) / 1e4)  # both say whose they are
    pool = pool_of([given])
    drawn = Resampled(pool, "pcvrptw", 25).draw(1, np.arange(40))
    shares = []
    for points, demand, prize, service in zip(drawn.coordinates, drawn.demand, drawn.prize, drawn.service, strict=True):
        donor = np.rint(prize[1:]).astype(int) - 1
        assert np.array_equal(service[1:], pool.service[0][donor]) and np.array_equal(demand[1:], pool.demand[0][donor])
        fitting = []
        for turned in symmetric(points):
            moved = np.abs(turned[1:, None] - pool.points[0]).max(axis=2)  # (drawn, given)
            origin = (moved <= pool.reach[0] + 1e-12) & (pool.near[0][None] == donor[:, None, None]).any(axis=2)
            if np.allclose(turned[0], pool.depot[0]) and origin.any(axis=1).all():
                fitting.append((moved, origin))
        assert len(fitting) == 1, "one of the symmetries, and no other"
        moved, origin = fitting[0]
        assert moved.min() > 1e-9, "all of them were moved"
        assert len(set(moved.argmin(axis=1).tolist())) <= 23, "a fifth is left out; a move may lead past another one"
        shares.append(origin[np.arange(25), donor].mean())
    assert 0.5 < np.mean(shares) < 0.8, "half of them keep their data, and some are within reach of the donor"
    assert len({points.tobytes() for points in drawn.coordinates}) == 40, "no two are alike"


def test_windows_can_be_kept() -> None:
    """Of a depot that opens late, also where customers are moved to the edge: the gate of `Problem` is passed."""
    base = generate("vrptw", 15, seed=1)[0]
    late = base.replace(windows=base.windows + 50.0)
    one, other = (Resampled(pool_of([problem]), "vrptw", 15).draw(1, np.arange(30)) for problem in (base, late))
    assert np.allclose(one.windows, other.windows, atol=1e-9) and np.all(one.windows[:, 0, 0] == 0)
    widths = one.windows[:, 1:, 1] - one.windows[:, 1:, 0]
    assert widths.min() > 0 and np.median(widths) == pytest.approx(0.4 / base.side())
    for i in range(30):
        one.problem(i)
    whole_day = base.replace(windows=np.tile(base.windows[0], (16, 1)))
    drawn = Resampled(pool_of([whole_day]), "vrptw", 15).draw(1, np.arange(5))
    assert np.all(drawn.windows[:, 1:, 0] == 0) and np.all(drawn.windows[:, 1:, 1] >= drawn.windows[:, :1, 1] - 1e-12)


def test_scale_does_not_matter() -> None:
    """Coordinates, times and prizes in other units give the same instances, in unit scale."""
    base = generate("pcvrptw", 10, seed=2)[0]
    large = base.replace(
        coordinates=base.coordinates * 4096 - 77, windows=base.windows * 4096, service=base.service * 4096,
        prize=base.prize * 4096,
    )  # fmt: skip
    one, other = (Resampled(pool_of([problem]), "pcvrptw", 10).draw(1, np.arange(4)) for problem in (base, large))
    for name in FIELDS:
        assert np.allclose(getattr(one, name), getattr(other, name), rtol=1e-9, atol=1e-9), name
    assert np.ptp(pool_of([large]).points[0], axis=0).max() <= 1


def test_by_a_matrix_with_coordinates() -> None:
    """Points take the distances of the matrix, and times those of the durations."""
    base = generate("vrptw", 12, seed=3)[0]
    nodes = np.arange(13)
    distance = 3.0 * base.length(nodes[:, None], nodes[None])
    by_matrix = base.replace(
        distance=distance, duration=distance * 20, windows=base.windows * 60, service=base.service * 60
    )
    one, other = pool_of([base]), pool_of([by_matrix])
    lengths = [np.linalg.norm(pool.points[0, :, None] - pool.points[0], axis=2) for pool in (one, other)]
    side = np.ptp(np.vstack([one.depot, one.points[0]]), axis=0).max()
    assert side == pytest.approx(1.0)
    ratio = lengths[1].sum() / lengths[0].sum()  # another orientation has another bounding box
    assert np.allclose(lengths[1], ratio * lengths[0], atol=1e-6)
    assert np.allclose(other.windows, ratio * one.windows, rtol=1e-6)
    assert np.allclose(other.service, ratio * one.service, rtol=1e-6)


@pytest.mark.parametrize("n", [1, 2, 3, 40])
def test_hardly_any_customers(n: int) -> None:
    """One customer, and customers at one place."""
    alone = Problem(coordinates=[[0, 0], [3, 4]], demand=[0, 2], capacity=5)
    same = Problem(coordinates=[[1, 1]] * 4, demand=[0, 1, 2, 3], capacity=5)
    for given in (alone, same):
        for problem in Resampled(pool_of([given]), "cvrp", n).problems(1, 0, 3):
            assert problem.customers == n and set(problem.demand[1:]) <= set(given.demand[1:])


def test_neighbours() -> None:
    near, far = neighbourhood(np.array([[0.0, 0], [1, 0], [3, 0], [7, 0], [15, 0]]))
    assert near.shape == (5, 1 + NEAR)
    assert near[0].tolist() == [0, 1, 2, 3, 4, 0, 0, 0, 0] and near[3].tolist() == [3, 2, 1, 0, 4, 3, 3, 3, 3]
    assert far.tolist() == [7, 6, 4, 7, 14]
    random = np.random.default_rng(1).random((300, 2))
    near, far = neighbourhood(random)
    apart = np.linalg.norm(random[:, None] - random, axis=2)
    assert np.array_equal(near, np.argsort(apart, axis=1)[:, : 1 + NEAR])
    assert np.allclose(far, np.sort(apart, axis=1)[:, 3])


def test_whole_demands() -> None:
    def demands(demand: Any, capacity: float) -> Any:
        found, room = whole_demand(Problem(coordinates=[[0, 0], [1, 0], [2, 0]], demand=demand, capacity=capacity))
        return found.tolist(), room

    assert demands([0, 3, 4], 7) == ([0, 3, 4], 7)
    assert demands([0, 0.5, 1.25], 2.5) == ([0, 2000, 5000], 10_000)
    assert demands([0, 2e9, 1e9], 4e9) == ([0, 5000, 2500], 10_000)


def test_customers_that_nobody_can_serve_are_left_out() -> None:
    problem = Problem(
        coordinates=[[0, 0], [1, 0], [9, 0]], demand=[0, 1, 1], capacity=2, prize=[0, 1, 1],
        windows=[[0, 10], [0, 10], [0, 10]],
    )  # fmt: skip
    assert pool_of([problem]).customers.tolist() == [1]
    with pytest.raises(NdsError, match="lost: no vehicle can serve any of its customers"):
        pool_of([problem.replace(windows=[[0, 1], [0, 1], [0, 1]], name="lost")])


def test_batches_on_both_devices(tmp_path: Path) -> None:
    """A run on a GPU trains on the instances of one on a CPU; the copy on the device is made once."""
    config = config_of(tmp_path, "vrptw", (8, 8, 10, 10, 30))
    found = read_own(config)
    here = BatchMaker(config, Share.of(4, 0, 1), own=found)
    engine: Any = SimpleNamespace(device=Host(), neighbours=5)
    there = BatchMaker(config, Share.of(4, 0, 1), lambda *which: draw_on_gpu(engine, CPU, *which), found)
    for number in range(4):
        one, other = here(number), there(number)
        assert (one.problem, one.customers) == (other.problem, other.customers)
        assert isinstance(other.problems, GpuBatch) and not isinstance(one.problems, GpuBatch)
        for i, problem in enumerate(one.problems):
            theirs = other.problems.instances.problem(i)
            assert all(np.array_equal(getattr(problem, name), getattr(theirs, name)) for name in FIELDS)
    pools = [recipe.pool for recipe in next(iter(found.values()))._recipes.values()]
    assert all(pool.like(torch.zeros(1)) is pool.like(torch.ones(1)) for pool in pools)


# --- reading ---------------------------------------------------------------------------------------------


def config_of(folder: Path, variant: str, sizes: Sequence[int], **validation: Any) -> TrainConfig:
    path = folder / "mine"
    path.mkdir()
    for i, n in enumerate(sizes):
        write(path / f"i{i}.json", generate(variant, n, seed=i)[0].replace(name=f"i{i}"))
    source = Source(problem=variant, customers=tuple(sorted(set(sizes))), files=str(path))
    return TrainConfig(train=Recipe(seed=3, batch=4), validation=Validation(**validation), data=(source,))


def test_split() -> None:
    """A share of every size is held back, the same with the same seed; nothing is on both sides."""
    problems = [generate("cvrp", n, seed=i)[0].replace(name=f"{n}-{i}") for n in (5, 9, 30) for i in range(8)]
    folder = [problems[i] for i in np.random.default_rng(1).permutation(24)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ndsvrp.train.own_instances.read_set", lambda path: folder)
        splits = [read_instances("x", 0.25, seed) for seed in (2, 2, 3)]
    names = [({p.name for p in s.training}, [p.name for p in s.held_back]) for s in splits]
    assert names[0] == names[1] and names[0] != names[2]
    for training, held_back in names:
        assert (len(training), len(held_back)) == (18, 6) and not training & set(held_back)
        assert [name.split("-")[0] for name in held_back] == ["5", "5", "9", "9", "30", "30"]
    assert splits[0].sizes() == (5, 9, 30)


@pytest.mark.parametrize(("count", "share", "expected"), [(4, 0.0, 2), (4, 0.9, 2), (9, 0.5, 4), (200, 0.9, 32)])
def test_how_many_are_held_back(monkeypatch: pytest.MonkeyPatch, count: int, share: float, expected: int) -> None:
    problems = [Problem(coordinates=[[0, 0], [i, 1]], demand=[0, 1], capacity=1) for i in range(count)]
    monkeypatch.setattr("ndsvrp.train.own_instances.read_set", lambda path: problems)
    found = read_instances("x", share, 2)
    assert (len(found.held_back), len(found.training)) == (expected, count - expected) and expected <= MOST_HELD_BACK


def test_sizes_of_batches() -> None:
    """Six at most, from the smallest to the largest, as many as there are instances of about that size."""
    many = OwnInstances("cvrp", [SimpleNamespace(customers=n) for n in range(10, 60)], [])  # type: ignore[misc, arg-type]
    assert many.sizes() == (10, 20, 30, 39, 49, 59)
    alike = own("cvrp", (5, 6, 12, 13, 40)).recipe
    assert [sorted(alike(n).pool.customers.tolist()) for n in (5, 12, 40)] == [[5, 6], [6, 12, 13], [40]]
    assert sorted(alike(1000).pool.customers.tolist()) == [40], "the nearest, if none is similar"


def test_a_set_is_read(tmp_path: Path) -> None:
    write_set(tmp_path / "set.npz", generate("pcvrp", 6, count=5, seed=1))
    found = read_instances(tmp_path / "set.npz", 0.25, 2)
    assert (found.variant, len(found.training), len(found.held_back)) == ("pcvrp", 3, 2)


def test_the_fleet_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    problems = [p.replace(vehicles=9) for p in generate("cvrp", 5, count=4, seed=1)]
    monkeypatch.setattr("ndsvrp.train.own_instances.read_set", lambda path: problems)
    assert {problem.vehicles for problem in read_instances("x", 0.25, 2).held_back} == {None}


def problems_for(kind: str) -> list[Problem]:
    plain = [problem.replace(name=f"p{i}") for i, problem in enumerate(generate("cvrp", 4, count=4, seed=1))]
    matrix = np.ones((5, 5)) - np.eye(5)
    return {
        "few": plain[:3],
        "one": plain[:1],
        "mixed": [*plain[:3], generate("vrptw", 4, seed=1)[0].replace(name="late")],
        "matrix": [*plain[:3], Problem(demand=[0, 1, 1, 1, 1], capacity=2, distance=matrix, name="far")],
        "limit": [*plain[:3], plain[3].replace(max_distance=9.0)],
        "limits": [*plain[:3], plain[3].replace(max_distance=9.0, max_duration=9.0)],
    }[kind]


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("one", "x: has 1 instance, and training on your own needs 4 or more, some of which are held back"),
        ("few", "x: has 3 instances, and training on your own needs 4 or more, some of which are held back"),
        ("mixed", "x: p0 is a CVRP and late a VRPTW: train on one problem at a time"),
        ("matrix", "x: far has a matrix and no coordinates, which training needs"),
        ("limit", "x: p3 has a distance limit, which training does not support"),
        ("limits", "x: p3 has a distance limit and duration limit, which training does not support"),
    ],
)
def test_refused(monkeypatch: pytest.MonkeyPatch, kind: str, message: str) -> None:
    monkeypatch.setattr("ndsvrp.train.own_instances.read_set", lambda path: problems_for(kind))
    with pytest.raises(NdsError) as caught:
        read_instances("x", 0.25, 2)
    assert str(caught.value) == message


def test_files_of_another_problem(tmp_path: Path) -> None:
    config = config_of(tmp_path, "cvrp", (4, 4, 4, 4))
    wrong = TrainConfig(data=(Source(problem="pcvrp", files=config.data[0].files),))
    with pytest.raises(NdsError, match="mine: holds cvrp instances, the source says pcvrp"):
        read_own(wrong)
    with pytest.raises(NdsError, match="layout, depot and customers_per_route are for generated instances"):
        Source(files="x", layout="uniform")
