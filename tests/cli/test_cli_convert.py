"""`nds convert` and `nds schema`; tables, folders and standard streams in other commands."""

from __future__ import annotations

import csv
import json

import pytest
from typer.testing import CliRunner

import ndsvrp
from ndsvrp.cli import app

STOPS = "name,x,y,kg\nhub,0,0,\nbakery,3,4,2\nschool,6,8,3\nkiosk,0,5,4\n"


@pytest.fixture
def stops(tmp_path, monkeypatch):
    """A table of stops in the current folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "stops.csv").write_text(STOPS)
    return tmp_path


def piped(*args, text):
    """Run a command line with standard input."""
    return CliRunner().invoke(app, [str(arg) for arg in args], prog_name="nds", input=text)


def test_solve_a_table(nds, stops):
    answer = nds("solve", "stops.csv", "--capacity", 5, "--column", "demand=kg", "--iterations", 5, "--json", "a.json")
    assert answer.stdout.startswith("stops: CVRP, 3 customers, capacity 5, metric none (auto)\n")
    result = json.loads((stops / "a.json").read_text())
    assert result["cost"] == 30.0  # 0-1-2-0: 20, 0-3-0: 10
    names = sorted(sorted(stop["name"] for stop in route["stops"][1:-1]) for route in result["schedule"])
    assert names == [["bakery", "school"], ["kiosk"]]


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("--column", "kg"), "--column: 'kg' is not like demand=kg"),
        (("--column", "demand=kg", "--column", "Demand=lb"), "--column: demand is stated twice"),
        (("--column", "demand=kg"), "stops.csv: capacity: missing, customers have demands; "
                                    "--capacity, or capacity= in Python"),
        (("--column", "demand=mass"), "stops.csv:1: has no column 'mass', which is to be 'demand'"),
        ((), "stops.csv:1: 'kg': may be meant for 'demand' "
             "(--column demand=kg reads it, --ignore-field kg ignores it)"),
        (("--column", "demand=kg", "--distance", "no.csv"), "no.csv: no such file"),
        (("--ignore-field", "kg", "--capacity", "-1"), "stops.csv: capacity: -1 is not a capacity"),
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore::ndsvrp.errors.NdsWarning")
def test_bad_options(nds, stops, args, words):
    answer = nds("info", "stops.csv", *args, code=2)
    assert answer.stderr.splitlines()[-1] == f"nds: {words}"


def test_fleet_and_matrices_beside_any_file(nds, stops, data):
    (stops / "m.csv").write_text("0,1,2\n3,0,4\n5,6,0\n")
    answer = nds("info", data / "small/toymatrix.vrp", "--duration", "m.csv", "--vehicles", 2, "--max-duration", 40)
    assert "asymmetric matrix, with a matrix of durations" in answer.stdout
    assert "at most 2; the demand takes at least 1" in answer.stdout
    (stops / "a.sol").write_text("Route #1: 1 2\nCost: 15\n")  # 2 + 6 + 7
    nds("check", data / "small/toymatrix.vrp", "a.sol", "--max-duration", 20)
    nds("check", data / "small/toymatrix.vrp", "a.sol", "--max-duration", 12, code=3)
    (stops / "b.sol").write_text("Route #1: 1 2\nCost: 10\n")  # 1 + 4 + 5, by the other matrix
    nds("check", data / "small/toymatrix.vrp", "b.sol", "--distance", "m.csv")


def test_convert(nds, stops, data):
    given = ("--capacity", 9, "--column", "demand=kg", "--vehicles", 2)
    answer = nds("convert", "stops.csv", "a.json", *given)
    assert answer.stdout == "a.json: stops: CVRP, 3 customers, capacity 9, at most 2 vehicles, metric none (auto)\n"
    for target in ("a.vrp", "b.csv", "a.npz"):
        nds("convert", "a.json", target)
    costs = {
        nds("solve", file, "--iterations", 3, "-q", *more).stdout
        for file, more in (("a.json", ()), ("a.vrp", ()), ("a.npz", ()), ("b.csv", ("--capacity", 9, "--vehicles", 2)))
    }
    assert len(costs) == 1
    assert nds("convert", "a.json", "-", "--to", "vrp").stdout.startswith("NAME : stops\nTYPE : CVRP\nDIMENSION : 4\n")
    assert nds("convert", "a.json", "a.json", code=2).stderr == (
        "nds: a.json: is the instance itself, it would be overwritten\n"
    )
    assert (
        "needs a format: --to NAME, or form= in Python, one of vrp, solomon"
        in nds("convert", "a.json", "-", code=2).stderr
    )
    assert "unknown format 'xls' (known: vrp" in nds("convert", "a.json", "b", "--to", "xls", code=2).stderr
    assert nds("convert", data / "sets/cvrp100.npz", "b.vrp", code=2).stderr.endswith(
        "holds 2 instances, choose one by its index (0 … 1)\n"
    )


def test_sets_and_folders(nds, stops, data):
    answer = nds("convert", data / "sets/cvrp100.npz", "folder")
    assert answer.stdout == "folder: 2 instances, 0000.vrp …\n"
    nds("convert", "folder", "b.npz")
    before, after = ndsvrp.read_set(data / "sets/cvrp100.npz"), ndsvrp.read_set("b.npz")
    assert [p.coordinates.tolist() for p in after] == [p.coordinates.tolist() for p in before]
    answer = nds("convert", "folder", "tables", "--to", "json")
    assert answer.stdout == "tables: 2 instances, 0000.json …\n"
    after = ndsvrp.read_set("tables", metric="round")
    assert [p.coordinates.tolist() for p in after] == [p.coordinates.tolist() for p in before]
    nds("convert", "folder", "one", "--to", "json", "--index", 1)
    nds("convert", "folder", "all", "--to", "npz")
    assert (stops / "one").is_file()
    assert (stops / "all").is_file()
    answer = nds("convert", "b.npz", "all", code=2)
    assert answer.stderr == "nds: all: cannot be made a folder (File exists)\n"
    (stops / "folder/0000.vrp").rename(stops / "folder/one.vrp")
    answer = nds("solve", "folder", "--iterations", 1, "--chains", 1, "--out", "out", "--together", 2)
    assert "2 instances, the first is " in answer.stdout
    assert sorted(path.name for path in (stops / "out").iterdir()) == ["0001.sol", "one.sol", "summary.csv"]
    assert [row["instance"] for row in csv.DictReader((stops / "out/summary.csv").open())] == ["0001", "one"]
    assert "instances     2" in nds("info", "folder").stdout
    assert nds("solve", "folder", "--iterations", 1, "--index", 1, "-q").stdout.count("\n") == 1


def test_a_folder_of_unlike_instances(nds, stops):
    (stops / "folder").mkdir()
    for name, options in {"a": ("--vehicles", 2), "b": (), "c": ("--max-duration", 90)}.items():
        nds("convert", "stops.csv", f"folder/{name}.json", "--capacity", 5, "--column", "demand=kg", *options)
    told = nds("info", "folder").stdout
    assert "problem         2 CVRP, 1 CVRP with duration limit\n" in told
    assert "vehicles        at most 2 in 1 of 3 instances; the demand takes at least 2\n" in told
    assert "metric          none (auto: as the file or its format states)\n" in told
    nds("convert", "folder/b.json", "folder/d.vrp", "--round", "round")
    told = nds("info", "folder").stdout
    assert "problem         3 CVRP, 1 CVRP with duration limit\n" in told
    assert "metric          none, round (auto)\n" in told


def test_standard_streams(stops):
    answer = piped("solve", "-", "--capacity", 5, "--column", "demand=kg", "--iterations", 3, "--out", "-", text=STOPS)
    assert answer.exit_code == 0
    assert answer.stdout.startswith("Route #1: ") and answer.stdout.endswith("Cost: 30\n")
    assert answer.stderr.startswith("problem: CVRP, 3 customers") and "wrote" not in answer.stderr
    answer = piped("solve", "-", "--capacity", 5, "--column", "demand=kg", "--iterations", 3, "--json", "-", text=STOPS)
    assert json.loads(answer.stdout)["cost"] == 30.0
    answer = piped("solve", "-", "--out", "-", "--json", "-", "--capacity", 5, "--column", "demand=kg", text=STOPS)
    assert (answer.exit_code, answer.stderr) == (2, "nds: -: is given for two outputs\n")
    ndsvrp.write_set(stops / "two.npz", ndsvrp.generate("cvrp", 5, count=2, seed=1))
    answer = piped("info", "-", "--index", 1, text=(stops / "two.npz").read_bytes())
    assert answer.stdout.splitlines()[0] == "name          problem-0001"
    answer = piped("info", "-", text="hello")
    assert answer.exit_code == 2 and answer.stderr.startswith("nds: -: is not an instance; accepted: VRPLIB (.vrp), ")
    answer = piped("solve", "-", text="")
    assert (answer.exit_code, answer.stderr) == (2, "nds: -: standard input is empty\n")


def test_results_of_a_set_on_standard_output_are_one_list(nds, data):
    answer = nds("solve", data / "sets/pcvrp100.npz", "--iterations", 2, "--json", "-")
    assert [result["problem"]["name"] for result in json.loads(answer.stdout)] == ["pcvrp100-0000", "pcvrp100-0001"]
    assert "mean cost" in answer.stderr


def test_solutions_by_the_ending(nds, stops):
    (stops / "geo.csv").write_text("name,lat,lon\nhub,52.5,13.4\na,52.6,13.5\n")
    for name in ("a.geojson", "a.csv"):
        nds("solve", "geo.csv", "--iterations", 1, "--out", name)
    nds("convert", "geo.csv", "geo.vrp")
    nds("solve", "geo.vrp", "--iterations", 1, "--out", "c.geojson")  # refused if it were not latitude and longitude
    before, after = ndsvrp.read(stops / "geo.csv"), ndsvrp.read(stops / "geo.vrp")
    assert after.geographic and after.distance.tolist() == before.distance.tolist()
    assert json.loads((stops / "a.geojson").read_text())["features"][0]["properties"] == {
        "kind": "depot",
        "name": "hub",
    }
    assert (stops / "a.csv").read_text().splitlines()[2].startswith("1,1,1,a,13.5,52.6,0.0,")
    given = ("--capacity", 9, "--column", "demand=kg", "--iterations", 1, "--out", "b.geojson")
    assert nds("solve", "stops.csv", *given, code=2).stderr == (
        "nds: 'stops' has coordinates in a plane; GeoJSON needs latitude and longitude\n"
    )


@pytest.mark.parametrize("name", ["problem", "result"])
def test_schema(nds, name):
    assert json.loads(nds("schema", name).stdout)["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert nds("schema", "model", code=2).stderr == "nds: no schema 'model' (known: problem, result)\n"


def test_metric_that_a_file_states(nds, stops, data):
    nds("convert", data / "small/toy.vrp", "a.vrp", "--round", "exact")
    assert "metric        exact (as stated in the file)" in nds("info", "a.vrp").stdout
    nds("convert", data / "small/toy.vrp", "a.json", "--round", "exact")
    assert "metric        exact (as stated in the file)" in nds("info", "a.json").stdout
    nds("convert", data / "small/toy.vrp", "b.json", "--round", "none")
    assert "metric        none (auto: JSON problems are plain floats)" in nds("info", "b.json").stdout


def test_info_shows_clock_times(nds, stops):
    (stops / "a.csv").write_text("x,y,ready,due\n0,0,08:00,17:30\n1,1,09:00,\n")
    assert "depot hours   08:00 to 17:30\n" in nds("info", "a.csv").stdout
