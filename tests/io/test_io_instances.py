"""Instance files, read to their values."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest

from ndsvrp.errors import InstanceError, NdsWarning
from ndsvrp.io import read, read_set
from ndsvrp.metric import Metric

DATA = Path(__file__).parents[1] / "data"
TOY = (DATA / "small/toy.vrp").read_text()
MATRIX = (DATA / "small/toymatrix.vrp").read_text()


def put(tmp_path, text, name="file.vrp"):
    path = tmp_path / name
    path.write_text(text)
    return path


def same(actual, expected):
    np.testing.assert_array_equal(actual, np.array(expected, dtype=np.float64))


# --- VRPLIB ------------------------------------------------------------------------------------


def test_cvrp():
    problem = read(DATA / "small/toy.vrp")
    assert (problem.name, problem.customers, problem.capacity, problem.vehicles) == ("toy", 4, 10.0, None)
    assert problem.metric is Metric.ROUND
    same(problem.coordinates, [[0, 0], [3, 4], [6, 8], [0, 5], [0, 1]])
    same(problem.demand, [0, 3, 4, 5, 6])
    assert problem.windows is problem.service is problem.prize is problem.distance is None


def test_windows_prizes_and_one_service_time_for_all_customers():
    problem = read(DATA / "small/toytw.vrp")
    assert (problem.name, problem.vehicles, problem.metric) == ("toytw", 2, Metric.DIMACS)
    same(problem.windows, [[0, 100], [10, 20], [15, 30], [0, 50]])
    same(problem.service, [0, 5, 5, 5])
    same(problem.prize, [0, 0, 7, 1.5])
    assert problem.required.tolist() == [False, True, False, False]


def test_service_section(tmp_path):
    text = (DATA / "small/toytw.vrp").read_text().replace("SERVICE_TIME : 5\n", "")
    text = text.replace("PRIZE_SECTION", "SERVICE_TIME_SECTION\n1 0\n2 1\n3 2.5\n4 3\nPRIZE_SECTION")
    same(read(put(tmp_path, text)).service, [0, 1, 2.5, 3])


def test_windows_line_endings_byte_order_mark_and_comments(tmp_path):
    path = tmp_path / "file.vrp"
    path.write_bytes(b"\xef\xbb\xbf# a remark\r\n" + TOY.replace("\n", "\t\r\n").encode() + b"anything after EOF\r\n")
    same(read(path).demand, [0, 3, 4, 5, 6])


def test_name_is_the_file_where_none_is_given(tmp_path):
    assert read(put(tmp_path, TOY.replace("NAME : toy\n", ""), "some.vrp")).name == "some"


def test_rows_in_any_order(tmp_path):
    problem = read(put(tmp_path, TOY.replace("3 6 8\n4 0 5\n", "4 0 5\n3 6 8\n")))
    same(problem.coordinates, [[0, 0], [3, 4], [6, 8], [0, 5], [0, 1]])


def test_depot_may_be_any_node(tmp_path):
    text = TOY.replace("DEPOT_SECTION\n1\n", "DEPOT_SECTION\n3\n").replace("1 0\n2 3\n3 4\n", "1 4\n2 3\n3 0\n")
    problem = read(put(tmp_path, text))
    same(problem.coordinates, [[6, 8], [0, 0], [3, 4], [0, 5], [0, 1]])
    same(problem.demand, [0, 4, 3, 5, 6])


def test_fault_is_found_where_the_depot_is_another_node(tmp_path):
    text = TOY.replace("DEPOT_SECTION\n1\n", "DEPOT_SECTION\n3\n").replace("1 0\n2 3\n3 4\n", "1 4\n2 -3\n3 0\n")
    path = put(tmp_path, text)
    with pytest.raises(InstanceError) as caught:
        read(path)
    assert str(caught.value) == f"{path}:15: demand: -3 is negative (customer 2)"


@pytest.mark.parametrize("metric", list(Metric))
def test_metric_can_be_chosen(metric):
    assert read(DATA / "small/toy.vrp", metric=metric).metric is metric
    assert read(DATA / "small/toy.vrp", metric=str(metric)).metric is metric


def test_unknown_metric():
    with pytest.raises(InstanceError) as caught:
        read(DATA / "small/toy.vrp", metric="euclid")
    assert str(caught.value) == "unknown metric 'euclid' (known: auto, none, round, trunc, dimacs, exact)"


def test_remarks_are_ignored(tmp_path):
    path = put(tmp_path, TOY.replace("CAPACITY : 10\n", "CAPACITY : 10\nBEST_KNOWN : 32\nAUTHOR : me\n"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        same(read(path).demand, [0, 3, 4, 5, 6])


@pytest.mark.parametrize("name", ["DISTANCE", "VEHICLES_MAX_DURATION"])
def test_both_names_of_the_limit_on_durations(tmp_path, name):
    path = put(tmp_path, TOY.replace("CAPACITY : 10\n", f"CAPACITY : 10\n{name} : 30\n"))
    problem = read(path)
    assert (problem.max_duration, problem.max_distance, problem.metric) == (30.0, None, Metric.NONE)
    put(tmp_path, TOY.replace("CAPACITY : 10\n", f"CAPACITY : 10\n{name} : 9\n"))
    with pytest.raises(InstanceError, match=":7: max_duration: unreachable: 10 there and back, above the limit 9"):
        read(path)


@pytest.mark.parametrize("name", ["MAXDISTANCE", "FLEETSIZE", "SERVICETIME", "OPENVRP", "VEHICULES", "WEATHER"])
def test_unknown_field_is_refused_unless_it_is_ignored(tmp_path, name):
    path = put(tmp_path, TOY.replace("CAPACITY : 10\n", f"CAPACITY : 10\n{name.lower()} : 3\n"))
    with pytest.raises(InstanceError) as caught:
        read(path)
    reason = f"unknown, it may state a constraint (--ignore-field {name} ignores it)"
    assert str(caught.value) == f"{path}:7: {name}: {reason}"
    with pytest.warns(NdsWarning) as warned:
        problem = read(path, ignore_fields=["other", name.title()])
    assert [str(w.message) for w in warned] == [f"{path}:7: {name}: ignored, as asked"]
    assert warned[0].filename == __file__
    same(problem.demand, [0, 3, 4, 5, 6])


@pytest.mark.parametrize("name", ["PICKUP", "PICKUP_SECTION"])
def test_unknown_section_is_refused_unless_it_is_ignored(tmp_path, name):
    path = put(tmp_path, TOY.replace("DEPOT_SECTION", "PICKUP_SECTION\n2 7\nDEPOT_SECTION"))
    with pytest.raises(InstanceError, match=r"PICKUP_SECTION: states a constraint .*--ignore-field PICKUP_SECTION"):
        read(path)
    with pytest.warns(NdsWarning, match="PICKUP_SECTION: ignored, as asked"):
        assert read_set(path, ignore_fields=[name])[0].customers == 4


def test_a_section_with_the_name_of_a_field_can_be_ignored(tmp_path):
    section = "VEHICLES_MAX_DURATION_SECTION"  # limits that differ; the field limits all
    path = put(tmp_path, TOY.replace("DEPOT_SECTION", f"{section}\n1 7\nDEPOT_SECTION"))
    with pytest.raises(InstanceError, match=f"{section}: .*--ignore-field {section} ignores it"):
        read(path)
    with pytest.warns(NdsWarning, match=f"{section}: ignored, as asked"):
        assert read(path, ignore_fields=[section]).customers == 4


def test_what_is_read_cannot_be_ignored(tmp_path):
    with pytest.raises(InstanceError, match="CAPACITY: is a field that is read, it cannot be ignored"):
        read(put(tmp_path, TOY), ignore_fields=["capacity"])


@pytest.mark.parametrize(
    "name", ["MAX_ROUTE_LENGTH", "SALESMEN", "MIN VEHICLES", "TIME-LIMIT", "FLEET_SIZE", "OPEN", "SERVICE_COST"]
)
def test_unknown_field_that_may_be_a_constraint_is_refused(tmp_path, name):
    path = put(tmp_path, TOY.replace("CAPACITY : 10\n", f"CAPACITY : 10\n{name} : 7\n"))
    with pytest.raises(InstanceError) as caught:
        read(path)
    assert (caught.value.line, caught.value.field) == (7, name.replace(" ", "_").replace("-", "_"))


# --- matrices ------------------------------------------------------------------------------------


def test_full_matrix_may_be_asymmetric_and_its_diagonal_means_nothing():
    problem = read(DATA / "small/toymatrix.vrp")
    same(problem.distance, [[0, 2, 3], [4, 0, 6], [7, 8, 0]])
    assert problem.coordinates is None and problem.metric is Metric.ROUND
    assert problem.length([0, 1, 2], [1, 2, 0]).tolist() == [2, 6, 7]


SYMMETRIC = [[0, 2, 3, 4], [2, 0, 5, 6], [3, 5, 0, 7], [4, 6, 7, 0]]


@pytest.mark.parametrize(
    "layout, values",
    [
        ("FULL_MATRIX", "0 2 3 4 2 0 5 6 3 5 0 7 4 6 7 0"),
        ("LOWER_ROW", "2 3 5 4 6 7"),
        ("LOWER_DIAG_ROW", "0 2 0 3 5 0 4 6 7 0"),
        ("UPPER_ROW", "2 3 4 5 6 7"),
        ("UPPER_DIAG_ROW", "0 2 3 4 0 5 6 0 7 0"),
        ("LOWER_COL", "2 3 4 5 6 7"),
        ("LOWER_DIAG_COL", "0 2 3 4 0 5 6 0 7 0"),
        ("UPPER_COL", "2 3 5 4 6 7"),
        ("UPPER_DIAG_COL", "0 2 0 3 5 0 4 6 7 0"),
    ],
)
@pytest.mark.parametrize("wrap", [1, 3, 100])
def test_layouts_with_lines_broken_anywhere(tmp_path, layout, values, wrap):
    words = values.split()
    lines = "\n".join(" ".join(words[i : i + wrap]) for i in range(0, len(words), wrap))
    head = f"DIMENSION : 4\nEDGE_WEIGHT_TYPE : EXPLICIT\nEDGE_WEIGHT_FORMAT : {layout}\nCAPACITY : 9\n"
    rest = "DEMAND_SECTION\n1 0\n2 1\n3 1\n4 1\nDEPOT_SECTION\n1\n-1\nEOF\n"
    same(read(put(tmp_path, f"{head}EDGE_WEIGHT_SECTION\n{lines}\n{rest}")).distance, SYMMETRIC)


def test_matrix_follows_the_depot(tmp_path):
    text = MATRIX.replace("DEPOT_SECTION\n1\n", "DEPOT_SECTION\n2\n").replace("1 0\n2 3\n", "1 3\n2 0\n")
    same(read(put(tmp_path, text)).distance, [[0, 4, 6], [2, 0, 3], [8, 7, 0]])


@pytest.mark.parametrize("section", ["NODE_COORD", "DISPLAY_DATA"])
def test_matrix_with_coordinates_to_draw(tmp_path, section):
    text = MATRIX.replace("DEMAND_SECTION", f"{section}_SECTION\n1 0 0\n2 1 2\n3 3 4\nDEMAND_SECTION")
    problem = read(put(tmp_path, text))
    same(problem.coordinates, [[0, 0], [1, 2], [3, 4]])
    assert problem.length(0, 1) == 2.0  # from the matrix


def test_matrix_with_fractions_is_taken_as_it_is(tmp_path):
    problem = read(put(tmp_path, MATRIX.replace("9999 2 3", "9999 2.25 3")))
    assert problem.metric is Metric.NONE and problem.length(0, 1) == 2.25


def test_whole_matrix_with_fractional_windows_is_taken_as_it_is(tmp_path):
    windows = "TIME_WINDOW_SECTION\n1 0 99\n2 0.25 50\n3 0 50\nDEMAND_SECTION"
    problem = read(put(tmp_path, MATRIX.replace("DEMAND_SECTION", windows)))
    assert problem.metric is Metric.NONE and problem.windows[1, 0] == 0.25


# --- Solomon -------------------------------------------------------------------------------------


def test_solomon():
    problem = read(DATA / "small/toy.txt")
    assert (problem.name, problem.customers, problem.capacity, problem.vehicles) == ("TOY", 3, 10.0, 2)
    assert problem.metric is Metric.DIMACS
    same(problem.coordinates, [[0, 0], [3, 4], [6, 8], [0, 5]])
    same(problem.demand, [0, 3, 4, 5])
    same(problem.windows, [[0, 100], [10, 20], [15, 30], [0, 50]])
    same(problem.service, [0, 5, 5, 5])


def test_solomon_with_decimals(tmp_path):
    text = (DATA / "small/toy.txt").read_text().replace("15        30", "15.5      30.7")
    same(read(put(tmp_path, text, "file.txt")).windows[2], [15.5, 30.7])


def test_format_is_told_by_content(tmp_path):
    assert read(put(tmp_path, (DATA / "small/toy.txt").read_text(), "noending")).vehicles == 2
    assert read(put(tmp_path, TOY, "toy.txt")).metric is Metric.ROUND


# --- sets ----------------------------------------------------------------------------------------


def test_sets_of_the_paper():
    first, second = read_set(DATA / "sets/vrptw100.npz")
    assert (first.name, second.name) == ("vrptw100-0000", "vrptw100-0001")
    assert (second.customers, second.capacity, second.metric) == (100, 61.0, Metric.NONE)
    same(second.coordinates[:2], np.float32([[0.5, 0.5], [0.644, 0.763]]))
    same(second.windows[:2], np.float32([[0.0, 1.8], [0.841, 1.241]]))
    same(second.demand[:4], [0, 3, 7, 8])
    same(second.service[:2], np.float32([0, 0.05]))
    prizes = read(DATA / "sets/pcvrp100.npz", index=1)
    same(prizes.prize[:3], np.float32([0, 0.14335838, 0.16945434]))
    assert prizes.windows is None and prizes.service is None
    plain = read(DATA / "sets/cvrp100.npz", index=1)
    assert plain.capacity == 50.0 and plain.coordinates[0].tolist() == pytest.approx([0.43772774, 0.78535858])
    assert plain.prize is None and plain.windows is None


def test_one_of_a_set_must_be_chosen():
    path = DATA / "sets/cvrp100.npz"
    for index, words in {
        None: "holds 2 instances, choose one by its index (0 … 1)",
        2: "no instance 2, there are 2 (0 … 1)",
        -1: "no instance -1, there are 2 (0 … 1)",
    }.items():
        with pytest.raises(InstanceError) as caught:
            read(path, index=index)
        assert str(caught.value) == f"{path}: {words}"


def test_other_files_hold_one_instance():
    path = DATA / "small/toy.vrp"
    assert read(path, index=0).name == "toy"
    assert [problem.name for problem in read_set(path)] == ["toy"]
    with pytest.raises(InstanceError) as caught:
        read(path, index=1)
    assert str(caught.value) == f"{path}: no instance 1, the file holds one (0)"


def test_metric_of_a_set_can_be_chosen(tmp_path):
    path = tmp_path / "one.npz"
    np.savez(path, depot_xy=[[0, 0]], node_xy=[[[1, 1.0]]], demand=[[1]], capacity=[5], vehicles=[3])
    problem = read(path, metric="round")
    assert (problem.name, problem.vehicles, problem.metric) == ("one", 3, Metric.ROUND)
    assert problem.length(0, 1) == 1.0
