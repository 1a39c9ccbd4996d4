"""What is written reads back the same, and is whole or not there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import warnings
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest

from ndsvrp.check import check
from ndsvrp.errors import InstanceError, NdsError, NdsWarning
from ndsvrp.io import read, read_set, read_solution, write, write_result, write_set, write_solution
from ndsvrp.io.environment import environment
from ndsvrp.io.files import check_writable, write_atomic
from ndsvrp.io.result import plain
from ndsvrp.io.sol import matches_cost
from ndsvrp.metric import Metric
from ndsvrp.problem import Problem
from ndsvrp.search.result import Result, TracePoint
from ndsvrp.solution import Solution

DATA = Path(__file__).parents[1] / "data"
ONE = (
    "accepted: a .sol file, or the JSON of one result ('nds solve SET --out FOLDER' writes a .sol file for each "
    "instance)"
)
FIELDS = ("demand", "coordinates", "windows", "service", "prize")


# --- .sol ------------------------------------------------------------------------------------


def test_solution_round_trip(tmp_path):
    path = tmp_path / "a.sol"
    write_solution(path, Solution([[1, 2], [3], [4]]), 32.0)
    assert path.read_bytes() == (DATA / "small/toy.sol").read_bytes()
    assert read_solution(path) == (Solution([[1, 2], [3], [4]]), 32.0)


@pytest.mark.parametrize("cost, text", [(827.3, "827.3"), (27591, "27591"), (0.1 + 0.2, "0.30000000000000004")])
def test_cost_is_written_to_the_last_digit(tmp_path, cost, text):
    path = tmp_path / "a.sol"
    write_solution(path, Solution([]), cost)
    assert path.read_text() == f"Cost: {text}\n"
    assert read_solution(path) == (Solution([]), cost)


@pytest.mark.parametrize(
    ("cost", "message"),
    [
        (float("nan"), "cost must be finite, got nan"),
        (np.inf, "cost must be finite, got inf"),
        ("5", "cost must be a number, got '5'"),
        (None, "cost must be a number, got None"),
    ],
)
def test_costs_that_could_not_be_read_again(tmp_path, cost, message):
    with pytest.raises(NdsError) as caught:
        write_solution(tmp_path / "a.sol", Solution([[1]]), cost)
    assert str(caught.value) == message
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("text", ["Cost: 827.3", "Cost 827.3", "cost:827.3", "Cost : 827.3  ", "COST\t827.3\r"])
def test_spellings(tmp_path, text):
    path = tmp_path / "a.sol"
    path.write_text(f"Route #1: 3 7 \n\nroute 2:\t2\n{text}\n", newline="")
    assert read_solution(path) == (Solution([[3, 7], [2]]), 827.3)


def test_routes_of_a_result_in_json(tmp_path):
    path = tmp_path / "a.json"
    path.write_text('{"problem": {}, "routes": [[3, 7], [], [2]], "cost": 827.3, "seed": 1}')
    assert read_solution(path) == (Solution([[3, 7], [2]]), 827.3)
    path.write_text('{"routes": [[1]]}')
    assert read_solution(path) == (Solution([[1]]), None)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"customers": []}', "routes: is not a list of lists of customers, as in a result"),
        ('{"routes": [1, 2]}', "routes: is not a list of lists of customers, as in a result"),
        ('{"routes": [["a"]]}', "routes: 'a' is not a customer, those count from 1"),
        ('{"routes": [[true]]}', "routes: 'True' is not a customer, those count from 1"),
        ('{"routes": [[0]]}', "routes: '0' is not a customer, those count from 1"),
        ('{"routes": [[1]], "cost": "5"}', "cost: '5' is not a number"),
        ('\n[\n {"routes": [[1]]}, {"routes": [[2]]}]', f"is a list of 2 results; {ONE}"),
        ("[[1, 2]]", f"is a list of 1 value; {ONE}"),
        ('{"routes": [[1]]', "is not JSON (Expecting ',' delimiter: line 1 column 17 (char 16))"),
    ],
)
def test_json_that_is_no_result(tmp_path, text, message):
    path = tmp_path / "a.json"
    path.write_text(text)
    with pytest.raises(InstanceError) as caught:
        read_solution(path)
    assert str(caught.value) == f"{path}: {message}"


@pytest.mark.parametrize("name", ["a.csv", "a.geojson", "a.HTML"])
def test_other_forms_of_results_are_no_solutions(tmp_path, name):
    (tmp_path / name).write_text("{}")
    with pytest.raises(InstanceError, match=r"is no solution; accepted: a \.sol file, or the JSON of one result$"):
        read_solution(tmp_path / name)


def test_solution_without_cost_and_with_remarks(tmp_path):
    path = tmp_path / "a.sol"
    path.write_text("Route #1: 3 7\nTime: 12.5\n")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert read_solution(path) == (Solution([[3, 7]]), None)
    assert [(w.category, str(w.message)) for w in caught] == [(NdsWarning, f"{path}:2: Time: unknown field, ignored")]


def test_vehicles_that_stay_at_the_depot_are_no_routes(tmp_path):
    path = tmp_path / "a.sol"
    path.write_text("Route #1: 3 7\nRoute #2:\nRoute #3: 2\nCost: 5\n")
    with pytest.warns(NdsWarning, match=r"a\.sol:2: a route without customers, ignored$"):
        assert read_solution(path) == (Solution([[3, 7], [2]]), 5.0)


@pytest.mark.parametrize(
    "written, cost, metric, expected",
    [
        (245391.0, 24539.1, Metric.DIMACS, True),
        (24539.1, 24539.1, Metric.DIMACS, True),
        (24539.2, 24539.1, Metric.DIMACS, False),
        (245392.0, 24539.1, Metric.DIMACS, False),
        (27591.0, 27591.0, Metric.ROUND, True),
        (27592.0, 27591.0, Metric.ROUND, False),
        (275910.0, 27591.0, Metric.ROUND, False),
        (36.5712345, 36.5712346, Metric.NONE, True),
        (36.57, 36.58, Metric.NONE, False),
        (22.8284, 22.82842712, Metric.NONE, True),  # as it is printed
        (22.8285, 22.82842712, Metric.NONE, False),
        (22.83, 22.82842712, Metric.NONE, False),
        (0.0, 1e-7, Metric.NONE, False),
        (1.23e-7, 1.2345e-7, Metric.NONE, False),
        (365.7, 36.57, Metric.NONE, False),
    ],
)
def test_matches_cost(written, cost, metric, expected):
    assert matches_cost(written, cost, metric) is expected


# --- sets --------------------------------------------------------------------------------------


def problems(count=3, customers=5, **changes):
    rng = np.random.default_rng(1)
    made = []
    for _ in range(count):
        fields = {
            "coordinates": rng.random((customers + 1, 2)),
            "demand": np.r_[0, rng.integers(1, 10, customers)],
            "capacity": 50,
        }
        made.append(Problem(**fields, **changes))
    return made


def test_a_set_does_not_lose_names_in_silence(tmp_path):
    plain, named = problems(2)
    named = named.replace(names=["hub", *"abcde"], clock_times=True)
    path = tmp_path / "a.npz"
    with pytest.warns(NdsWarning) as warned:
        write_set(path, [plain, named])
    assert [str(warning.message) for warning in warned] == [
        f"{path}: the names of customers are not kept; .json and .csv have them",
        f"{path}: times are minutes since midnight; .json and .csv keep them as clock times",
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        write_set(path, [plain, plain.replace(names=["hub", *"12345"])])


def test_a_set_from_a_generator(tmp_path):
    write_set(tmp_path / "a.npz", problems())
    write_set(tmp_path / "b.npz", (problem for problem in problems()))
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()


@pytest.mark.parametrize("name", ["cvrp100", "vrptw100", "pcvrp100"])
def test_set_round_trip(tmp_path, name):
    before, path = read_set(DATA / f"sets/{name}.npz"), tmp_path / f"{name}.npz"
    write_set(path, before)
    with np.load(DATA / f"sets/{name}.npz") as old, np.load(path) as new:
        assert set(old.files) == set(new.files)
        assert new["demand"].dtype == new["capacity"].dtype == np.int32
    after = read_set(path)
    assert len(after) == len(before) == 2
    for a, b in zip(after, before, strict=True):
        assert (a.name, a.capacity, a.metric, a.vehicles) == (b.name, b.capacity, b.metric, b.vehicles)
        for field in FIELDS:
            np.testing.assert_array_equal(getattr(a, field), getattr(b, field))


def test_set_with_everything(tmp_path):
    prize, service = np.r_[0, 0, 0.1, 0.2, 0.3, 0.4], np.r_[0, 0.1, 0.1, 0.1, 0.1, 0.25]
    windows = np.array([[0.0, 9.0]] * 6)
    path = tmp_path / "a.npz"
    write_set(path, problems(windows=windows, service=service, prize=prize, vehicles=2))
    after = read(path, index=2)
    assert after.vehicles == 2 and after.name == "a-0002"
    np.testing.assert_array_equal(after.prize, prize)
    np.testing.assert_array_equal(after.service, service)
    np.testing.assert_array_equal(after.windows, windows)
    before = path.read_bytes()
    write_set(path, problems(windows=windows, service=service, prize=prize, vehicles=2))
    assert path.read_bytes() == before


def test_fractional_demand_survives(tmp_path):
    problem = problems(1)[0].replace(demand=[0, 0.1, 0.2, 0.3, 0.4, 0.5], capacity=1.5)
    write_set(tmp_path / "a.npz", [problem])
    after = read(tmp_path / "a.npz")
    assert after.demand.tolist() == [0, 0.1, 0.2, 0.3, 0.4, 0.5] and after.capacity == 1.5


@pytest.mark.parametrize(
    "made, words",
    [
        ([], "a set needs at least one instance"),
        (problems(1) + problems(1, 6), "instances of different size or constraints do not make a set"),
        (problems(1) + problems(1, vehicles=3), "instances of different size or constraints do not make a set"),
        (
            problems(1, metric=Metric.ROUND),
            "metric: a set is of plain floats, the metric 'round' would be lost (--round none, or metric= in Python)",
        ),
        (
            [Problem(demand=[0, 1], capacity=1, distance=np.ones((2, 2)))],
            "distance: a set cannot hold a distance matrix",
        ),
    ],
)
def test_what_a_set_cannot_hold(tmp_path, made, words):
    path = tmp_path / "a.npz"
    with pytest.raises(InstanceError) as caught:
        write_set(path, made)
    assert str(caught.value) == f"{path}: {words}"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["a.vrp", "a.TXT", "a.json"])
def test_a_set_is_not_written_under_the_ending_of_another_format(tmp_path, name):
    path = tmp_path / name
    for call in (lambda: write_set(path, problems()), lambda: write(path, problems()[0], form="npz")):
        with pytest.raises(InstanceError) as caught:
            call()
        assert str(caught.value) == f"{path}: a set is written as .npz, not as '{path.suffix.lower()}'"
    write_set(tmp_path / "a.set", problems())
    assert read_set(tmp_path / "a.set")[0] == problems()[0]
    assert [file.name for file in tmp_path.iterdir()] == ["a.set"]


def test_the_format_must_not_contradict_the_ending(tmp_path):
    problem = read(DATA / "small/toytw.vrp")
    for name, form in (("a.vrp", "json"), ("a.csv", "vrp"), ("a.json", "solomon")):
        path = tmp_path / name
        with pytest.raises(InstanceError) as caught:
            write(path, problem, form=form)
        assert (
            str(caught.value) == f"{path}: the format '{form}' under the ending {path.suffix} could not be read again"
        )
    assert list(tmp_path.iterdir()) == []
    for name in ("a.vrp", "a.txt", "a.dat"):
        write(tmp_path / name, problem, form="vrp")
        assert read(tmp_path / name) == problem


# --- JSON --------------------------------------------------------------------------------------


def a_result():
    problem = read(DATA / "small/toytw.vrp")
    solution = Solution([[1, 3]])
    return Result(
        problem,
        solution,
        check(problem, solution),
        seed=7,
        stopped="time",
        seconds=1.5,
        iterations=20,
        reconstructions=4000,
        settings={"solver": "sisr", "limit": float("inf"), "metric": Metric.DIMACS, "out": Path("a"), "k": np.int64(3)},
        trace=(TracePoint(0.5, 1, 30.0), TracePoint(1.0, 9, 20.1)),
        preparation=0.25,
    )


def test_result(tmp_path):
    path = tmp_path / "a.json"
    write_result(path, a_result())
    read_back = json.loads(path.read_text())
    # 0 → 1: 5, 1 → 3: √(3² + 1²) = 3.16… → 3.1, 3 → 0: 5; customer 2 is unserved: 7
    assert {key: read_back[key] for key in list(read_back)[:19]} == {
        "problem": {"name": "toytw", "customers": 3, "metric": "dimacs"},
        "cost": 20.1,
        "distance": 13.1,
        "lost_prizes": 7.0,
        "vehicle_costs": 0.0,
        "best_known": None,
        "gap": None,
        "feasible": True,
        "violations": [],
        "unserved": [2],
        "routes": [[1, 3]],
        "seed": 7,
        "stopped": "time",
        "seconds": 1.5,
        "preparation": 0.25,
        "iterations": 20,
        "reconstructions": 4000,
        "settings": {"solver": "sisr", "limit": None, "metric": "dimacs", "out": "a", "k": 3},
        "trace": [
            {"seconds": 0.5, "iteration": 1, "cost": 30.0},
            {"seconds": 1.0, "iteration": 9, "cost": 20.1},
        ],
    }
    assert {key: read_back[key] for key in ("versions", "commit", "hardware")} == environment()


def test_save_goes_by_the_ending(tmp_path):
    a_result().save(tmp_path / "a.sol")
    a_result().save(tmp_path / "a.json")
    assert (tmp_path / "a.sol").read_text() == "Route #1: 1 3\nCost: 20.1\n"
    assert json.loads((tmp_path / "a.json").read_text())["cost"] == 20.1


def test_what_json_does_not_know_is_an_error(tmp_path):
    with pytest.raises(TypeError, match="object does not go into a JSON result"):
        plain({"x": [object()]})
    result = a_result()
    result.settings["callback"] = print
    with pytest.raises(TypeError):
        write_result(tmp_path / "a.json", result)
    assert list(tmp_path.iterdir()) == []


def test_environment():
    found = environment()
    assert found["versions"]["python"] == ".".join(map(str, sys.version_info[:3]))
    assert found["versions"]["numpy"] == np.__version__
    assert found["versions"]["torch"] == version("torch")
    assert found["hardware"]["cores"] == os.cpu_count()
    assert 1 <= found["hardware"]["usable_cores"] <= found["hardware"]["cores"]
    assert found["hardware"]["cpu"] and found["hardware"]["platform"]


def test_files_need_no_torch():
    code = "import sys, ndsvrp.io.environment as e; e.environment(); sys.exit('torch' in sys.modules)"
    environment_ = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    assert subprocess.run([sys.executable, "-c", code], env=environment_, check=False).returncode == 0


# --- whole or not at all --------------------------------------------------------------------------

WRITERS = {
    "a.sol": lambda path: write_solution(path, Solution([[1]]), 2.0),
    "a.npz": lambda path: write_set(path, problems()),
    "a.json": lambda path: write_result(path, a_result()),
}


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("step", ["fsync", "replace"])
@pytest.mark.parametrize("failure", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_failure_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch, name, step, failure):
    path = tmp_path / name
    path.write_text("old")

    def fail(*arguments):
        raise failure

    monkeypatch.setattr(*((os, "fsync") if step == "fsync" else (Path, "replace")), fail)
    with pytest.raises((InstanceError, KeyboardInterrupt)) as caught:
        WRITERS[name](path)
    if isinstance(failure, OSError):
        assert str(caught.value) == f"{path}: cannot be written (No space left on device)"
    assert [file.name for file in tmp_path.iterdir()] == [name]
    assert path.read_text() == "old"


@pytest.mark.parametrize("name", WRITERS)
def test_places_that_cannot_be_written(tmp_path, name):
    for path, reason in ((tmp_path / "no" / name, "No such file or directory"), (tmp_path, "Is a directory")):
        with pytest.raises(InstanceError) as caught:
            WRITERS[name](path)
        assert str(caught.value) == f"{path}: cannot be written ({reason})"
    assert list(tmp_path.iterdir()) == []


def test_check_writable(tmp_path):
    check_writable(tmp_path / "new.sol")
    check_writable("/dev/null")
    with pytest.raises(InstanceError, match=r"no/a\.sol: cannot be written \(No such directory\)"):
        check_writable(tmp_path / "no" / "a.sol")
    with pytest.raises(InstanceError, match=r"cannot be written \(Is a directory\)"):
        check_writable(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_links_permissions_and_devices(tmp_path):
    target, link = tmp_path / "target.sol", tmp_path / "link.sol"
    target.write_text("old")
    link.symlink_to(target)
    write_atomic(link, b"new")
    assert link.is_symlink() and target.read_bytes() == b"new"
    plain_file = tmp_path / "plain"
    plain_file.touch()
    assert target.stat().st_mode == plain_file.stat().st_mode  # as the umask has it
    write_atomic("/dev/null", b"gone")
