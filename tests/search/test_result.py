"""What a result says: a summary, tables, GeoJSON, a page; and partial solutions of fleets that are too small."""

from __future__ import annotations

import base64
import json
import pickle
import re
import sys
from math import inf
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib.colors import to_hex

import ndsvrp
from ndsvrp.errors import NdsError, NoSolutionError
from ndsvrp.report.gantt import Axis
from ndsvrp.schemas import schema_text
from ndsvrp.search.result import Result, TracePoint
from schema_check import faults

ROOT = Path(__file__).parents[2]
SHORT: dict[str, Any] = {"iterations": 3, "seed": 1, "chains": 2, "rollouts": 30}


def result_of(problem: ndsvrp.Problem, *routes: tuple[int, ...], **more: Any) -> Result:
    solution = ndsvrp.Solution(routes)
    how = {"seed": 7, "stopped": "time", "seconds": 1.5, "iterations": 20, "reconstructions": 4000} | more
    return Result(problem, solution, ndsvrp.check(problem, solution), **how)


def town(**changes: Any) -> ndsvrp.Problem:
    """Berlin and three cities, with windows for two of them."""
    fields: dict[str, Any] = {
        "coordinates": [[13.4, 52.5], [9.99, 53.55], [11.58, 48.14], [6.96, 50.94]], "geographic": True,
        "demand": [0, 2, 3, 4], "capacity": 9, "names": ["Berlin", "Hamburg", "Munich & <b>", "Köln"],
        "windows": [[0, 5000], [0, 400], [0, 5000], [900, 2000]], "service": [0, 30, 30, 30], "name": "cities",
    }  # fmt: skip
    return ndsvrp.Problem(**(fields | changes))


def test_a_result_is_shown_in_one_line() -> None:
    """As in a notebook, where the problem and the trace would fill pages."""
    flat = ndsvrp.Problem(coordinates=[[0, 0], [3, 4], [6, 8]], demand=[0, 2, 3], capacity=5, name="two")
    assert repr(result_of(flat, (1, 2))) == "<Result of 'two': cost 20, 1 route, seed 7>"


def test_summary() -> None:
    problem = ndsvrp.Problem(
        coordinates=[[0, 0], [3, 4], [6, 8], [0, 5]], demand=[0, 2, 3, 4], capacity=5, name="toy", prize=[0, 0, 0, 7],
        names=["hub", "big bakery", "school", "kiosk"],
    )  # fmt: skip
    assert str(result_of(problem, (1, 2))) == (
        "toy: PCVRP, 3 customers\n"
        "cost 27, distance 20, lost prizes 7, 1 route, 1 unserved\n"
        "route  stops  load  distance  duration  customers\n"
        "    1      2     5        20        20  big bakery, school\n"
        "time limit after 1.50 s, 20 iterations, 4,000 reconstructions; seed 7"
    )
    broken = str(result_of(problem, (1, 2, 3))).splitlines()
    assert broken[1:3] == [
        "infeasible, cost 21.7082, distance 21.7082, lost prizes 0, 1 route, 0 unserved",
        "  route 1: load 9 is above the capacity 5",
    ]


def test_a_summary_has_at_most_twenty_lines() -> None:
    problem = ndsvrp.generate("cvrp", 200, seed=1)[0]
    lines = str(result_of(problem, *((c, c + 1) for c in range(1, 200, 2)))).splitlines()
    assert len(lines) == 17 and lines[-2] == "… and 88 more routes"
    one = str(result_of(problem, tuple(range(1, 201)))).splitlines()
    assert max(map(len, one)) == 110 and one[4].endswith(" …")
    assert len(str(result_of(problem)).splitlines()) <= 20


@pytest.mark.parametrize("variant", ["cvrp", "pcvrptw"])
def test_json_fits_its_schema(variant: str) -> None:
    schema = json.loads(schema_text("result"))
    result = ndsvrp.solve(ndsvrp.generate(variant, 15, seed=1)[0], **SHORT)
    table = json.loads(result.to_json())
    assert table == result.to_dict()
    assert faults(table, schema) == []
    assert faults(table | {"cost": "3"}, schema) == ["$.cost: '3' is not of type ['number']"]
    assert faults(table | {"more": 1}, schema) == ["$.more: unknown"]


def test_schedule_in_json() -> None:
    table = result_of(town(), (1, 2)).to_dict()
    assert [stop["name"] for stop in table["schedule"][0]["stops"]] == ["Berlin", "Hamburg", "Munich & <b>", "Berlin"]
    assert table["schedule"][0]["load"] == 5.0 and table["unserved_names"] == ["Köln"] and table["unserved"] == [3]
    assert list(table["schedule"][0]["stops"][1]) == ["node", "name", "arrival", "wait", "start", "departure", "slack"]
    free = result_of(town(windows=None), (1, 2)).to_dict()
    assert free["schedule"][0]["stops"][1]["slack"] is None


def test_dataframe(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", SimpleNamespace(DataFrame=lambda rows, columns: (columns, rows)))
    columns, rows = result_of(town(windows=None), (1, 2), (3,)).to_dataframe()
    assert columns[:7] == ["route", "position", "node", "name", "lon", "lat", "demand"]
    assert len(rows) == 7 and all(list(row) == columns for row in rows)
    assert (rows[5]["route"], rows[5]["name"], rows[5]["lat"], rows[5]["slack"]) == (2, "Köln", 50.94, inf)
    assert result_of(town()).to_dataframe() == (columns, [])  # nobody is served
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(NdsError, match=r"to_dataframe needs pandas \(pip install pandas\)"):
        result_of(town(), (1, 2)).to_dataframe()


def test_geojson() -> None:
    made = result_of(town(), (1, 2)).to_geojson()
    kinds = [(f["properties"]["kind"], f["geometry"]["type"]) for f in made["features"]]
    assert kinds == [
        ("depot", "Point"), ("route", "LineString"), ("stop", "Point"), ("stop", "Point"), ("unserved", "Point"),
    ]  # fmt: skip
    line = made["features"][1]
    assert line["geometry"]["coordinates"] == [[13.4, 52.5], [9.99, 53.55], [11.58, 48.14], [13.4, 52.5]]
    assert line["properties"]["stops"] == ["Hamburg", "Munich & <b>"] and line["properties"]["load"] == 5.0
    assert json.loads(json.dumps(made, allow_nan=False)) == made
    plane = ndsvrp.Problem(coordinates=[[0, 0], [1, 1]], demand=[0, 1], capacity=1, name="flat")
    with pytest.raises(NdsError, match="'flat' has coordinates in a plane; GeoJSON needs latitude and longitude"):
        result_of(plane, (1,)).to_geojson()


def test_a_table_without_routes_has_its_columns(tmp_path: Any) -> None:
    result_of(town(prize=[0, 1, 1, 1])).save(tmp_path / "a.csv")
    text = "route,position,node,name,lon,lat,demand,arrival,wait,start,departure,slack\n"
    assert (tmp_path / "a.csv").read_text() == text


def test_other_names_of_attributes() -> None:
    result = result_of(town(), (1, 2))
    for name, words in {
        "best": "; solution has the routes", "is_feasible": "; report.feasible has it", "colour": "",
        "routes": "; solution.routes has the customers of each, schedule their times",
    }.items():  # fmt: skip
        with pytest.raises(AttributeError) as caught:
            getattr(result, name)
        assert str(caught.value) == f"'Result' has no '{name}'{words}"


def test_errors_in_properties_are_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    """An AttributeError inside a property is not taken for a name that there is not."""
    result = result_of(town(), (1, 2))
    monkeypatch.setattr("ndsvrp.search.result.schedule", lambda *_: None.nodes)  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match="'NoneType' object has no attribute 'nodes'"):
        _ = result.schedule


def test_save_goes_by_the_ending(tmp_path: Any) -> None:
    result = result_of(town(), (1, 2))
    for name in ("a.sol", "a.json", "a.geojson", "a.csv", "a.html"):
        result.save(tmp_path / name)
    assert (tmp_path / "a.sol").read_text().startswith("Route #1: 1 2\n")
    assert json.loads((tmp_path / "a.geojson").read_text())["type"] == "FeatureCollection"
    csv = (tmp_path / "a.csv").read_text().splitlines()
    assert csv[0] == "route,position,node,name,lon,lat,demand,arrival,wait,start,departure,slack" and len(csv) == 5
    assert (tmp_path / "a.html").read_text().startswith("<!DOCTYPE html>")
    with pytest.raises(ndsvrp.NdsError, match=r"a\.PNG: '\.png' is a picture: --plot, or result\.plot"):
        result.save(tmp_path / "a.PNG")
    with pytest.raises(
        ndsvrp.NdsError, match=r"a\.xlsx: '\.xlsx' is a workbook; spreadsheet programs open \.csv; a result is"
    ):
        result.save(tmp_path / "a.xlsx")
    with pytest.raises(ndsvrp.NdsError, match=r"a\.png: a page is written as \.html, not as '\.png'"):
        result.report(tmp_path / "a.png")
    result.report(tmp_path / "run-0.5")  # no ending of another format
    assert (tmp_path / "run-0.5").read_text().startswith("<!DOCTYPE html>")
    assert not any((tmp_path / name).exists() for name in ("a.PNG", "a.png", "a.xlsx"))


# --- the page ------------------------------------------------------------------------------------


def parsed(page: str) -> ElementTree.Element:
    """The body as XML, which the page is apart from its head and a few tags without an end."""
    body = re.search(r"<body>.*</body>", page, re.DOTALL)
    assert body is not None
    plain = re.sub(r"<script>.*</script>", "", body[0], flags=re.DOTALL).replace("<details open>", "<details>")
    return ElementTree.fromstring(re.sub(r"(<img [^>]*[^/])>", r"\1/>", plain))


def test_page_names_the_unserved() -> None:
    assert "<dt>unserved</dt><dd>2: Munich &amp; &lt;b&gt;, Köln</dd>" in result_of(town(), (1,)).to_html()
    assert "<dt>unserved</dt><dd>0</dd>" in result_of(town(), (1, 2, 3)).to_html()
    many = ndsvrp.Problem(coordinates=[[i, 0] for i in range(31)], demand=[0] * 31, capacity=1)
    assert f"<dd>30: {', '.join(map(str, range(1, 21)))}, …</dd>" in result_of(many).to_html()


def test_page(tmp_path: Any) -> None:
    result = result_of(town(), (1, 2), trace=(TracePoint(0.5, 1, 30.0), TracePoint(1.0, 9, 20.1)))
    page = result.report(tmp_path / "out.html")
    assert (tmp_path / "out.html").read_text() == page == result.to_html()
    assert not re.search(r"(src|href)=\"(?!data:)|url\(|@import|fetch\(|http(?!://www\.w3\.org)", page)  # nothing else
    assert '<meta name="viewport" content="width=device-width, initial-scale=1">' in page
    body = parsed(page)
    assert [heading.text for heading in body.iter("h2")] == ["Map", "Routes", "Times", "Stops", "Convergence"]
    assert "Munich &amp; &lt;b&gt;" in page and "<b>" not in page
    for table in body.iter("table"):  # heads are aligned as their columns
        head, first = ([cell.get("class") == "number" for cell in row] for row in [*table.iter("tr")][:2])
        assert head == first and any(head) and not all(head)
    rows = [["".join(cell.itertext()) for cell in row] for row in body.iter("tr")]
    assert rows[1][:3] == ["1", "2", "5"] and rows[1][-1] == "Hamburg, Munich & <b>"
    stops = {row[0]: row for row in rows[3:]}
    assert stops["Hamburg"][1] == "2" and stops["Hamburg"][7] == "0 to 400"
    assert len([shape for shape in body.iter() if shape.tag.endswith("circle")]) == 3  # one of them unserved
    assert result.report == ndsvrp.check(result.problem, result.solution)


def test_page_says_how_far_the_best_known_cost_is() -> None:
    known = ndsvrp.read(ROOT / "examples/data/X-n106-k14.vrp")
    result = ndsvrp.solve(known, **SHORT)
    gap = 100 * (result.cost - 26362) / 26362
    page = result.to_html()
    assert f"<dt>gap</dt><dd>{gap:+.2f}% to the best known 26,362 (" in page
    curve = base64.b64decode(re.findall(r"data:image/svg\+xml;base64,([^\"]*)", page)[0]).decode()
    assert "best known, 26362" in curve
    table = result.to_dict()
    assert (table["best_known"], table["gap"]) == (26362, pytest.approx(gap))
    assert faults(table, json.loads(schema_text("result"))) == []
    plain = result_of(town(), (1, 2))
    assert "<dt>gap</dt>" not in plain.to_html()
    assert (plain.to_dict()["best_known"], plain.to_dict()["gap"]) == (None, None)


def test_page_says_what_customers_need() -> None:
    """On the map beside the pointer, and in the table of stops."""
    body = parsed(result_of(town(prize=[0, 0, 12.5, 3]), (1, 2)).to_html())
    titles = [element.text for element in body.iter() if element.tag.endswith("title")]
    assert "Hamburg, demand 2, window 0 to 400, required; route 1: 2 stops, load 5" in titles
    assert "Munich & <b>, demand 3, window 0 to 5,000, prize 12.5; route 1: 2 stops, load 5" in titles
    assert "Köln, demand 4, window 900 to 2,000, prize 3; unserved" in titles
    rows = [["".join(cell.itertext()) for cell in row] for row in body.iter("tr")]
    prizes = {row[0]: row[2] for row in rows[2:]}
    assert prizes == {"stop": "prize", "Berlin": "", "Hamburg": "required", "Munich & <b>": "12.5"}


def labels_of(result: Any) -> list[str | None]:
    (picture,) = (element for element in parsed(result.to_html()).iter() if element.get("id") == "map")
    return [element.text for element in picture.iter() if element.tag.endswith("text")]


def test_page_names_the_places_of_a_small_map() -> None:
    """Up to forty customers that have names, long ones cut, none above another."""
    assert labels_of(result_of(town(), (1, 2))) == ["Berlin", "Hamburg", "Munich & <b>", "Köln"]
    grid = [[i % 6, i // 6] for i in range(42)]
    for customers, shown in ((40, 41), (41, 0)):
        names = ["depot", *(f"c{i}" for i in range(1, customers + 1))]
        problem = ndsvrp.Problem(
            coordinates=grid[: customers + 1], demand=[0] * (customers + 1), capacity=1, names=names
        )
        assert len(labels_of(result_of(problem, range(1, customers + 1)))) == shown
    places, names = [[0, 0], [1, 0], [1, 0], [2, 0]], ["depot", "x" * 30, "y" * 24, "east"]
    problem = ndsvrp.Problem(coordinates=places, demand=[0] * 4, capacity=1, names=names)
    assert labels_of(result_of(problem, (1, 2, 3))) == [
        "depot",
        "x" * 23 + "…",
        "y" * 24,
        "east",
    ]  # left and right of it
    three = problem.replace(coordinates=[[0, 0], [1, 0], [1, 0], [1, 0]])
    assert labels_of(result_of(three, (1, 2, 3)))[1:] == ["x" * 23 + "…"]  # right of it is the edge
    assert labels_of(result_of(problem.replace(names=None), (1, 2, 3))) == []  # only numbers


def test_page_has_the_colours_of_the_picture() -> None:
    problem = ndsvrp.generate("cvrp", 40, seed=1)[0]
    result = ndsvrp.solve(problem, **SHORT)
    body = parsed(result.to_html())
    lines = [element for element in body.iter() if element.tag.endswith("polyline")]
    drawn = {str(artist.get_label()): artist for artist in result.plot().axes[0].collections}["routes"]
    in_picture = {}
    for segment, colour in zip(drawn.get_segments(), drawn.get_colors(), strict=True):
        route = tuple(int(np.abs(problem.coordinates - point).sum(axis=1).argmin()) for point in segment)
        in_picture[route] = to_hex(colour)
    assert len(lines) > 2
    assert [line.get("stroke") for line in lines] == [in_picture[route.customers] for route in result.schedule]


def test_pages_without_map_times_or_trace() -> None:
    matrix = ndsvrp.Problem(distance=[[0, 1], [1, 0]], demand=[0, 1], capacity=1)
    body = parsed(result_of(matrix, (1,)).to_html())
    assert [heading.text for heading in body.iter("h2")] == ["Routes", "Stops"]
    empty = result_of(ndsvrp.Problem(coordinates=[[0, 0], [0, 0]], demand=[0, 1], capacity=1))
    page = empty.to_html()
    assert [heading.text for heading in parsed(page).iter("h2")] == ["Map"]
    assert "1 required customer is not served: 1" in page
    with pytest.raises(NdsError, match="only the report of a Result has a page"):
        ndsvrp.check(matrix, ndsvrp.Solution([[1]]))("out.html")


def test_results_can_be_pickled() -> None:
    result = result_of(town(), (1, 2))
    copy = pickle.loads(pickle.dumps(result))
    assert str(copy) == str(result) and copy.report == result.report and copy.to_html() == result.to_html()


@pytest.mark.parametrize(
    ("begin", "end", "ticks"), [(0, 10, [0, 2, 4, 6, 8, 10]), (0.95, 1.92, [1.0, 1.2, 1.4, 1.6, 1.8])]
)
def test_ticks_of_an_axis(begin: float, end: float, ticks: list[float]) -> None:
    assert Axis(begin, end, 0.0, 100.0).ticks() == pytest.approx(ticks)
    assert Axis(5.0, 5.0, 0.0, 100.0).at(7.0) == 100.0


# --- fleets that are too small ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("demand", "vehicles", "takes"),
    [
        ([0, 2, 2, 2, 2], 3, None),  # 8 of 9
        ([0, 2, 2, 2, 2, 2], 3, 5),  # 10 of 9, and five that fill more than half
        ([0, 2, 2, 2, 2], 3, 4),
        ([0, 1, 1, 1, 1, 1, 1, 1], 2, 3),
    ],
)
def test_arithmetic_refuses_at_once(demand: list[int], vehicles: int, takes: int | None) -> None:
    capacity = 4 if takes is None else 3
    places = [[i, i * i % 5] for i in range(len(demand))]
    problem = ndsvrp.Problem(coordinates=places, demand=demand, capacity=capacity, vehicles=vehicles)
    if takes is None:
        assert ndsvrp.solve(problem, **SHORT).report.feasible
        return
    message = f"{vehicles} vehicles cannot serve all required customers: their demand takes {takes}"
    with pytest.raises(NoSolutionError) as caught:
        ndsvrp.solve(problem, time=1e6)
    assert str(caught.value) == message and caught.value.result is None and caught.value.unserved == []
    other, refused = ndsvrp.solve_set([problem.replace(vehicles=9), problem], **SHORT)
    assert isinstance(other, Result) and isinstance(refused, NoSolutionError) and str(refused) == message


def test_float_demands_that_just_fit_are_not_refused() -> None:
    demand = [0.0, *[0.1] * 30]
    problem = ndsvrp.Problem(coordinates=[[i, i % 3] for i in range(31)], demand=demand, capacity=0.3, vehicles=10)
    assert len(ndsvrp.solve(problem, iterations=20, seed=1).solution.routes) == 10


def test_the_best_partial_solution_comes_with_the_error() -> None:
    # 12 of 12 by arithmetic, but 3 + 1 and 2 + 2 do not fill three vehicles of 4 with the sizes 3, 3, 3, 2, 1
    problem = ndsvrp.Problem(
        coordinates=[[i, i % 2] for i in range(6)], demand=[0, 3, 3, 2, 2, 2], capacity=4, vehicles=3,
        names=["hub", "a", "b", "c", "d", "e"],
    )  # fmt: skip
    with pytest.raises(NoSolutionError) as caught:
        ndsvrp.solve(problem, **SHORT)
    partial = caught.value.result
    assert partial is not None and not partial.report.feasible
    assert len(caught.value.unserved) == 1 and list(partial.report.unserved) == caught.value.unserved
    assert str(partial).splitlines()[1].startswith("infeasible, cost ")
    assert partial.to_dict()["feasible"] is False
