"""The command `nds data`, and names of sets in other commands."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest

from ndsvrp.data import SETS, digest, make
from ndsvrp.io.npz import read_arrays


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_list(nds) -> None:
    lines = nds("data", "list").stdout.splitlines()
    assert lines[0].split() == ["name", "variant", "customers", "instances", "seed", "obtained", "digest", "citation"]
    table = {line.split()[0]: line.split() for line in lines[1 : 1 + len(SETS)]}
    assert list(table) == list(SETS)
    assert table["vrptw500"] == ["vrptw500", "vrptw", "500", "250", "1234", "made", SETS["vrptw500"].digest[:12],
                                 "Hottung", "et", "al.", "2025"]  # fmt: skip
    assert table["X"][1:5] == ["cvrp", "100-1,000", "100", "files"]
    assert [line.split(", ")[0] for line in lines[-3:]] == [
        "smoke: stands for smoke-cvrp", "paper: stands for cvrp100", "literature: stands for X",
    ]  # fmt: skip


def test_make(nds) -> None:
    answer = nds("data", "make", "cvrp500")
    assert "cvrp500.npz: 128 instances of CVRP with 500 customers, seed 1234" in answer.stdout
    assert f"digest {SETS['cvrp500'].digest}, as recorded" in answer.stdout
    assert "bit-identical to the published set where compared: its first 64 instances" in answer.stdout
    assert digest(read_arrays("cvrp500.npz")) == SETS["cvrp500"].digest
    assert "there already" in nds("data", "make", "cvrp500", code=2).stderr
    assert "customers     500" in nds("info", "cvrp500").stdout


def test_make_a_part(nds) -> None:
    answer = nds("data", "make", "vrptw100", "--instances", "3", "--out", "a.npz")
    assert "a.npz: 3 instances" in answer.stdout and "of the first 3 of 10,000" in answer.stdout
    assert digest(read_arrays("a.npz")) == digest(make(SETS["vrptw100"], 3))


def test_make_says_when_other_numbers_are_drawn(nds, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ndsvrp.data.published_draws.LARGEST_DEMAND", 9)
    assert "expected" in nds("data", "make", "smoke-vrptw", code=2).stderr
    assert not Path("smoke-vrptw.npz").exists()


@pytest.mark.parametrize(
    ("args", "reason"),
    [
        (("make", "nothing"), "no set 'nothing' that can be made (known: cvrp100, "),
        (("make", "X"), "no set 'X' that can be made"),
        (("make", "cvrp500", "--instances", "129"), "cvrp500: instances: 129 is not within 1-128"),
        (("make", "cvrp500", "--out", "a.txt"), "a.txt: a set is written as .npz"),
        (("make", "cvrp500", "--out", "no/a.npz"), "no/a.npz: cannot be written"),
        (("import", "missing.pkl"), "missing.pkl: no such file"),
        (("import", "set.csv"), "set.csv: has no known ending"),
        (("import", "set.pkl", "--variant", "tsp"), "unknown variant 'tsp'"),
    ],
)
def test_errors(nds, args, reason: str) -> None:
    Path("set.pkl").write_bytes(pickle.dumps([]))
    stderr = nds("data", *args, code=2).stderr
    assert reason in stderr and stderr.count("\n") == 1


def test_import(nds) -> None:
    data = [([0.5, 0.5], np.eye(2).tolist(), [1, 2], 9.0), ([0.1, 0.3], np.ones((2, 2)).tolist(), [3, 4], 9.0)]
    Path("vrp2_test_seed1234.pkl").write_bytes(pickle.dumps(data))
    answer = nds("data", "import", "vrp2_test_seed1234.pkl")
    assert answer.stdout == "vrp2_test_seed1234.npz: 2 instances of CVRP with 2 customers, from the layout of Kool\n"
    assert read_arrays("vrp2_test_seed1234.npz")["depot_xy"].tolist() == [[0.5, 0.5], [0.1, 0.3]]
    assert "there already" in nds("data", "import", "vrp2_test_seed1234.npz", code=2).stderr  # never over its source
    arrays = {"depot": [[0.5, 0.5]], "locs": [[[0.0, 0.0], [1.0, 0.0]]], "demand": [[0.2, 0.4]], "capacity": [[20.0]]}
    np.savez("rl4co.npz", **{name: np.array(value, "f4") for name, value in arrays.items()})
    answer = nds("data", "import", "rl4co.npz", "--out", "ours.npz")
    assert answer.stderr == "ours.npz: demands were fractions of the capacity, they are multiplied by it\n"
    assert read_arrays("ours.npz")["demand"].tolist() == [[4, 8]]


def test_names_in_other_commands(nds) -> None:
    assert "X-n106-k14" in nds("info", "smoke-x").stdout
    assert "2, smoke-pcvrp-0000" in nds("info", "smoke-pcvrp").stdout
    nds("solve", "smoke-vrptw", "--index", "1", "--iterations", "2", "--out", "a.sol")
    nds("check", "smoke-vrptw", "a.sol", "--index", "1")
    assert "smoke: stands for several sets" in nds("solve", "smoke", code=2).stderr
    assert "'nds data make pcvrp100' writes pcvrp100.npz" in nds("bench", "run", "pcvrp100", code=2).stderr


@pytest.mark.slow
def test_smoke_benchmark(nds) -> None:
    answer = nds("bench", "run", "smoke", "--solvers", "sisr", "--time", "0.05", "--instances", "0")
    for name in ("smoke-cvrp", "smoke-vrptw", "smoke-pcvrp", "smoke-x", "smoke-solomon"):
        assert name in answer.stdout
