"""Benchmark sets by name: what is made is what the authors published, and stays so."""

from __future__ import annotations

import hashlib
import math
import random
from pathlib import Path

import numpy as np
import pytest

from ndsvrp.bench.instances import find_cases
from ndsvrp.data import SETS, digest, locate, make
from ndsvrp.data.locate import SMOKE, locate_file
from ndsvrp.data.make import problems
from ndsvrp.data.published_draws import _clustered, _prizes, _windows, draw, torch_uniform
from ndsvrp.data.sets import SUITES
from ndsvrp.errors import InstanceError
from ndsvrp.generate import TEST_SEEDS
from ndsvrp.io.npz import read_arrays, read_members
from ndsvrp.variants import VARIANTS, variant_of

DATA = Path(__file__).parents[1] / "data"
QUICK = (
    "cvrp100",
    "cvrp500",
    "cvrp1000",
    "cvrp2000",
    "cvrp500-validation",
    *(f"smoke-{v}" for v in ("cvrp", "vrptw", "pcvrp")),
)
SLOW = ("vrptw500", "pcvrp500", "vrptw500-validation", "pcvrp500-validation")  # the larger ones take minutes

#: Digests of the first two instances of the sets that take long to make.
FIRST_TWO = {
    "vrptw100": "c2f49015c7c0168e67ebe240c77fbb4c00bb3e87ce95c61576ce8b74eb2b766b",
    "vrptw1000": "b42774df4fdf8d898d1b8070b395119f8f5bcf7dfef8a14c08f922816927cceb",
    "vrptw2000": "0e75787967307fb5cba7be366014e1033dc77002c693408ae959e4c04453c93c",
    "pcvrp100": "91f0a69f4ea7fd9367c461ff333c006e661fec9365391823d6c73390cb462398",
    "pcvrp1000": "d9e03310c29fd1b6a02c536bbcc3a15ee313c3db93f3128bd90e305286cc94f6",
    "pcvrp2000": "9ec39fc388d0d53a08f852417bc16a44eedf4ba6576ff0037d5ea475282f75d7",
}


@pytest.mark.parametrize("variant", ["cvrp", "vrptw", "pcvrp"])
def test_the_first_instances_of_the_published_sets(variant: str) -> None:
    """`tests/data/sets` has the first two instances of sets that were not made by this program."""
    published = read_members(DATA / f"sets/{variant}100.npz")
    made = make(SETS[f"{variant}100"], 2)
    assert made.keys() == published.keys()
    for name, values in published.items():
        assert np.array_equal(made[name].astype(np.float64), values.astype(np.float64)), name


@pytest.mark.parametrize("name", [*QUICK, *(pytest.param(name, marks=pytest.mark.slow) for name in SLOW)])
def test_digests(name: str) -> None:
    assert digest(make(SETS[name])) == SETS[name].digest


@pytest.mark.parametrize("name", FIRST_TWO)
def test_digests_of_the_first_two(name: str) -> None:
    assert digest(make(SETS[name], 2)) == FIRST_TWO[name]


def test_every_set_that_is_made_or_shipped_has_a_digest() -> None:
    assert all(len(row.digest) == 64 for row in SETS.values() if row.origin != "files")
    assert len({row.digest for row in SETS.values() if row.origin != "files"}) == 20
    assert all(not row.digest for row in SETS.values() if row.origin == "files")


@pytest.mark.parametrize("name", SUITES["smoke"])
def test_shipped_files_are_as_recorded(name: str) -> None:
    path, row = locate_file(name), SETS[name]
    if path.suffix == ".npz":
        assert digest(read_arrays(path)) == row.digest
    else:
        assert hashlib.sha256(path.read_bytes()).hexdigest() == row.digest
        assert list(path.parent.glob("*.LICENSE"))
    cases = find_cases(name)
    assert len(cases) == row.instances and {case.set for case in cases} == {name}
    for case in cases:
        problem = case.load()
        assert (variant_of(problem).name, problem.customers) == (row.variant, row.size)


def test_paper_sets() -> None:
    for variant in ("cvrp", "vrptw", "pcvrp"):
        for size in (100, 500, 1000, 2000):
            row = SETS[f"{variant}{size}"]
            assert (row.variant, row.customers, row.seed, row.origin) == (variant, (size, size), 1234, "made")
            assert row.evidence
    assert [SETS[name].instances for name in ("cvrp100", "cvrp500", "cvrp2000", "vrptw100", "pcvrp2000")] == [
        10_000, 128, 100, 10_000, 250,
    ]  # fmt: skip
    assert {row.seed for row in SETS.values() if row.seed} == TEST_SEEDS
    assert {row.variant for row in SETS.values()} == set(VARIANTS)


def test_a_part_is_the_beginning_of_the_whole() -> None:
    for name in ("smoke-cvrp", "smoke-vrptw", "smoke-pcvrp"):
        part, whole = make(SETS[name], 1), make(SETS[name])
        assert all(np.array_equal(part[key], whole[key][:1]) for key in whole)


def test_seeds_matter_and_variants_share_layouts() -> None:
    a, b, other = draw("vrptw", 30, 2, 7), draw("pcvrp", 30, 2, 7), draw("vrptw", 30, 2, 8)
    assert all(np.array_equal(a[name], b[name]) for name in ("depot_xy", "node_xy", "demand", "capacity"))
    assert not np.array_equal(a["node_xy"], other["node_xy"]) and not np.array_equal(a["node_tw"], other["node_tw"])


def test_nothing_global_is_seeded() -> None:
    random.seed(3)
    np.random.seed(3)
    expected = random.random(), np.random.uniform()
    random.seed(3)
    np.random.seed(3)
    draw("cvrp", 10, 2, 1)
    draw("vrptw", 10, 2, 1)
    assert (random.random(), np.random.uniform()) == expected


def test_numbers_of_torch() -> None:
    torch = pytest.importorskip("torch")
    generator = torch.Generator().manual_seed(1234)
    assert np.array_equal(torch_uniform(1234, (3, 50)), torch.rand(3, 50, generator=generator).numpy())


def test_layout() -> None:
    arrays = _clustered(60, 3, 5)
    assert arrays["node_xy"].dtype == np.float32 and arrays["depot_xy"].tolist() == [[0.5, 0.5]] * 3
    for points, demand, capacity in zip(arrays["node_xy"], arrays["demand"], arrays["capacity"], strict=True):
        grid = points.astype(np.float64) * 1000
        assert len({tuple(np.round(point)) for point in grid}) == 60 and np.allclose(grid, np.round(grid), atol=1e-3)
        assert demand.min() >= 1 and demand.max() <= 10
        assert math.ceil(8 * demand.mean()) <= capacity <= math.ceil(12 * demand.mean())


def test_windows_by_hand() -> None:
    """Customers 300, 400 and 101 away: 0.6 in float32 is above 0.6, so the third length is rounded up.

    Earliest: 301, 401, 102. Latest, 1800 - 50 - away - 1: 1449, 1349, 1648. Centres: 301, 1349, 102 + 1546 / 2 = 875.
    """
    points = np.array([[[0.8, 0.5], [0.5, 0.1], [0.5, 0.6]]], np.float32)
    numbers = np.array([[0.0, 1.0, 0.5]], np.float32)
    found = _windows(points, numbers)
    assert np.round(found["node_tw"] * 1000).tolist() == [[[301, 501], [1149, 1349], [675, 1075]]]
    assert found["depot_tw"].tolist() == [[0.0, np.float32(1.8)]]
    assert np.all(found["service"] == np.float32(0.05))


def test_prizes_by_hand() -> None:
    found = _prizes(np.array([[1, 10, 4]]), np.array([[0.0, 0.5, 1.0]], np.float32))
    assert np.allclose(found, [[0.1, 0.175, 0.1 + 0.05 / 3 + 0.05]], atol=1e-7)


def test_problems_are_checked_and_named() -> None:
    arrays = make(SETS["smoke-vrptw"])
    assert [problem.name for problem in problems("smoke-vrptw", arrays)] == ["smoke-vrptw-0000", "smoke-vrptw-0001"]
    arrays["demand"] = arrays["demand"] * 100
    with pytest.raises(InstanceError, match=r"smoke-vrptw\[0\]: demand"):
        problems("smoke-vrptw", arrays)


def test_digest_is_of_values() -> None:
    arrays = make(SETS["smoke-cvrp"])
    same = {name: values.astype(np.float64) for name, values in reversed(arrays.items())}
    assert digest(arrays) == digest(same)
    same["demand"][1, 3] += 1
    assert digest(arrays) != digest(same)
    assert digest({"a": np.zeros((2, 3))}) != digest({"a": np.zeros((3, 2))})


@pytest.mark.parametrize("count", [0, -1, 3])
def test_too_many_or_no_instances(count: int) -> None:
    with pytest.raises(InstanceError, match=r"smoke-cvrp: instances: .* not within 1-2"):
        make(SETS["smoke-cvrp"], count)


def test_files_are_not_made() -> None:
    with pytest.raises(InstanceError, match="X: comes as files"):
        make(SETS["X"])


def test_locate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert locate("some/file.vrp") == [Path("some/file.vrp")]
    assert locate("smoke-cvrp") == [SMOKE / "smoke-cvrp.npz"]
    assert [path.stem for path in locate("smoke")] == list(SUITES["smoke"])
    with pytest.raises(InstanceError, match=r"cvrp500: is a set that is not here; 'nds data make cvrp500' writes"):
        locate("cvrp500")
    with pytest.raises(InstanceError, match=r"Solomon: is a set that is not here; give the folder"):
        locate("Solomon")
    with pytest.raises(InstanceError, match=r"smoke: stands for several sets \(smoke-cvrp, "):
        locate_file("smoke")
    (tmp_path / "cvrp500.npz").touch()
    (tmp_path / "Solomon").mkdir()
    (tmp_path / "smoke").touch()
    assert locate("cvrp500") == [Path("cvrp500.npz")]
    assert locate("Solomon") == [Path("Solomon")] and locate("smoke") == [Path("smoke")]  # files come first


def test_suites(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert SUITES["paper"] == tuple(f"{v}{n}" for v in ("cvrp", "vrptw", "pcvrp") for n in (100, 500, 1000, 2000))
    assert SUITES["literature"] == ("X", "XXL", "Solomon", "HG1000", "PCVRPTW")
    for name in SUITES["paper"][:-2]:
        (tmp_path / f"{name}.npz").touch()
    with pytest.raises(InstanceError) as caught:
        locate("paper")
    how = "'nds data make pcvrp1000' writes pcvrp1000.npz"
    assert str(caught.value) == f"paper: pcvrp1000, pcvrp2000 are not here; {how}"
    for name in SUITES["paper"]:
        (tmp_path / f"{name}.npz").touch()
    assert locate("paper") == [Path(f"{name}.npz") for name in SUITES["paper"]]
    for name in SUITES["literature"][1:]:
        (tmp_path / name).mkdir()
    how = "give the folder that holds its files, or call the folder X"
    with pytest.raises(InstanceError, match=f"^literature: X is not here; {how}$"):
        locate("literature")
    (tmp_path / "X").mkdir()
    assert locate("literature") == [Path(name) for name in SUITES["literature"]]
