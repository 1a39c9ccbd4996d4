"""Clock times: read from tables, JSON and models, shown in pages, written back."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import ndsvrp
from ndsvrp.clock import clock, clock_with_seconds, exact_clock, minutes, span_text
from ndsvrp.errors import NdsError, NdsWarning
from ndsvrp.schemas import schema_text
from schema_check import faults

TABLE = "name,x,y,ready,due,service\nhub,0,0,08:00,17:00,0:00\nschool,0,30,09:00,10:00,0:15\nkiosk,0,31,,12:30:30,1.5\n"


def test_text_and_numbers() -> None:
    assert [minutes(text) for text in ("08:30", "8:30", " 24:05 ", "08:30:15")] == [510, 510, 1445, 510.25]
    assert [minutes(text) for text in ("8", "8:5", "08:60", "-1:00", "123:00", "٠٨:٣٠", "08:30 pm")] == [None] * 7
    assert [clock(time) for time in (510, 509.6, 0, 1445, -30, -0.2)] == [
        "08:30", "08:30", "00:00", "24:05", "-00:30", "00:00"
    ]  # fmt: skip
    assert [clock_with_seconds(time) for time in (510.25, 1445, -0.5, 599.995, -0.001)] == [
        "08:30:15", "24:05:00", "-00:00:30", "10:00:00", "00:00:00"
    ]  # fmt: skip
    by_clock: Any
    plain: Any
    by_clock, plain = (SimpleNamespace(clock_times=value) for value in (True, False))
    assert [span_text(by_clock, time) for time in (90, 0, 59.6, 1500, -0.2)] == [
        "1:30",
        "0:00",
        "1:00",
        "25:00",
        "0:00",
    ]
    assert span_text(plain, 90.25) == "90.25"
    assert [exact_clock(time) for time in (510, 510.25, 510.123, -1)] == ["08:30", "08:30:15", None, None]


def test_tables(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text(TABLE)
    problem = ndsvrp.read(file)
    assert problem.clock_times and problem.windows is not None and problem.service is not None
    assert problem.windows.tolist() == [[480, 1020], [540, 600], [480, 750.5]]
    assert problem.service.tolist() == [0, 15, 1.5]
    with pytest.warns(NdsWarning, match="does not state the fleet"):
        ndsvrp.write(tmp_path / "b.csv", problem)
    assert "school,0,30,0,09:00,10:00,15" in (tmp_path / "b.csv").read_text()
    assert ndsvrp.read(tmp_path / "b.csv").windows.tolist() == problem.windows.tolist()  # type: ignore[union-attr]
    with pytest.warns(NdsWarning) as warned:
        ndsvrp.write(tmp_path / "a.vrp", problem)
    assert "times are minutes since midnight" in str(warned[-1].message)
    odd = problem.replace(windows=[[480, 1020], [540.123, 600], [480, 750]])
    with pytest.warns(NdsWarning) as warned:
        ndsvrp.write(tmp_path / "c.csv", odd)
    assert str(warned[-1].message) == (
        f"{tmp_path}/c.csv:3: windows: 540.123 is not a clock time in whole seconds, so all windows are written as "
        "minutes; .json keeps that they are clock times"
    )
    assert "540.123,600," in (tmp_path / "c.csv").read_text()  # the numbers matter more than how they look
    file.write_text(TABLE.replace(":00", "").replace(":30:30", ""))  # hours, and 0:15
    with pytest.raises(NdsError, match="windows: 'hub' has a plain number, others have clock times"):
        ndsvrp.read(file)
    for cell, what in (
        ("9", ":3: windows: 'school' has a plain number, others have clock times such as 08:30"),
        ("09.00 h", ":3: ready: '09.00 h' is not a number, or a time such as 08:30"),
    ):
        file.write_text(TABLE.replace("09:00", cell))
        with pytest.raises(NdsError) as caught:
            ndsvrp.read(file)
        assert str(caught.value) == f"{file}{what}"


def test_json_keeps_them(tmp_path: Path) -> None:
    model = ndsvrp.Model("day")
    model.add_depot(0, 0, window=("08:00", None))
    model.add_customer(0, 30, name="school", window=("09:00", "10:00"), service="0:15")
    problem = model.problem()
    assert problem.clock_times and problem.windows is not None and problem.windows[0].tolist() == [480, 645]
    ndsvrp.write(tmp_path / "a.json", problem)
    table = json.loads((tmp_path / "a.json").read_text())
    assert (table["clock_times"], table["customers"][0]["window"]) == (True, [540, 600])
    table["customers"][0] |= {"window": ["09:00", "10:00"], "service": "0:15"}
    table["depot"]["window"] = ["08:00", "10:45"]
    del table["clock_times"]
    assert faults(table, json.loads(schema_text("problem"))) == []
    (tmp_path / "b.json").write_text(json.dumps(table))
    for name in ("a.json", "b.json"):
        again = ndsvrp.read(tmp_path / name)
        assert again.clock_times and again.windows is not None and problem.windows is not None
        assert again.windows.tolist() == problem.windows.tolist()
    table["customers"][0]["window"] = ["soon", "10:00"]
    assert faults(table, json.loads(schema_text("problem")))[0].startswith("$.customers[0].window[0]: 'soon'")
    (tmp_path / "b.json").write_text(json.dumps(table))
    said = r"b\.json: customers\[0\]: window must be a number or a time such as 08:30, got 'soon'"
    with pytest.raises(NdsError, match=said):
        ndsvrp.read(tmp_path / "b.json")


def test_the_report_shows_them(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(TABLE)
    problem = ndsvrp.read(tmp_path / "a.csv")
    init = problem.solution([["school", "kiosk"]])
    page = ndsvrp.solve(problem, iterations=1, init=init, device="cpu").to_html()
    assert '<td class="number">62</td><td class="number">1:18</td><td class="number">08:30</td>' in page  # 78.5 minutes
    assert "<td>09:00 to 10:00</td>" in page and "<td>08:00 to 12:30</td>" in page
    assert '<td class="number">09:00</td><td class="number">09:15</td>' in page  # start and departure at the school
    assert "start 09:00, departure 09:15, slack 1:00" in page
    assert ">08:30</text>" in page  # of the axis


def test_results_as_csv_have_clock_times(tmp_path: Path) -> None:
    """Points in time, not how long a vehicle waits. JSON keeps numbers."""
    (tmp_path / "stops.csv").write_text(TABLE)
    problem = ndsvrp.read(tmp_path / "stops.csv")
    result = ndsvrp.solve(problem, iterations=1, init=problem.solution([["school", "kiosk"]]), seed=1)
    result.save(tmp_path / "a.csv")
    rows = [line.split(",") for line in (tmp_path / "a.csv").read_text().splitlines()]
    assert [row[3:4] + row[7:] for row in rows] == [
        ["name", "arrival", "wait", "start", "departure", "slack"],
        ["hub", "08:30:00", "0.0", "08:30:00", "08:30:00", "60.0"],
        ["school", "09:00:00", "0.0", "09:00:00", "09:15:00", "60.0"],
        ["kiosk", "09:16:00", "0.0", "09:16:00", "09:17:30", "194.5"],
        ["hub", "09:48:30", "0.0", "09:48:30", "09:48:30", "431.5"],
    ]
    assert result.to_dict()["schedule"][0]["stops"][1]["start"] == 540
