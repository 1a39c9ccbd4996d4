"""Tables of stops, problems as JSON, matrices, folders; and from each format to the others."""

from __future__ import annotations

import io
import json
import re
import sys
import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import ndsvrp
from ndsvrp.errors import InstanceError, NdsError, NdsWarning
from ndsvrp.io import read, read_set, write
from ndsvrp.io.forms import ACCEPTED
from ndsvrp.io.problem_json import problem_table
from ndsvrp.schemas import schema_text
from schema_check import faults

DATA = Path(__file__).parents[1] / "data"
STOPS = """name,x,y,demand,ready,due,service,prize
hub,0,0,,0,90,,
bakery,3,4,2,5,40,1,
"school, old",6,8,3,,,,7.5
kiosk,0,5,4,9,,2,
"""
ARRAYS = ("coordinates", "demand", "windows", "service", "prize", "distance", "duration")
SCALARS = ("capacity", "vehicles", "max_distance", "max_duration", "vehicle_cost", "metric", "geographic")


def put(folder, text, name="stops.csv"):
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def message(call, *arguments, **options):
    with pytest.raises(NdsError) as caught:
        call(*arguments, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def assert_same(a, b, names=True):
    assert [getattr(a, name) for name in SCALARS] == [getattr(b, name) for name in SCALARS]
    assert not names or a.names == b.names
    for name in ARRAYS:
        one, other = getattr(a, name), getattr(b, name)
        assert (one is None) == (other is None), name
        if one is not None:
            np.testing.assert_array_equal(one, other, err_msg=name)


# --- tables of stops -------------------------------------------------------------------------------


def test_table(tmp_path):
    problem = read(put(tmp_path, STOPS), capacity=9, vehicles=2, max_distance=70, max_duration=80, vehicle_cost=5)
    assert (problem.name, problem.names) == ("stops", ("hub", "bakery", "school, old", "kiosk"))
    assert problem.coordinates.tolist() == [[0, 0], [3, 4], [6, 8], [0, 5]]
    assert problem.demand.tolist() == [0, 2, 3, 4] and problem.service.tolist() == [0, 1, 0, 2]
    assert problem.windows.tolist() == [[0, 90], [5, 40], [0, 90], [9, 90]]
    assert problem.prize.tolist() == [0, 0, 7.5, 0]
    assert (problem.capacity, problem.vehicles, problem.max_distance, problem.max_duration) == (9, 2, 70, 80)
    assert problem.vehicle_cost == 5
    assert str(problem.metric) == "none" and str(read(put(tmp_path, STOPS), "exact", capacity=9).metric) == "exact"


@pytest.mark.parametrize(("mark", "end"), [(";", "\r\n"), (",", "\n"), ("\t", "\n")])
def test_first_line_may_state_the_separator(tmp_path, mark, end):
    text = f"sep={mark}{end}" + STOPS.replace(",", mark).replace("school; old", "school, old").replace("\n", end)
    assert_same(read(put(tmp_path, text), capacity=9), read(put(tmp_path, STOPS), capacity=9), names=mark == ";")
    broken = text.replace(f"kiosk{mark}0", f"kiosk{mark}west")
    assert message(read, put(tmp_path, broken), capacity=9).startswith(f"{tmp_path / 'stops.csv'}:6: ")


def test_columns_by_mapping_and_alias(tmp_path):
    text = "Kunde;Easting;Northing;kg;Note\nhub;0;0;0;a\nb;1,5;2;3,25;b\n"
    with pytest.warns(NdsWarning, match=r"stops\.csv:1: columns ignored: 'Note'$") as warned:
        problem = read(
            put(tmp_path, text), capacity=9, columns={"name": "kunde", "x": "easting", "y": "NORTHING", "demand": "kg"}
        )
    assert warned[0].filename == __file__
    assert problem.names == ("hub", "b") and problem.demand.tolist() == [0, 3.25]
    assert problem.coordinates.tolist() == [[0, 0], [1.5, 2]]
    tabs = "ID\tLatitude\tLongitude\tService-Time\nhub\t52.5\t13.4\t\nb\t52.6\t13.3\t5\n"
    problem = read(put(tmp_path, tabs, "a.tsv"))
    assert problem.geographic and problem.coordinates.tolist() == [[13.4, 52.5], [13.3, 52.6]]
    assert problem.service.tolist() == [0, 5] and problem.capacity == 1
    other = "x,y,demand,weight\n0,0,0,0\n1,1,9,2\n"
    assert read(put(tmp_path, other), capacity=9, columns={"demand": "weight"}).demand.tolist() == [0, 2]


def test_one_of_two_columns_of_names(tmp_path):
    path = put(tmp_path, "id,Stop,x,y\n0,hub,0,0\n1,a,1,2\n")
    assert read(path, columns={"name": "stop"}).names == ("hub", "a")
    assert read(path, columns={"name": "id"}).names == ("0", "1")


def test_tabs_with_decimal_commas(tmp_path):
    path = put(tmp_path, "name\tx\ty\tdemand\nhub\t0\t0\t\nb\t1,5\t2\t3,25\n", "stops.tsv")
    problem = read(path, capacity=9)
    assert problem.coordinates.tolist() == [[0, 0], [1.5, 2]] and problem.demand.tolist() == [0, 3.25]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a,b\n1,2\n", ":1: names no known column (known: name, x, y, lat, lon, demand, ready, due, service, prize)"),
        ("x,demand\n0,0\n1,1\n", ":1: y: missing, 'x' is given"),
        ("x,y,lat,lon\n0,0,0,0\n", ":1: has both x, y and lat, lon; --ignore-field x and y, or lat and lon"),
        ("x,y,X\n0,0,0\n", ":1: x: is given twice, as 'x' and 'X'"),
        (
            "id,Stop,x,y\n0,hub,0,0\n",
            ":1: name: is given twice, as 'id' and 'Stop' (--column name=stop reads that one only)",
        ),
        (
            "x,y,pickup\n0,0,0\n",
            ":1: 'pickup': is not supported (pickups and deliveries; --ignore-field pickup ignores it)",
        ),
        (
            "x,y,service_duration\n0,0,0\n",
            ":1: 'service_duration': may be meant for 'service' (--column service=service_duration reads it, "
            "--ignore-field service_duration ignores it)",
        ),
        (
            "x,y,max_distance\n0,0,0\n",
            ":1: 'max_distance': limits all routes (--max-distance states it, --ignore-field max_distance ignores it)",
        ),
        (
            "x,y,route_duration\n0,0,0\n",
            ":1: 'route_duration': limits all routes (--max-duration states it, "
            "--ignore-field route_duration ignores it)",
        ),
        (
            "x,y,distance_limit\n0,0,0\n",
            ":1: 'distance_limit': limits all routes (--max-distance states it, "
            "--ignore-field distance_limit ignores it)",
        ),
        ("x,y\n0,0\n", ":1: needs a depot, the first row, and at least one customer"),
        ("x,y\n0,0\n1,1,1\n", ":3: 3 values, expected 2"),
        ("x,y\n0,0\n1,one\n", ":3: y: 'one' is not a number"),
        ("x,y\n0,0\n1,nan\n", ":3: y: 'nan' is not a number"),
        ("x,y,demand\n0,0,\n\n1,1,3\n1,,3\n", ":5: y is missing (customer 2)"),
        ("x,y,demand\n0,0,\n1,1,3\n,,3\n", ":4: coordinates: the depot has x and y, '2' has no location"),
        ("x,y,demand\n0,0,5\n1,1,3\n", ":2: demand: the depot's, of the first row, must be 0"),
        ("x,y,demand\n0,0,\n1,1,3\n1,2,10\n", ":4: demand: 10 is above the capacity 9 (customer 2, '2')"),
        ("x,y,name\n0,0,a\n1,1,a\n", ":3: names: 'a' is given to node 0 and to node 1"),
        ("x,y,ready,due\n0,0,0,9\n1,1,8,4\n", ":3: windows: due date 4 is before ready time 8 (customer 1, '1')"),
        ("lat,lon\n0,0\n91,1\n", ":3: coordinates: 91 is not a latitude in degrees (node 1)"),
        (
            "name,demand\na,0\nb,1\n",
            ":1: no column holds places: --column x=NAME and y=NAME, or lat and lon; or a matrix (--distance)",
        ),
    ],
)  # fmt: skip
def test_what_a_table_must_not_say(tmp_path, text, words):
    path = put(tmp_path, text)
    assert message(read, path, capacity=9) == f"{path}{words}"


def test_a_table_needs_a_capacity(tmp_path):
    path = put(tmp_path, STOPS)
    what = "capacity: missing, customers have demands; --capacity, or capacity= in Python"
    assert message(read, path) == f"{path}: {what}"
    other = put(tmp_path, '{"depot": {"x": 0, "y": 0}, "customers": [{"x": 1, "y": 1, "demand": 2}]}', "a.json")
    assert message(read, other) == f"{other}: {what}"
    assert message(read, path, capacity=9, columns={"kg": "x"}).endswith("columns: no column 'kg' (known: name, x, y, "
        "lat, lon, demand, ready, due, service, prize)")  # fmt: skip
    assert message(read, path, capacity=9, columns={"demand": "kg"}) == (
        f"{path}:1: has no column 'kg', which is to be 'demand'"
    )
    assert message(read, DATA / "small/toy.vrp", columns={"demand": "kg"}).endswith(
        "columns are for tables of stops (.csv)"
    )


def test_unknown_keywords(tmp_path):
    path = put(tmp_path, STOPS)
    known = "capacity, vehicles, max_distance, max_duration, vehicle_cost, distance, duration, columns"
    for call, names in ((read, "metric, index, ignore_fields"), (read_set, "metric, ignore_fields")):
        words = f"unknown 'kapacity' (did you mean capacity? known: {names}, {known})"
        assert message(call, path, kapacity=9) == f"{call.__name__}: {words}"


def test_tabs(tmp_path):
    with pytest.warns(NdsWarning, match="does not state the fleet"):
        write(tmp_path / "a.tsv", everything())
    assert (
        (tmp_path / "a.tsv")
        .read_text()
        .startswith("name\tx\ty\tdemand\tready\tdue\tservice\tprize\nhub\t0\t0\t0\t0\t90")
    )


@pytest.mark.parametrize(
    ("name", "ours"),
    [("window_start", "ready"), ("TW end", "due"), ("time window", "ready"), ("Earliest", "ready"),
     ("latest-time", "due"), ("demand_kg", "demand"), ("Volume", "demand"), ("service min", "service"),
     ("closes", "due"), ("penalty", "prize")],
)  # fmt: skip
def test_columns_that_may_be_meant_for_ours_are_refused(tmp_path, name, ours):
    """Without them the routes may be infeasible."""
    path, plain = put(tmp_path, f"x,y,{name}\n0,0,\n1,1,2\n"), "_".join(name.lower().replace("-", " ").split())
    with pytest.raises(InstanceError) as refused:
        read(path)
    hint = f"--column {ours}={plain} reads it, --ignore-field {plain} ignores it"
    assert str(refused.value) == f"{path}:1: '{name}': may be meant for '{ours}' ({hint})"
    assert read(path, ignore_fields=[name]).customers == 1


@pytest.mark.parametrize(
    ("head", "message"),
    [
        ("x,y,qty,tw start,TW_End",
         "'qty', 'tw start', 'TW_End': may be meant for 'demand', 'ready', 'due' (--column demand=qty "
         "--column ready=tw_start --column due=tw_end reads them, --ignore-field NAME ignores one)"),
        ("x,y,weight,volume,due",  # two that cannot be read as one column
         "'weight', 'volume': may be meant for 'demand' (--column demand=weight --ignore-field volume reads them, "
         "--ignore-field NAME ignores one)"),
    ],
)  # fmt: skip
def test_all_columns_that_may_be_meant_for_ours_are_named_at_once(tmp_path, head, message):
    path = put(tmp_path, f"{head}\n0,0,,,\n1,1,,2,3\n")
    with pytest.raises(InstanceError) as refused:
        read(path, capacity=5)
    assert str(refused.value) == f"{path}:1: {message}"
    stated = re.findall(r"--column (\w+)=(\w+)", message)
    assert read(path, capacity=5, columns=dict(stated), ignore_fields=["volume"]).customers == 1


def test_a_mapping_the_wrong_way_round_is_explained(tmp_path):
    path = put(tmp_path, "x,y,kg\n0,0,0\n1,1,2\n")
    with pytest.raises(InstanceError, match=r"; demand=kg reads the column 'kg' as 'demand'\)$"):
        read(path, capacity=5, columns={"kg": "demand"})


def test_tables_in_utf_16_are_refused_with_what_to_do(tmp_path):
    (tmp_path / "a.csv").write_text("x,y\n0,0\n1,1\n", encoding="utf-16")
    with pytest.raises(InstanceError, match=r"a\.csv: is UTF-16 text: save it as UTF-8$"):
        read(tmp_path / "a.csv")


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("Demand (kg)", "--column 'demand=demand_(kg)' reads it, --ignore-field 'demand_(kg)' ignores it"),
        ("pickup [kg]", "--ignore-field 'pickup_[kg]' ignores it"),
    ],
)
def test_hints_can_be_pasted_into_a_shell(tmp_path, name, hint):
    path = put(tmp_path, f"x,y,{name}\n0,0,\n1,1,2\n")
    with pytest.raises(InstanceError) as refused:
        read(path)
    assert hint in str(refused.value)


def test_columns_can_be_ignored(tmp_path):
    path = put(tmp_path, "x,y,lat,lon,pickup\n0,0,52,13,1\n1,1,53,14,1\n")
    assert read(path, ignore_fields=["lat", "lon", "pickup"]).coordinates.tolist() == [[0, 0], [1, 1]]
    assert read(path, ignore_fields=["X", "y", "pickup"]).geographic


def test_arguments_of_read_that_are_of_a_wrong_type(tmp_path):
    path = put(tmp_path, "x,y,priority\n0,0,1\n1,1,1\n")  # its letters are not columns to be ignored
    assert message(read, path, ignore_fields="priority") == "ignore_fields must be a list of names, got str"
    words = 'columns must be a table of names, such as {"demand": "kg"}'
    assert message(read, path, columns="demand=kg") == words
    assert message(read, path, columns={"demand": 3}) == words
    assert message(read, path, ignore_fields=["priority"], index="0") == "index must be a whole number, got '0'"
    for call in (read, read_set):
        for name, matrix, kind in (("distance", np.zeros((2, 2)), "ndarray"), ("duration", [[0, 1], [1, 0]], "list")):
            how = f"problem.replace({name}=…) takes an array"
            words = f"{name} is the path of a .csv or .npy file, got {kind} ({how})"
            assert message(call, path, **{name: matrix}) == words


def test_degrees_in_a_plane_are_warned_of(tmp_path):
    for name, text in (("a.csv", "x,y\n13.4,52.5\n13.5,52.6\n"), ("a.vrp", VRP.replace("3 4", "0.3 0.4"))):
        path = put(tmp_path, text.replace("\n1 0 0", "\n1 13.4 52.5").replace("\n2 0.3 0.4", "\n2 13.5 52.6"), name)
        with pytest.warns(NdsWarning, match="coordinates look like degrees and are used as a plane"):
            read(path)


# --- matrices ----------------------------------------------------------------------------------------

MATRIX = [[0, 1, 2, 3], [4, 0, 5, 6], [7, 8, 0, 9], [1.5, 2, 3, 0]]


def test_matrices_beside_a_table(tmp_path):
    path, plain = put(tmp_path, STOPS), put(tmp_path, "\n".join(",".join(map(str, row)) for row in MATRIX), "m.csv")
    np.save(tmp_path / "m.npy", np.array(MATRIX, np.float32))
    named = put(
        tmp_path,
        "from,kiosk,hub,bakery,'school\nkiosk,0,1.5,2,3\nbakery,6,4,0,5\nhub,3,0,1,2\n'school,9,7,8,0\n".replace(
            "'school", '"school, old"'
        ),
        "named.csv",
    )
    for file in (plain, tmp_path / "m.npy", named):
        problem = read(path, capacity=9, distance=file)
        assert problem.distance.tolist() == MATRIX and problem.duration is None
        problem = read(path, capacity=9, duration=file)
        assert problem.duration.tolist() == MATRIX
        assert problem.distance[1].tolist() == [5, 0, 5, pytest.approx(10**0.5)]
    table = put(tmp_path, "name,demand\nhub,0\na,1\nb,1\nc,1\n", "b.csv")
    assert read(table, capacity=9, distance=plain).coordinates is None


def test_matrices_beside_other_files(tmp_path):
    matrix = put(tmp_path, "0,1,2\n3,0,4\n5,6,0\n", "m.csv")
    problem = read(DATA / "small/toymatrix.vrp", distance=matrix, capacity=20, vehicles=2)
    assert problem.distance.tolist() == [[0, 1, 2], [3, 0, 4], [5, 6, 0]]
    assert (problem.capacity, problem.vehicles) == (20, 2)
    assert read(DATA / "small/toymatrix.vrp", duration=matrix).duration.tolist() == [[0, 1, 2], [3, 0, 4], [5, 6, 0]]
    toy = read(DATA / "small/toy.vrp", duration=put(tmp_path, "\n".join(["1,1,1,1,1"] * 5), "five.csv"))
    assert toy.distance[1].tolist() == [5, 0, 5, 3, 4] and toy.duration.tolist() == [[1] * 5] * 5


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("0,1\n1,0\n", ": 3 lines, expected 4 rows, the depot first"),
        ("0,1,2,3\n1,0,2\n\n\n", ":2: 3 values, expected 4: one per node, the depot first"),
        ("0,1,2,3,4,5\n\n\n\n", ":1: 6 values, expected 4: one per node, the depot first"),
        ("0" + ",1" * 999, ":1: 1,000 values, expected 4: one per node, the depot first"),
        ("0,1,2,3\n" * 3, ": 3 rows, expected 4: one per node, the depot first"),
        ("0,1,2,3\n" * 5, ":5: more than 4 rows"),
        ("0,1,2,x\n" * 4, ":1: 'x' is neither a number nor the name of a stop"),
        (",hub,bakery,kiosk,7\n" * 4, ":1: '7' is not the name of a stop"),
        ("0,1,2,3\n0,1,2,-3\n0,1,2,3\n0,1,2,3\n", ":2: '-3' is negative"),
        ("0 1 2 3\n" * 4, ":1: values are separated by spaces: use commas, semicolons or tabs"),
        ("0;1,5;2;3,x\n" * 4, ":1: '3,x' is neither a number nor the name of a stop"),
        ("0,1,2,3\n0,x,2,3\n0,1,2,3\n0,1,2,3\n", ":2: 'x' is not a number"),
        (",hub,bakery,kiosk,kiosk\n" + "hub,1,2,3,4\n" * 4, ": a name is given twice, or one is missing"),
    ],
)
def test_broken_matrices(tmp_path, text, words):
    path, matrix = put(tmp_path, STOPS), put(tmp_path, text, "m.csv")
    assert message(read, path, capacity=9, distance=matrix) == f"{matrix}{words}"


def test_files_that_are_no_matrix(tmp_path):
    path = put(tmp_path, STOPS)
    assert message(read, path, capacity=9, distance=tmp_path / "m.xls").endswith(
        "a matrix is a .csv or .npy file, not '.xls'"
    )
    assert message(read, path, capacity=9, distance=tmp_path / "m.npy") == f"{tmp_path / 'm.npy'}: no such file"
    np.save(tmp_path / "m.npy", np.zeros((3, 4)))
    expected = "holds float64 of shape (3, 4), expected numbers of shape (4, 4)"
    assert message(read, path, capacity=9, duration=tmp_path / "m.npy").endswith(expected)
    np.save(tmp_path / "m.npy", np.array([object()] * 4), allow_pickle=True)
    assert message(read, path, capacity=9, duration=tmp_path / "m.npy").endswith(
        "holds pickled objects, which are not read"
    )
    (tmp_path / "m.npy").write_bytes(b"\x93NUMPY\x01\x00v\x00{'descr': '<f8', 'shape': (9999999999,)}")
    assert "is not an .npy file, or a damaged one" in message(read, path, capacity=9, duration=tmp_path / "m.npy")
    for number, words in ((-3, "-3 from node 2 to node 1 is negative"), (np.inf, "inf from node 2 to node 1 is not")):
        values = np.ones((4, 4))
        values[2, 1] = number
        np.save(tmp_path / "m.npy", values)
        assert message(read, path, capacity=9, duration=tmp_path / "m.npy").startswith(f"{tmp_path / 'm.npy'}: {words}")


def test_a_matrix_with_decimal_commas(tmp_path):
    path = put(tmp_path, "name;x;y\nhub;0;0\na;1,5;2\n")
    for text in ("0;1,5\n2;0\n", "0,0;1,5\n2,0;0,0\n", "0,0\t1,5\n2\t0\n", ";a;hub\na;0;2\nhub;1,5;0\n"):
        assert read(path, distance=put(tmp_path, text, "m.csv")).distance.tolist() == [[0, 1.5], [2, 0]]
    names = put(tmp_path, "name;x;y\n7,10;0;0\n7,1;1,5;2\n", "names.csv")  # not 7.1 and 7.10, which are one number
    problem = read(names, distance=put(tmp_path, ";7,1;7,10\n7,10;1,5;0\n7,1;0;2\n", "m.csv"))
    assert problem.names == ("7,10", "7,1")
    assert problem.distance.tolist() == [[0, 1.5], [2, 0]]
    quoted = put(tmp_path, '"","hub","b;c"\n"hub",0,1\n"b;c",2,0\n', "m.csv")
    path = put(tmp_path, 'name,x,y\nhub,0,0\n"b;c",1,2\n')
    assert read(path, distance=quoted).distance.tolist() == [[0, 1], [2, 0]]


@pytest.mark.parametrize("mark", [",", ";", "\t", " , "])
def test_lines_of_a_matrix_may_end_with_a_separator(tmp_path, mark):
    path = put(tmp_path, "name,x,y\nhub,0,0\na,1,2\n")
    for text in ("0,1,\n2,0,\n", ",a,hub,\na,0,2,\nhub,1,0,\n", ",a,hub\na,0,2,\nhub,1,0,\n"):
        matrix = put(tmp_path, text.replace(",", mark), "m.csv")
        assert read(path, distance=matrix).distance.tolist() == [[0, 1], [2, 0]]
    for text, words in (("0,1,\n2,,\n", ":2: '' is not a number"), ("0,\n2,0\n", ":1: 1 value, expected 2: one per")):
        matrix = put(tmp_path, text.replace(",", mark), "m.csv")
        assert message(read, path, distance=matrix).startswith(f"{matrix}{words}")


def test_large_tables_are_measured_before_they_are_parsed(tmp_path, monkeypatch):
    path = put(tmp_path, STOPS)
    monkeypatch.setattr("ndsvrp.io.reader.MAX_TABLE", 100)
    assert message(read, path, capacity=9).startswith(f"{path}: is 0 MiB large, a table or JSON has at most 0 MiB")
    monkeypatch.undo()
    monkeypatch.setattr("ndsvrp.io.stops.MOST_ROWS", 2)
    assert message(read, path, capacity=9) == f"{path}:4: more than 2 stops"
    wide = put(tmp_path, "x,y" + ",z" * 2000 + "\n")
    assert message(read, wide) == f"{wide}:1: 2,002 columns, at most 1,000"
    cell = put(tmp_path, f'x,y\n0,"{"0" * 200_000}"\n')
    assert message(read, cell) == f"{cell}:2: is not CSV (field larger than field limit (131072))"


# --- JSON --------------------------------------------------------------------------------------------

TOWN = {
    "name": "town", "capacity": 9, "vehicles": 2,
    "depot": {"name": "hub", "x": 0, "y": 0, "window": [0, 90]},
    "customers": [
        {"name": "bakery", "x": 3, "y": 4, "demand": 2, "window": [5, None], "service": 1},
        {"x": 6, "y": 8, "demand": 3, "prize": 7.5, "window": None},
    ],
}  # fmt: skip


def put_json(folder, table):
    return put(folder, json.dumps(table), "problem.json")


def test_json_problem(tmp_path):
    assert faults(TOWN, json.loads(schema_text("problem"))) == []
    problem = read(put_json(tmp_path, TOWN), vehicles=3)
    assert (problem.name, problem.names, problem.capacity, problem.vehicles) == ("town", ("hub", "bakery", "2"), 9, 3)
    assert problem.windows.tolist() == [[0, 90], [5, 90], [0, 90]] and problem.prize.tolist() == [0, 0, 7.5]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"customers": None}, "customers: is not a list"),
        ({"depot": None}, "depot: missing"),
        ({"depot": []}, "depot: is not a table"),
        ({"customers": [3]}, "customers[0]: is not a table"),
        ({"customers": []}, "customers: is empty, at least one is needed"),
        ({"depots": []}, "depots: is not supported (more than one depot)"),
        ({"colour": 1}, "colour: unknown, it may state a constraint (known: name, metric, clock_times, capacity, "
                        "vehicles, max_distance, max_duration, vehicle_cost, depot, customers, distance, duration)"),
        ({"capacity": "9"}, "capacity: '9' is not a number"),
        ({"vehicles": 1.5}, "vehicles: 1.5 is not a number of vehicles"),
        ({"metric": "cubic"}, "metric: unknown 'cubic' (known: none, round, trunc, dimacs, exact)"),
        ({"name": 3}, "name: 3 is not text"),
        ({"distance": [[0, 1], [1, 0]]}, "distance: has shape (2, 2), expected (3, 3)"),
        ({"distance": [[0, 1], [1]]}, "distance: is not a square matrix: a list of lists"),
        ({"duration": [[0, -1, 1]] * 3}, "duration: -1 from node 0 to node 1 is negative"),
        ({"customers": [{"x": 1, "y": "2"}]}, "customers[0]: y must be a number, got '2' (customer 1)"),
        (
            {"customers": [{"x": 1, "y": 2}, {"name": "a"}]},
            "customers[1].coordinates: the depot has x and y, 'a' has no location",
        ),
        (
            {"customers": [{"x": 1, "y": 2, "pickup": 1}]},
            "customers[0].pickup: is not supported (pickups and deliveries)",
        ),
        (
            {"customers": [{"x": 1, "y": 2, "service_duration": 1}]},
            "customers[0].service_duration: unknown, it may state a constraint (known: name, x, y, lat, lon, window, "
            "demand, service, prize)",
        ),
        (
            {"customers": [{"x": 1, "y": 2, "demand": 10}]},
            "customers[0].demand: 10 is above the capacity 9 (customer 1, '1')",
        ),
        (
            {"customers": [{"x": 1, "y": 2, "window": [9, 5]}]},
            "customers[0].window: due date 5 is before ready time 9 (customer 1, '1')",
        ),
        (
            {"customers": [{"x": 1, "y": 2, "name": "a"}, {"x": 1, "y": 2, "name": "a"}]},
            "customers[1].name: 'a' is given to node 1 and to node 2",
        ),
        (
            {"customers": [{"x": 3, "y": 4}], "max_distance": 9},
            "max_distance: unreachable: 10 there and back, above the limit 9 (customer 1, '1')",
        ),
        (
            {"customers": [{"x": 1, "y": 2}], "distance": [[0, 1], ["5", 0]]},
            "distance[1][0]: '5' is not a number",
        ),
        (
            {"customers": [{"x": 1, "y": 2}], "distance": [[0, 1], [1, 0]], "duration": [[0, True], [None, 0]]},
            "duration[0][1]: 'True' is not a number",
        ),
    ],
)  # fmt: skip
def test_broken_json(tmp_path, change, words):
    path = put_json(tmp_path, TOWN | change)
    assert message(read, path) == f"{path}: {words}"


def test_json_that_is_no_problem(tmp_path):
    path = put(tmp_path, '{"cost": 3}', "a.json")
    assert message(read, path) == f"{path}: is not a problem: no table with 'customers'; accepted: {ACCEPTED}"
    path.write_text('{"customers": ')
    assert message(read, path).startswith(f"{path}: is not JSON (Expecting value: line 1")
    path.write_text('{"depot": {"x": 0, "y": 0, "x": 9}, "customers": [{"x": 3, "y": 4}]}')
    assert message(read, path) == f"{path}: 'x' is given twice in one table"
    path.write_text("[" * 100_000)
    assert message(read, path).startswith(f"{path}: is not JSON (maximum recursion depth exceeded")


# --- VRPLIB ------------------------------------------------------------------------------------------

VRP = """NAME : two
DIMENSION : 2
EDGE_WEIGHT_TYPE : EUC_2D
CAPACITY : 10
NODE_COORD_SECTION
1 0 0
2 3 4
DEMAND_SECTION
1 0
2 3
DEPOT_SECTION
1
"""


def test_geo(tmp_path):
    text = VRP.replace("EUC_2D", "GEO").replace("1 0 0", "1 38.24 20.42").replace("2 3 4", "2 39.57 26.15")
    problem = read(put(tmp_path, text, "a.vrp"))
    assert problem.geographic and problem.distance.tolist() == [[0, 509], [509, 0]]  # as TSPLIB's ulysses22
    assert problem.coordinates[0].tolist() == pytest.approx([20.7, 38.4]) and str(problem.metric) == "round"
    path = put(tmp_path, text.replace("38.24", "98.24"), "b.vrp")
    assert message(read, path) == f"{path}:6: NODE_COORD_SECTION: 98.4 is not a latitude in degrees (node 0)"


def test_degrees_beside_a_matrix(tmp_path):
    matrix = (DATA / "small/toymatrix.vrp").read_text()
    text = matrix.replace("DEMAND_SECTION", "NODE_COORD_SECTION\n1 13 52\n2 13 53\n3 14 52\nDEMAND_SECTION")
    problem = read(put(tmp_path, f"COORDINATES : LON_LAT\n{text}", "a.vrp"))
    assert problem.geographic and problem.coordinates[1].tolist() == [13, 53] and problem.distance[0, 2] == 3
    path = put(tmp_path, f"COORDINATES : POLAR\n{text}", "b.vrp")
    assert message(read, path) == f"{path}:1: COORDINATES: 'POLAR' is not supported (known: LON_LAT)"
    for rest in (VRP, matrix):
        path = put(tmp_path, f"COORDINATES : LON_LAT\n{rest}", "c.vrp")
        what = "is for NODE_COORD_SECTION beside EDGE_WEIGHT_TYPE EXPLICIT"
        assert message(read, path) == f"{path}:1: COORDINATES: {what}"


def test_metric_and_durations(tmp_path):
    assert str(read(put(tmp_path, f"METRIC : exact\n{VRP}", "a.vrp")).metric) == "exact"
    assert str(read(tmp_path / "a.vrp", "trunc").metric) == "trunc"
    path = put(tmp_path, f"METRIC : cubic\n{VRP}", "b.vrp")
    assert message(read, path).startswith(f"{path}:1: METRIC: 'cubic' is not supported (known: none, round")
    matrix = (DATA / "small/toymatrix.vrp").read_text()
    durations = matrix.replace("DEMAND_SECTION", "EDGE_DURATION_SECTION\n0 10 20\n30 0 40\n50 60 0\nDEMAND_SECTION")
    assert read(put(tmp_path, durations, "c.vrp")).duration.tolist() == [[0, 10, 20], [30, 0, 40], [50, 60, 0]]
    path = put(tmp_path, durations.replace("40", "-40"), "d.vrp")
    assert message(read, path) == f"{path}:13: duration: -40 from node 1 to node 2 is negative"
    path = put(tmp_path, VRP.replace("DEMAND_SECTION", "EDGE_DURATION_SECTION\n0 1 1 0\nDEMAND_SECTION"), "e.vrp")
    assert message(read, path).endswith("contradicts EDGE_WEIGHT_TYPE, which is not EXPLICIT")


# --- any format to any other -------------------------------------------------------------------------


def everything(**changes):
    fields = {
        "coordinates": [[0, 0], [0.1, 4], [6, 8.25], [0, 5]], "demand": [0, 2, 3.5, 4], "capacity": 9.5,
        "windows": [[0, 90], [5, 40], [0, 90], [9, 90]], "service": [0, 1, 0, 2], "prize": [0, 0, 7.5, 0],
        "vehicles": 2, "max_duration": 70, "vehicle_cost": 12.5, "name": "town",
        "names": ["hub", "bakery", "school, old", "kiosk"],
    }  # fmt: skip
    return ndsvrp.Problem(**fields | changes)


MATRICES = {"distance": MATRIX, "duration": (1 - np.eye(4)).tolist()}
CASES = {
    "everything": everything(max_distance=60),
    "rounded": everything(metric="round", service=None, prize=None, vehicle_cost=12),
    "no windows": everything(windows=None, max_duration=None, service=None, prize=None, vehicle_cost=None),
    "matrices": everything(**MATRICES),
    "only matrices": everything(coordinates=None, **MATRICES),
    "geographic": everything(coordinates=[[13, 52], [13.5, 52.5], [14, 52], [13, 53]], geographic=True, windows=None,
                             max_duration=None, service=None),
    "road distances": everything(coordinates=[[13, 52], [13.5, 52.5], [14, 52], [13, 53]], geographic=True, **MATRICES),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_json_keeps_everything(tmp_path, name):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        write(tmp_path / "a.json", CASES[name])
        assert_same(read(tmp_path / "a.json"), CASES[name])
    assert faults(json.loads((tmp_path / "a.json").read_text()), json.loads(schema_text("problem"))) == []
    assert ("distance" in problem_table(CASES[name])) == ("matrices" in name or "road" in name)


@pytest.mark.parametrize("name", CASES)
def test_vrplib_keeps_all_but_names(tmp_path, name):
    with pytest.warns(NdsWarning, match=r"a\.vrp: the names of customers are not kept"):
        write(tmp_path / "a.vrp", CASES[name])
    assert_same(read(tmp_path / "a.vrp"), CASES[name], names=False)


@pytest.mark.parametrize("name", ["everything", "rounded", "no windows", "geographic"])
def test_tables_keep_all_but_the_fleet(tmp_path, name):
    case = CASES[name]
    with pytest.warns(NdsWarning, match="does not state the fleet; read it with --capacity 9.5 --vehicles 2"):
        write(tmp_path / "a.csv", case)
    fleet = {
        field: getattr(case, field)
        for field in ("capacity", "vehicles", "max_distance", "max_duration", "vehicle_cost")
    }
    assert_same(read(tmp_path / "a.csv", case.metric, **fleet), case)


@pytest.mark.parametrize("file", ["toy.txt", "toytw.vrp", "toymatrix.vrp", "toy.vrp"])
def test_published_forms_round_trip(tmp_path, file):
    problem = read(DATA / "small" / file)
    for ending in ("vrp", "json", *(("txt",) if file == "toy.txt" else ())):
        write(tmp_path / f"a.{ending}", problem)
        assert_same(read(tmp_path / f"a.{ending}"), problem, names=False)
        assert read(tmp_path / f"a.{ending}").name == problem.name


def test_what_a_format_cannot_hold(tmp_path):
    for name, ending, words in (
        ("matrices", "csv", "distance: a table of stops holds no matrix: use .json or .vrp"),
        ("road distances", "csv", "distance: a table of stops holds no matrix: use .json or .vrp"),
        ("everything", "txt", "prize: has no place in Solomon text: use .json or .vrp"),
        ("no windows", "txt", "windows: Solomon text needs time windows: use .json or .vrp"),
        (
            "rounded",
            "npz",
            "metric: a set is of plain floats, the metric 'round' would be lost (--round none, or metric= in Python)",
        ),
    ):
        path = tmp_path / f"a.{ending}"
        assert message(write, path, CASES[name]) == f"{path}: {words}"
    assert message(write, tmp_path / "a.xls", CASES["rounded"]).startswith(
        f"{tmp_path / 'a.xls'}: the ending names no format: --to NAME, or form= in Python, one of vrp, solomon, npz"
    )
    assert message(write, tmp_path / "a.vrp", 3) == "write needs a Problem, got int (see ndsvrp.Problem)"
    assert list(tmp_path.iterdir()) == []


# --- by content, folders, standard input -----------------------------------------------------------------


def test_formats_are_recognised_by_content(tmp_path, monkeypatch):
    ndsvrp.write_set(tmp_path / "set.npz", [everything(names=None, max_duration=None)])
    contents = {
        "vrp": VRP.encode(), "solomon": (DATA / "small/toy.txt").read_bytes(), "csv": STOPS.encode(),
        "json": json.dumps(TOWN).encode(), "npz": (tmp_path / "set.npz").read_bytes(),
    }  # fmt: skip
    for form, content in contents.items():
        (tmp_path / "data").write_bytes(content)
        found = read(tmp_path / "data", capacity=9.5)
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(content)))
        assert_same(read("-", capacity=9.5), found)
        assert found.customers == {"vrp": 1, "solomon": 3, "csv": 3, "json": 2, "npz": 3}[form]
    book = tmp_path / "stops.xlsx"
    book.write_bytes(b"PK\x03\x04 of a spreadsheet program")
    assert message(read, book) == f"{book}: is a workbook, save its table as .csv; accepted: {ACCEPTED}"
    for text in ("Dear reader,\nhello.\n", "hello", "%PDF-1.7\n"):
        (tmp_path / "data").write_text(text.replace(",", ""))
        assert message(read, tmp_path / "data") == f"{tmp_path / 'data'}: is not an instance; accepted: {ACCEPTED}"
    (tmp_path / "data").write_bytes(b"\x00\x01")
    assert message(read, tmp_path / "data") == f"{tmp_path / 'data'}: is not a text file; accepted: {ACCEPTED}"


def test_standard_input_is_bounded(monkeypatch):
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(b"x" * 50)))
    monkeypatch.setattr("ndsvrp.io.files.read_bytes.__defaults__", (20,))
    assert message(read, "-") == "-: standard input has more than the 0 KiB read"
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(b"")))
    assert message(read, "-") == "-: standard input is empty"
    monkeypatch.setattr(sys, "stdin", None)
    assert message(read, "-").startswith("-: standard input cannot be read (")


def test_names_of_files_may_have_digits_that_are_no_numbers(tmp_path):
    for name in ("a1²", "a10", "a2"):
        put(tmp_path, VRP.replace("two", name), f"{name}.vrp")
    assert [problem.name for problem in read_set(tmp_path)] == ["a1²", "a2", "a10"]


def test_folders(tmp_path):
    for name in ("a10", "a2"):
        put(tmp_path, VRP.replace("two", name), f"{name}.vrp")
    put(tmp_path, json.dumps(TOWN), "b.json")
    put(tmp_path, "no instance", "notes.md")
    assert [problem.name for problem in read_set(tmp_path)] == ["a2", "a10", "town"]
    assert read(tmp_path, index=1).name == "a10"
    assert message(read, tmp_path) == f"{tmp_path}: holds 3 instances, choose one by its index (0 … 2)"
    assert message(read, tmp_path, index=3) == f"{tmp_path}: no instance 3, there are 3 (0 … 2)"
    put(tmp_path, "{", "c.json")
    assert message(read_set, tmp_path).startswith(f"{tmp_path / 'c.json'}: is not JSON")
    empty = tmp_path / "empty"
    empty.mkdir()
    assert message(read, empty) == f"{empty}: has no instance files (.vrp, .txt, .csv, .tsv, .json)"
    with pytest.raises(InstanceError, match="is a directory, not a file"):
        (tmp_path / "d.vrp").mkdir()
        read(tmp_path / "d.vrp")


@pytest.mark.parametrize(
    "text", ["Name;X;Y\nhub;0;0\na;3,5;4\n", '{"depot": {"x": 0, "y": 0}, "customers": [{"x": 1, "y": 1}]}']
)
def test_any_text_may_be_called_txt(tmp_path, text):
    assert read(put(tmp_path, text, "a.txt"), capacity=1).customers == 1


@pytest.mark.parametrize("text", ["hello\n", "Dear reader, this is\nno instance\n", "VRP;of;ours\n1;2;3\n"])
def test_other_text_is_refused_with_what_is_accepted(tmp_path, text):
    path = put(tmp_path, text, "a.txt")
    assert message(read, path) == f"{path}: is not an instance; accepted: {ACCEPTED}"
