"""Sets of other programs: known layouts become problems with the same numbers, everything else is refused."""

from __future__ import annotations

import io
import os
import pickle
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

from ndsvrp.data import SETS, import_set, make
from ndsvrp.data import foreign as foreign_module
from ndsvrp.errors import InstanceError
from ndsvrp.io import read_set, write_set

B, N = 3, 5


def kool(count: int = B, n: int = N):
    numbers = np.random.RandomState(1)
    return list(
        zip(
            numbers.uniform(size=(count, 2)).tolist(),
            numbers.uniform(size=(count, n, 2)).tolist(),
            numbers.randint(1, 10, size=(count, n)).tolist(),
            np.full(count, 50.0).tolist(),
            strict=True,
        )
    )


def tensors(variant: str = "cvrp"):
    """The authors' layout, with the shapes of their files."""
    arrays = make(SETS[f"smoke-{variant}"])
    names = {"demand": "node_demand", "service": "node_sd", "prize": "node_prizes"}
    found = {names.get(name, name): values for name, values in arrays.items()}
    for name in ("depot_xy", "depot_tw"):
        if name in found:
            found[name] = found[name][:, None]
    return found | {"capacity": found["capacity"][:, None]}


@pytest.fixture
def put(tmp_path: Path):
    """Write data in the format that the name says."""

    def put(name: str, data) -> Path:
        path = tmp_path / name
        if path.suffix == ".pkl":
            path.write_bytes(data if isinstance(data, bytes) else pickle.dumps(data))
        elif path.suffix == ".npz":
            np.savez(path, **data)
        else:
            torch = pytest.importorskip("torch")
            torch.save({k: torch.from_numpy(v) if isinstance(v, np.ndarray) else v for k, v in data.items()}, path)
        return path

    return put


def refusal(path: Path, **options) -> str:
    with pytest.raises(InstanceError) as caught:
        import_set(path, **options)
    text = str(caught.value)
    assert text.startswith(str(path)) and "\n" not in text
    return text.removeprefix(f"{path}: ").removeprefix(str(path))


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_kool(put, tmp_path: Path, protocol: int) -> None:
    data = kool()
    imported = import_set(put("vrp5.pkl", pickle.dumps(data, protocol)), "cvrp")
    assert imported.layout == "Kool" and len(imported.problems) == B
    for problem, (depot, customers, demand, capacity) in zip(imported.problems, data, strict=True):
        assert problem.coordinates.tolist() == [depot, *customers]
        assert problem.demand.tolist() == [0, *demand] and problem.capacity == capacity
    write_set(tmp_path / "set.npz", imported.problems)
    for one, other in zip(imported.problems, read_set(tmp_path / "set.npz"), strict=True):
        assert np.array_equal(one.coordinates, other.coordinates) and np.array_equal(one.demand, other.demand)


def test_kool_with_arrays(put) -> None:
    data = [(*(np.array(part) for part in instance[:3]), np.float32(50)) for instance in kool()]
    plain = import_set(put("plain.pkl", kool())).problems
    for one, other in zip(import_set(put("vrp.pkl", data)).problems, plain, strict=True):
        assert np.array_equal(one.coordinates, other.coordinates) and one.capacity == other.capacity


@pytest.mark.parametrize("variant", ["cvrp", "vrptw", "pcvrp"])
@pytest.mark.parametrize("name", ["set.pt", "set.pkl", "set.npz"])
def test_authors_layout(put, tmp_path: Path, variant: str, name: str) -> None:
    imported = import_set(put(name, tensors(variant) | ({"grid_size": 1} if name != "set.npz" else {})), variant)
    assert imported.layout == "POMO or NDS"
    for one, other in zip(imported.problems, read_set(_shipped(variant)), strict=True):
        for field in ("coordinates", "demand", "windows", "service", "prize"):
            a, b = getattr(one, field), getattr(other, field)
            assert (a is None and b is None) or np.array_equal(a, b), field
        assert one.capacity == other.capacity


def _shipped(variant: str) -> Path:
    from ndsvrp.data.locate import locate_file

    return locate_file(f"smoke-{variant}")


def test_pomo(put) -> None:
    """POMO divides demands by the capacity, in float32, and does not state it."""
    found = tensors()
    whole = found["node_demand"]
    found["node_demand"] = whole.astype(np.float32) / np.float32(40)
    del found["capacity"]
    path = put("vrp50.pt", found)
    problems = import_set(path, capacity=40).problems
    assert np.array_equal([problem.demand[1:] for problem in problems], whole) and problems[0].capacity == 40
    assert "capacity: missing" in refusal(path) and "--capacity" in refusal(path)
    assert "not whole numbers" in refusal(path, capacity=47)
    for capacity in (0, -1, float("nan"), float("inf")):
        assert "capacity: must be positive" in refusal(path, capacity=capacity)
    assert "stated by the file" in refusal(put("nds.pt", tensors()), capacity=40)
    assert "stated by the file" in refusal(put("kool.pkl", kool()), capacity=50)
    assert "divided by it, or not" in refusal(put("both.pt", found | {"capacity": np.full((2, 1), 40)}))


def test_rl4co(put) -> None:
    arrays = make(SETS["smoke-cvrp"])
    data = {"depot": arrays["depot_xy"].astype("f4"), "locs": arrays["node_xy"].astype("f4"),
            "demand": arrays["demand"].astype("f4"), "capacity": arrays["capacity"].astype("f4")}  # fmt: skip
    imported = import_set(put("vrp.npz", data), "cvrp")
    assert imported.layout == "RL4CO"
    assert np.array_equal(imported.problems[1].coordinates[1:], data["locs"][1].astype("f8"))
    assert imported.note == ""


def test_rl4co_with_demands_divided_by_the_capacity(put) -> None:
    """What its generator returns: fractions in float32 beside the capacity of shape (B, 1)."""
    arrays = make(SETS["smoke-cvrp"])
    data = {"depot": arrays["depot_xy"].astype("f4"), "locs": arrays["node_xy"].astype("f4"),
            "demand": (arrays["demand"] / arrays["capacity"][:, None]).astype("f4"),
            "capacity": arrays["capacity"][:, None].astype("f4")}  # fmt: skip
    imported = import_set(put("vrp.npz", data), "cvrp")
    assert np.array_equal([problem.demand[1:] for problem in imported.problems], arrays["demand"])
    assert [problem.capacity for problem in imported.problems] == arrays["capacity"].tolist()
    assert imported.note == "demands were fractions of the capacity, they are multiplied by it"
    assert "not whole numbers" in refusal(put("odd.npz", data | {"capacity": data["capacity"] + 7}))
    assert "capacity: has shape (3,)" in refusal(put("three.npz", data | {"capacity": np.full(3, 40.0)}))
    assert "stated by the file" in refusal(put("vrp.npz", data), capacity=40)


def several(variant: str = "vrptw"):
    """RL4CO's environment with several constraints: the depot is the first location."""
    arrays = make(SETS[f"smoke-{variant}"])
    found = {
        "locs": np.concatenate([arrays["depot_xy"][:, None], arrays["node_xy"]], axis=1),
        "demand_linehaul": (arrays["demand"] / arrays["capacity"][:, None]).astype("f4"),
        "demand_backhaul": np.zeros((2, 50), "f4"),
        "vehicle_capacity": np.ones((2, 1), "f4"),
        "capacity_original": arrays["capacity"][:, None].astype("f4"),
        "distance_limit": np.full((2, 1), np.inf, "f4"),
        "open_route": np.zeros((2, 1), bool),
        "speed": np.ones((2, 1), "f4"),
        "service_time": np.zeros((2, 51), "f4"),
        "time_windows": np.stack([np.zeros((2, 51)), np.full((2, 51), np.inf)], axis=-1),
    }
    if variant == "vrptw":
        found["time_windows"] = np.concatenate([arrays["depot_tw"][:, None], arrays["node_tw"]], axis=1)
        found["service_time"][:, 1:] = arrays["service"]
    return found


@pytest.mark.parametrize("variant", ["cvrp", "vrptw"])
def test_rl4co_with_several_constraints(put, variant: str) -> None:
    imported = import_set(put("several.npz", several(variant)), variant)
    for one, other in zip(imported.problems, read_set(_shipped(variant)), strict=True):
        assert np.array_equal(one.coordinates, other.coordinates) and np.array_equal(one.demand, other.demand)
        assert one.windows is other.windows or np.array_equal(one.windows, other.windows)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("open_route", True),
        ("demand_backhaul", 0.1),
        ("distance_limit", 3.0),
        ("speed", 2.0),
        ("vehicle_capacity", 2.0),
    ],
)
def test_constraints_of_others_are_refused(put, name: str, value: float) -> None:
    data = several()
    data[name] = data[name].copy()
    data[name].flat[0] = value
    assert refusal(put("several.npz", data)).startswith(f"{name}: states a constraint")


def test_sets_of_this_program(put) -> None:
    assert import_set(put("own.npz", make(SETS["smoke-pcvrp"]))).layout == "ndsvrp"


def change(data, i: int, part: int, value):
    changed = [list(instance) for instance in data]
    changed[i][part] = value
    return changed


LOOP: list = []
LOOP.append(LOOP)
WRONG = {
    "number": (5, "holds a int, no known layout"),
    "text": ("hello", "holds a str, no known layout"),
    "nothing": ([], "holds no instances"),
    "numbers": ([1, 2], "instance 0: has type int, expected (depot, customers, demands, capacity)"),
    "tsp": (np.zeros((2, 5, 2)).tolist(), "instance 0: has 5 entries"),
    "prizes of orienteering": (change(kool(), 1, 2, [0.5] * N), "instance 1: demand: are not whole numbers"),
    "short depot": (change(kool(), 1, 0, [0.5]), "instance 1: depot_xy: is not a list of 2 numbers"),
    "depot in a list": (change(kool(), 0, 0, [[0.5, 0.5]]), "instance 0: depot_xy"),
    "three coordinates": (change(kool(), 2, 1, [[1.0, 2.0, 3.0]] * N), "instance 2: node_xy: is not a list of 5 x 2"),
    "few customers": (change(kool(), 2, 1, [[1.0, 2.0]] * 4), "instance 2: node_xy: is not a list of 5 x 2"),
    "text in demands": (change(kool(), 0, 2, ["a"] * N), "instance 0: demand: holds something that is no number"),
    "truth in demands": (change(kool(), 0, 2, [True] * N), "instance 0: demand: holds something"),
    "demand": (change(kool(), 0, 2, 5), "instance 0: demand: is not a list of numbers"),
    "capacities": (change(kool(), 0, 3, [50]), "instance 0: capacity: is not a number"),
    "other size": (kool() + kool(1, 4), "instance 3: has 4 customers, the first has 5"),
    "demand above capacity": (change(kool(), 1, 3, 1.0), "[1]: demand"),
    "not finite": (change(kool(), 1, 0, [float("nan"), 0.0]), "[1]: coordinates"),
    "array of another shape": (change(kool(), 0, 1, np.zeros((N, 3))), "instance 0: node_xy: has shape (5, 3)"),
    "loop": (LOOP, "instance 0: has 1 entries"),
    "no layout": ({"a": np.zeros(3), "b": np.zeros(3)}, "holds the arrays a, b, no known layout"),
    "no arrays": ({}, "holds no arrays"),
    "lists": ({"depot_xy": [1], "node_xy": [2], "node_demand": [3]}, "depot_xy: is a list, expected an array"),
    "unknown array": (tensors() | {"backhaul": np.zeros((2, 50))}, "backhaul: unknown in the layout POMO or NDS"),
    "grid": (tensors() | {"grid_size": 1000}, "grid_size: is not 1"),
    "windows without service": (
        {k: v for k, v in tensors("vrptw").items() if k != "node_tw"},
        "node_tw: missing, depot_tw is given",
    ),
    "shape": (tensors() | {"node_demand": np.ones((2, 49))}, "demand: has shape (2, 49), expected (2, 50)"),
    "flat": (tensors() | {"node_xy": np.ones(4)}, "node_xy: has shape (4,)"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_layouts(put, name: str) -> None:
    data, reason = WRONG[name]
    assert reason in refusal(put("set.pkl", data))


def test_shared_lists_do_not_multiply(put, monkeypatch: pytest.MonkeyPatch) -> None:
    """A list that a file states once and refers to often is counted each time."""
    monkeypatch.setattr(foreign_module, "MOST", 10_000)
    instance = kool(1, 1000)[0]
    assert "more than 10,000 customers" in refusal(put("set.pkl", [instance] * 50_000))
    many: list = [0.5] * 1000
    for _ in range(6):
        many = [many] * 1000
    assert "instance 0: has 1000 entries" in refusal(put("deep.pkl", many))
    assert "instance 0: demand" in refusal(put("demand.pkl", change(kool(1), 0, 2, many[:5])))


def test_variant(put) -> None:
    path = put("set.pkl", kool())
    assert refusal(path, variant="vrptw") == "holds CVRP, not VRPTW"
    with pytest.raises(InstanceError, match="unknown variant 'x'"):
        import_set(path, "x")


def test_files_that_are_none(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.pkl")
    (tmp_path / "folder.pt").mkdir()
    (tmp_path / "empty.npz").touch()
    for name, reason in (
        ("missing.pkl", "no such file"),
        ("pipe.pkl", "is not a regular file"),
        ("folder.pt", "is a directory"),
        ("empty.npz", "is empty"),
        ("set.csv", "has no known ending"),
    ):
        assert reason in refusal(tmp_path / name)


def test_npz_with_objects(put) -> None:
    assert "pickled objects" in refusal(put("set.npz", {"depot": np.array([[1], None], object)}))


class Call:
    def __reduce__(self):
        return os.system, ("touch ran",)


def test_hostile_torch_files(put, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    monkeypatch.chdir(tmp_path)
    text = refusal(put("call.pt", tensors() | {"grid_size": Call()}))
    assert "weights_only" in text and "system" in text and not Path("ran").exists()
    wide = torch.zeros(1).expand(10**10)
    torch.save({"depot_xy": wide}, tmp_path / "wide.pt")
    assert refusal(tmp_path / "wide.pt") == "depot_xy: has 10,000,000,000 numbers, too large"
    torch.save([torch.zeros(2)], tmp_path / "list.pt")
    assert "holds a list, expected a dict" in refusal(tmp_path / "list.pt")
    torch.save({"a": {"b": torch.zeros(2)}}, tmp_path / "nested.pt")
    assert refusal(tmp_path / "nested.pt") == "a: is a dict, expected a tensor"
    torch.save({1: torch.zeros(2)}, tmp_path / "key.pt")
    assert "key of type int" in refusal(tmp_path / "key.pt")
    torch.save({"a": torch.zeros(2)}, tmp_path / "old.pt", _use_new_zipfile_serialization=False)
    assert "version 1.6" in refusal(tmp_path / "old.pt")
    content = put("good.pt", tensors()).read_bytes()
    for end in (10, len(content) // 2, len(content) - 3):
        (tmp_path / "cut.pt").write_bytes(content[:end])
        assert refusal(tmp_path / "cut.pt")


@pytest.mark.slow
def test_torch_archives_are_measured_before_they_are_unpacked(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a/data.pkl", bytes(2 * 2**20))
    (tmp_path / "long.pt").write_bytes(buffer.getvalue())
    assert "more than tensors" in refusal(tmp_path / "long.pt")
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("a/data/0", "w") as member:
        for _ in range(513):
            member.write(bytes(2**20))
    (tmp_path / "bomb.pt").write_bytes(buffer.getvalue())
    assert "unpacks to 513 MiB" in refusal(tmp_path / "bomb.pt")


def test_without_torch(put, monkeypatch: pytest.MonkeyPatch) -> None:
    path = put("set.pt", tensors())
    monkeypatch.setitem(sys.modules, "torch", None)
    assert refusal(path) == "needs the package torch (pip install '.[policy]' in a clone of the repository)"
