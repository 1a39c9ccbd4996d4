"""Solvers by name: labels, versions, other Pythons, and programs on the path."""

from __future__ import annotations

import json
import stat
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from test_adapters import CROSS, PAIR

from ndsvrp.bench import lkh_adapter, pyvrp_process
from ndsvrp.bench.lkh_adapter import LKH, problem_file, read_tour
from ndsvrp.bench.pyvrp_adapter import PyVRP
from ndsvrp.bench.solvers import KNOWN, OwnSolver, find_solver, label_of, version_of
from ndsvrp.bench.ticks import to_ticks
from ndsvrp.check import check
from ndsvrp.errors import InstanceError, NoSolutionError
from ndsvrp.problem import Problem


def test_every_name_is_a_solver() -> None:
    for name in KNOWN:
        assert label_of(name, find_solver(name)) == name


def test_labels_have_presets_and_iterations() -> None:
    own = find_solver("nds", iterations=1000)
    assert isinstance(own, OwnSolver)
    assert label_of("nds", own) == "nds-iterations=1000"


@pytest.mark.parametrize(
    ("name", "package", "extra"),
    [("pyvrp", "pyvrp", "bench"), ("hgs", "hygese", "bench"), ("ortools", "ortools", "bench-all"),
     ("vroom", "pyvroom", "bench-all")],
)  # fmt: skip
def test_a_missing_package(name: str, package: str, extra: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(wanted: str) -> str:
        raise PackageNotFoundError(wanted)

    monkeypatch.setattr(f"ndsvrp.bench.{name}_adapter.version", missing)
    with pytest.raises(InstanceError) as caught:
        version_of(name, find_solver(name))
    assert (
        str(caught.value)
        == f"solvers: '{name}' needs the package {package} (pip install '.[{extra}]' in a clone of the repository)"
    )


# --- PyVRP of another Python -------------------------------------------------------------------


def test_pyvrp_of_another_python() -> None:
    pytest.importorskip("pyvrp")
    name = f"pyvrp@{sys.executable}"
    solver = find_solver(name)
    assert label_of(name, solver) == f"pyvrp-{version('pyvrp')}"
    assert solver.version() == version("pyvrp")
    answer = solver(CROSS, 0.05, 1)
    assert check(CROSS, answer.solution).cost == pytest.approx(2 * PAIR, abs=1e-12)
    assert answer.trace[-1][1] == pytest.approx(2 * PAIR, abs=1e-5)
    assert [cost for _, cost in answer.trace] == sorted((cost for _, cost in answer.trace), reverse=True)


def test_another_python_without_pyvrp(tmp_path: Path) -> None:
    with pytest.raises(InstanceError, match=r"^solvers: 'pyvrp@/no/python' does not run: .*No such file"):
        PyVRP("/no/python").version()
    broken = program(tmp_path / "python", "echo 'No module named pyvrp' >&2; exit 1", shell="sh")
    with pytest.raises(InstanceError) as caught:
        PyVRP(str(broken)).version()
    hint = f"({broken} -m pip install pyvrp)"
    assert str(caught.value) == f"solvers: 'pyvrp@{broken}' does not run: No module named pyvrp {hint}"


@pytest.mark.parametrize(
    ("release", "load", "place"),
    [("0.9.0", 1, {"x": 0, "y": 1_000_000}), ("0.11.3", [1], {"x": 0, "y": 1_000_000}),
     ("0.13.4", [1], {"x": 0.0, "y": 1.0}), ("0.14.1", [1], {"location": 2})],
)  # fmt: skip
def test_what_each_release_of_pyvrp_takes(
    release: str, load: Any, place: dict[str, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    def keep(*values: Any, **named: Any) -> dict[str, Any]:
        return {"values": values, **named}

    kinds = ("Client", "Depot", "VehicleType", "Location", "ProblemData")
    monkeypatch.setitem(sys.modules, "pyvrp", SimpleNamespace(**dict.fromkeys(kinds, keep)))
    monkeypatch.setattr(pyvrp_process, "version", lambda package: release)
    ticks = to_ticks(CROSS.replace(windows=[[0, 9]] * 5, prize=[0, 0, 2.5, 0, 0], vehicle_cost=1.5))
    arrays = vars(ticks) | {"xy": CROSS.coordinates, "required": np.array([0, 1, 0, 1, 1], bool), "vehicles": 4}
    data = pyvrp_process.to_data(arrays)
    hours = {"tw_early": 0, "tw_late": 9_000_000}
    assert data["clients"][1] == {
        "values": (), "delivery": load, "service_duration": 0, "prize": 2_500_000, "required": False, **hours, **place,
    }  # fmt: skip
    vehicle = {"values": (4, 2 if release == "0.9.0" else [2]), "fixed_cost": 1_500_000, **hours}
    assert data["vehicle_types"] == [vehicle]
    assert ("tw_late" in data["depots"][0]) == (release != "0.9.0")
    assert ("locations" in data) == (release == "0.14.1")
    assert data["distance_matrices"] == [ticks.distance]


# --- LKH-3 -------------------------------------------------------------------------------------


def program(file: Path, code: str, shell: str = sys.executable) -> Path:
    file.write_text(f"#!/usr/bin/env -S {shell}\n{code}\n")
    file.chmod(file.stat().st_mode | stat.S_IXUSR)
    return file


FAKE = """
import json, sys
lines = open(sys.argv[1]).read().splitlines()
fields = dict(line.split(" = ") for line in lines if " = " in line)
json.dump(fields | {"problem": open(fields["PROBLEM_FILE"]).read(), "flags": lines[0]}, open("seen.json", "w"))
if TOUR:
    open(fields["TOUR_FILE"], "w").write("NAME : x\\nTOUR_SECTION\\n" + TOUR + "\\n-1\\nEOF\\n")
"""


def fake_lkh(folder: Path, tour: str, monkeypatch: pytest.MonkeyPatch) -> None:
    program(folder / "LKH", FAKE.replace("TOUR:", f"{tour!r}:").replace("+ TOUR +", f"+ {tour!r} +"))
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    monkeypatch.chdir(folder)


def test_lkh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nodes 2 to 5 are the customers; 6 is a copy of the depot."""
    fake_lkh(tmp_path, "1\n2\n3\n6\n5\n4\n7", monkeypatch)
    answer = LKH(CROSS, 3.5, 7)
    assert [list(route) for route in answer.solution.routes] == [[1, 2], [4, 3]]
    assert check(CROSS, answer.solution).cost == pytest.approx(2 * PAIR)
    seen = json.loads((tmp_path / "seen.json").read_text())
    assert (seen["flags"], seen["TIME_LIMIT"], seen["SEED"], seen["RUNS"]) == ("SPECIAL", "3.5", "7", "1")
    assert seen["problem"] == problem_file(CROSS, lkh_adapter._ticks(CROSS), 4)
    assert answer.settings["cost_scale"] == 100_000
    assert LKH.version().startswith("3+") and len(LKH.version()) == 14


def test_the_file_for_lkh() -> None:
    """Lengths in tenths; the depot opens at 1, which is 0 for LKH."""
    problem = Problem(
        coordinates=[[0, 0], [3, 4], [0, 1]], demand=[0, 2, 3], capacity=5, metric="dimacs", vehicles=2,
        windows=[[1, 30], [0, 9], [4, 12.5]], service=[0, 1, 2],
    )  # fmt: skip
    assert problem_file(problem, to_ticks(problem), 2).splitlines() == [
        "NAME : problem", "TYPE : CVRPTW", "DIMENSION : 3", "VEHICLES : 2", "CAPACITY : 5",
        "EDGE_WEIGHT_TYPE : EXPLICIT", "EDGE_WEIGHT_FORMAT : FULL_MATRIX",
        "EDGE_WEIGHT_SECTION", "0 50 10", "50 0 42", "10 42 0", "DEMAND_SECTION", "1 0", "2 2", "3 3",
        "SERVICE_TIME_SECTION", "1 0", "2 10", "3 20", "TIME_WINDOW_SECTION", "1 0 290", "2 0 80", "3 30 115",
        "DEPOT_SECTION", "1", "-1", "EOF",
    ]  # fmt: skip
    distance = np.array([[0.0, 1, 2], [3, 0, 1], [2, 1, 0]])
    one_way = Problem(distance=distance, demand=[0, 1, 1], capacity=2)
    assert "TYPE : ACVRP" in problem_file(one_way, to_ticks(one_way), 2)
    assert read_tour("TOUR_SECTION\n1\n3\n2\n-1\nEOF", 2) == [[2, 1]]


def test_lkh_that_is_not_there_or_finds_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InstanceError, match=r"^solvers: 'lkh' needs the program LKH on the path \(build LKH-3 from"):
        LKH.version()
    fake_lkh(tmp_path, "", monkeypatch)
    with pytest.raises(NoSolutionError, match="LKH-3 found no feasible solution"):
        LKH(CROSS, 1, 1)
    program(tmp_path / "LKH", "import sys; sys.exit('*** Error *** DIMENSION expected')")
    with pytest.raises(RuntimeError, match="DIMENSION expected"):
        LKH(CROSS, 1, 1)


def test_what_lkh_refuses() -> None:
    windows = {"windows": [[0, 9]] * 5}
    assert LKH.refuses(CROSS.replace(**windows)) is None
    assert LKH.refuses(CROSS.replace(prize=[0, 1, 1, 1, 1])) == "LKH-3 does not support prizes"
    distance = CROSS.length(np.arange(5)[:, None], np.arange(5)[None, :])
    streets = CROSS.replace(coordinates=None, distance=distance, duration=2 * distance, **windows)
    assert LKH.refuses(streets) == "LKH-3 takes travel times to be distances"
    alone = Problem(coordinates=[[0, 0], [1, 1]], demand=[0, 1], capacity=1)
    assert LKH.refuses(alone) == "LKH-3 needs at least two customers"
    far = CROSS.replace(coordinates=np.array(CROSS.coordinates) * 1e8, metric="round")
    assert LKH.refuses(far) == "LKH-3 takes lengths up to 10^7"
