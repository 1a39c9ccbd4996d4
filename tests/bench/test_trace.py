"""The trace of a row: from the solver, thinned, read back."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from report_rows import row

from ndsvrp.bench.rows import read_rows
from ndsvrp.bench.run import run
from ndsvrp.bench.solvers import DEFAULT
from ndsvrp.bench.worker import TRACE_POINTS, thin
from ndsvrp.errors import InstanceError


def held(trace: list[tuple[float, float]], moment: float) -> float:
    return min(cost for seconds, cost in trace if seconds <= moment)


def test_a_short_trace_is_kept() -> None:
    assert thin([(0.00011, 123.4567891234)]) == [(0.0, 123.456789)]
    trace = [(i / 10, 100.0 - i) for i in range(TRACE_POINTS)]
    assert thin(trace) == trace
    assert thin([(0.0, 3.0), (0.0, 2.0)] * 30) == [(0.0, 3.0), (0.0, 2.0)], "without any time"


@pytest.mark.parametrize("last", [0.05, 3.0, 600.0])
def test_a_long_trace_is_thinned(last: float) -> None:
    random = Random(1)
    moments = sorted(last * random.random() ** 3 for _ in range(3000))
    trace = [(round(moment, 3), 5000.0 - i) for i, moment in enumerate([*moments, last])]
    thinned = thin(trace)
    assert 10 < len(thinned) <= TRACE_POINTS
    assert thinned[0] == trace[0] and thinned[-1] == trace[-1]
    assert set(thinned) <= set(trace) and thinned == sorted(thinned, key=lambda point: (point[0], -point[1]))
    assert all(held(thinned, last * i / 24) == held(trace, last * i / 24) for i in range(1, 25))


@pytest.mark.slow
@pytest.mark.usefixtures("fakes")
def test_rows_have_the_trace_of_our_own_solvers(small_set: Path, tmp_path: Path) -> None:
    request = replace(DEFAULT, chains=1)
    own, other = run([small_set], ["sisr", "fakes:STAR"], [0.1], "0", [1], tmp_path / "x.jsonl", request=request)
    assert "trace" not in other
    assert own["trace"][-1][1] == pytest.approx(own["cost"])
    assert all(0 <= seconds <= own["seconds"] for seconds, _ in own["trace"])
    assert read_rows(tmp_path / "x.jsonl") == [own, other]


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"trace": "x"}, "trace"), ({"trace": [[1.0]]}, "trace"), ({"trace": [[1.0, "x"]]}, "trace"),
        ({"trace": [[1.0, True]]}, "trace"), ({"trace": [[2.0, 5.0], [1.0, 4.0]]}, "trace"),
        ({"trace": [[-1.0, 5.0]]}, "trace"), ({"routes": 1.5}, "routes"), ({"best_known": "x"}, "best_known"),
        ({"customers": None}, "customers"), ({"budget": 0}, "budget"), ({"cost": 1e200}, "cost"),
        ({"cost": -1.0}, "cost"),
    ],
)  # fmt: skip
def test_broken_rows_are_named_by_file_line_and_field(tmp_path: Path, changes: dict[str, object], field: str) -> None:
    file = tmp_path / "x.jsonl"
    good = row("a", "p", 100.0, trace=[[0.5, 101.0], [0.5, 100.0]])
    file.write_text(json.dumps(good) + "\n" + json.dumps(good | changes) + "\n")
    with pytest.raises(InstanceError) as caught:
        read_rows(file)
    assert str(caught.value) == f"{file}:2: not a result row, {field} is missing or of another type"
