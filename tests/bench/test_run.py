"""The runner, with fake solvers."""

import errno
import json
import os
import threading
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import fakes as solvers
import pytest

from ndsvrp.bench import pool, rows
from ndsvrp.bench import run as runner
from ndsvrp.bench.pool import Pool
from ndsvrp.bench.rows import KEY, Row, append_row, key, read_rows
from ndsvrp.bench.run import run
from ndsvrp.bench.solvers import DEFAULT
from ndsvrp.errors import InstanceError

pytestmark = pytest.mark.usefixtures("fakes")


def test_rows_say_all_there_is_to_know(small_set: Path, tmp_path: Path) -> None:
    out, told = tmp_path / "results" / "x.jsonl", []
    rows = run([small_set], ["fakes:STAR"], [1], "0,2", [7], out, 1, lambda *what: told.append(what))
    assert [row["cost"] for row in rows] == [12.0, 36.0]
    row = rows[1]
    assert row.items() >= {
        "set": "small", "instance": "0002", "solver": "fakes:STAR", "solver_version": "1", "feasible": True,
        "seconds": 0.25, "budget": 1.0, "seed": 7, "metric": "none", "routes": 2, "threads": 1, "customers": 2,
        "unserved": 0, "best_known": None, "gap": None,
    }.items()  # fmt: skip
    assert {"commit", "hardware", "date", "cpu_seconds", *KEY} <= row.keys()
    assert row["date"].endswith("+00:00")
    assert row["settings"] == {"cores": [max(os.sched_getaffinity(0))], "omp": "1", "inf": None}
    assert [(done, total) for done, total, _ in told] == [(1, 2), (2, 2)]
    assert read_rows(out) == rows


FOUND: Row = {"feasible": True, "seconds": 4.0, "cpu_seconds": 4.0, "gap": None}


def test_resume_runs_only_what_is_missing(small_set: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out, tasks = tmp_path / "x.jsonl", []
    monkeypatch.setattr(Pool, "call", lambda self, task, limit: tasks.append(task) or [FOUND | {"cost": len(tasks)}])
    run([small_set], ["fakes:STAR"], [1], "0", [1], out)
    rows = run([small_set], ["fakes:STAR"], [1], "0-1", [1], out)
    assert [row["cost"] for row in rows] == [1, 2]  # the first was not run again
    for change in ({"times": [2]}, {"seeds": [2]}, {"solvers": ["fakes:CHOOSY"]}):
        arguments: dict[str, Any] = {"solvers": ["fakes:STAR"], "times": [1], "instances": "0", "out": out}
        before = len(tasks)
        run([small_set], **arguments | change)
        run([small_set], **arguments | change)
        assert len(tasks) == before + 1
    monkeypatch.setattr(solvers.Star, "release", "2")
    assert run([small_set], ["fakes:STAR"], [1], "0", [1], out)[0]["cost"] == 6
    assert len(read_rows(out)) == 6


@pytest.mark.slow
def test_failures_are_rows_and_tried_again(small_set: Path, tmp_path: Path) -> None:
    out = tmp_path / "x.jsonl"
    names = ["fakes:RAISING", "fakes:CRASHING", "fakes:FORGETFUL", "fakes:CHOOSY"]
    raising, crashing, forgetful, choosy = run([small_set], names, [1], "0", [1], out)
    assert raising["error"] == "exit code 1: RuntimeError: lost the map"
    assert crashing["error"].startswith("exit code -11")
    assert (forgetful["feasible"], forgetful["cost"], forgetful["gap"]) == (False, 10.0, None)
    assert "not served: 2" in forgetful["violations"][0]
    assert choosy["skipped"] == "not on a Sunday"
    run([small_set], names, [1], "0", [1], out)
    assert [row["solver"] for row in read_rows(out)] == [*names, "fakes:RAISING", "fakes:CRASHING"]


def test_a_solver_that_does_not_come_back_is_ended(small_set: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "GRACE", 0.3)
    (row,) = run([small_set], ["fakes:SLEEPING"], [0.1], "0")
    assert row["error"] == "ended after 0.5 s without an answer"


def test_what_is_done_survives_an_interruption(small_set: Path, tmp_path: Path) -> None:
    def stop(done: int, total: int, row: Row) -> None:
        raise KeyboardInterrupt

    out = tmp_path / "x.jsonl"
    with pytest.raises(KeyboardInterrupt):
        run([small_set], ["fakes:STAR", "fakes:SLEEPING"], [1], None, [1], out, 1, stop)
    assert [row["cost"] for row in read_rows(out)] == [12.0]


@pytest.mark.slow
def test_our_own_search_several_together(small_set: Path, tmp_path: Path) -> None:
    out = tmp_path / "x.jsonl"
    request = replace(DEFAULT, chains=2, ruin="related", settings={"rollouts": 10})
    rows = run([small_set], ["nds", "fakes:STAR"], [0.2], None, [1], out, request=request, together=2)
    own, stars = rows[0:2] + rows[4:5], rows[2:4] + rows[5:]
    assert [row["instance"] for row in rows] == ["0000", "0001", "0000", "0001", "0002", "0002"]
    assert {row["solver"] for row in own} == {"nds-related-2-rollouts=10-x2"}
    assert [row["cost"] for row in stars] == [12.0, 24.0, 36.0]
    best = 5 + 1 + 18**0.5  # both on one route
    assert [row["cost"] for row in own] == pytest.approx([best, 2 * best, 3 * best])
    assert [row["settings"].get("together") for row in own] == [2, 2, None]
    assert all(0.2 <= row["seconds"] < 0.5 for row in own)
    assert read_rows(out) == rows
    assert run([small_set], ["nds"], [0.2], None, [1], out, request=request, together=2) == own
    assert len(read_rows(out)) == 6


def test_runs_on_a_gpu(small_set: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process takes several instances, so many at once; the rows are those of the GPU."""
    tasks: list[dict[str, Any]] = []

    def call(self: Any, task: dict[str, Any], limit: float) -> list[Row]:
        tasks.append(task | {"limit": limit})
        return [FOUND | {"cost": float(i)} for i in range(len(task["cases"]))]

    monkeypatch.setattr(runner, "Device", lambda: SimpleNamespace(name="H200"))
    monkeypatch.setattr(Pool, "call", call)
    request = replace(DEFAULT, device="cuda", ruin="policy", chains=128)
    out = tmp_path / "x.jsonl"
    rows = run([small_set], ["nds"], [4], None, [1], out, request=request)
    together = run([small_set], ["nds"], [4], None, [1], out, request=request, together=2)
    assert [(len(task["cases"]), task["together"], task["limit"]) for task in tasks] == [(3, 1, 384), (3, 2, 384)]
    assert {row["solver"] for row in rows} == {"nds-policy-cuda-128"}
    assert {row["solver"] for row in together} == {"nds-policy-cuda-128-x2"}
    assert {row["hardware"]["gpu"] for row in read_rows(out)} == {"H200"}
    assert run([small_set], ["nds"], [4], "1", [1], out, request=request) == rows[1:2], "it is there"
    assert len(tasks) == 2
    with pytest.raises(InstanceError, match="jobs: runs on a GPU follow each other"):
        run([small_set], ["nds"], [4], None, [1], out, 2, request=request)


ROW: Row = {name: name for name in KEY} | {"seed": 1, "budget": 2.5, "threads": 1, "hardware": {"cpu": "c", "cores": 2}}


@pytest.mark.parametrize("length", [1, 5, 20, 100])
def test_what_a_crash_left_of_a_line_makes_room(tmp_path: Path, length: int) -> None:
    file = tmp_path / "x.jsonl"
    append_row(file, ROW)
    with file.open("a") as stream:
        stream.write(json.dumps(ROW)[:length])
    assert read_rows(file) == [ROW]
    append_row(file, ROW)
    assert read_rows(file) == [ROW, ROW]


def test_a_row_without_its_newline_is_kept(tmp_path: Path) -> None:
    file = tmp_path / "x.jsonl"
    file.write_text(json.dumps(ROW))
    append_row(file, ROW)
    assert read_rows(file) == [ROW, ROW]
    file.write_text('{"set": "speed", "seconds": 2.0}')  # a row of another kind
    append_row(file, ROW)
    assert file.read_text().splitlines() == ['{"set": "speed", "seconds": 2.0}', json.dumps(ROW)]


def test_two_programs_append_to_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second one wants to append when the first one has looked at the end of the file."""
    file, other = tmp_path / "x.jsonl", ROW | {"seed": 2}
    append_row(file, ROW)
    second = threading.Thread(target=append_row, args=(file, other))
    plain = rows._last_line

    def last_line(path: Path) -> bytes:
        monkeypatch.setattr(rows, "_last_line", plain)
        found = plain(path)
        second.start()
        second.join(0.1)
        return found

    monkeypatch.setattr(rows, "_last_line", last_line)
    append_row(file, ROW)
    second.join()
    assert [row["seed"] for row in read_rows(file)] == [1, 1, 2]


@pytest.mark.parametrize("length", [100, 2**16 - 1, 2**16, 2**17])
def test_the_last_line_may_be_long(tmp_path: Path, length: int) -> None:
    file = tmp_path / "x.jsonl"
    long = ROW | {"settings": "x" * length}
    append_row(file, ROW)
    append_row(file, long)
    with file.open("a") as stream:
        stream.write(json.dumps(long)[:-1])  # all but its end
    append_row(file, ROW)
    assert read_rows(file) == [ROW, long, ROW]


@pytest.mark.parametrize(
    "line", ["{", "3", '{"set": "X"}', "", "[" * 100_000, '{"set": ' + "9" * 5000 + "}", '{"set": ' * 500]
)
def test_a_file_of_something_else_is_refused(tmp_path: Path, line: str) -> None:
    file = tmp_path / "x.jsonl"
    file.write_text(f"{line}\n")
    with pytest.raises(InstanceError, match=r"x\.jsonl:1: not a result row"):
        read_rows(file)


def test_a_file_of_something_else_without_a_newline_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "x.jsonl"
    file.write_text("notes")
    with pytest.raises(InstanceError, match=r"x\.jsonl:1: not a result row"):
        read_rows(file)


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"seed": "1"}, "seed"),
        ({"seed": True}, "seed"),
        ({"set": ["X"]}, "set"),
        ({"budget": "2"}, "budget"),
        ({"hardware": "c"}, "hardware"),
        ({"hardware": {"cpu": {}}}, "hardware"),
        ({"error": 3}, "error"),
        ({"skipped": None}, "skipped"),
        ({"feasible": True}, "cost"),
        (FOUND | {"cost": "low"}, "cost"),
        (FOUND | {"cost": 1.0, "gap": "x"}, "gap"),
        ({"cost": 1.0}, "feasible"),
        ({"trace": [[1.0, 2.0], [0.5, 1.0]]}, "trace"),
        ({"trace": [[1.0, 2.0, 3.0]]}, "trace"),
        ({"trace": [[1.0, "2"]]}, "trace"),
        ({"trace": [[1.0, True]]}, "trace"),
        ({"trace": [[float("nan"), 1.0]]}, "trace"),
        ({"trace": [[-1.0, 1.0]]}, "trace"),
        ({"trace": [[1.0, 1e200]]}, "trace"),
    ],
)
def test_a_row_of_wrong_types_is_refused(tmp_path: Path, changes: Row, field: str) -> None:
    file = tmp_path / "x.jsonl"
    file.write_text(json.dumps(ROW) + "\n" + json.dumps(ROW | changes) + "\n")
    with pytest.raises(InstanceError) as caught:
        read_rows(file)
    assert str(caught.value) == f"{file}:2: not a result row, {field} is missing or of another type"


@pytest.mark.parametrize("name", ["pipe", "/dev/full"])
def test_rows_are_in_a_regular_file(tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    if name == "pipe":
        os.mkfifo(file)
    for call in (lambda: append_row(file, ROW), lambda: read_rows(file)):
        with pytest.raises(InstanceError, match="is not a regular file"):
            call()


def test_a_full_disk_leaves_no_half_of_a_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "x.jsonl"
    append_row(file, ROW)

    def fill(stream: Any, data: bytes) -> None:
        stream.write(data[:10])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("ndsvrp.bench.rows._write_all", fill)
    with pytest.raises(InstanceError, match=r"x\.jsonl: cannot be written \(No space left on device\)"):
        append_row(file, ROW)
    assert file.read_text() == json.dumps(ROW) + "\n"


def test_key_takes_the_processor_from_the_hardware() -> None:
    assert key(ROW) == key(ROW | {"hardware": {"cpu": "c", "cores": 4}, "commit": "x"})
    assert key(ROW) != key(ROW | {"hardware": {"cpu": "d", "cores": 2}})
    gpus = [{"cpu": cpu, "gpu": gpu} for cpu, gpu in (("c", "H200"), ("d", "H200"), ("c", "A100"))]
    assert key(ROW) != key(ROW | {"hardware": gpus[0]}) == key(ROW | {"hardware": gpus[1]})
    assert key(ROW | {"hardware": gpus[0]}) != key(ROW | {"hardware": gpus[2]})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"solvers": ["fast"]}, "no solver 'fast'; there are auto, hybrid, sisr, nds, pyvrp, hgs"),
        ({"solvers": ["fakes:NOBODY"]}, "solver 'fakes:NOBODY' cannot be loaded"),
        ({"solvers": ["math:sqrt"]}, "'math:sqrt' is not a solver: lacks version, refuses "),
        ({"solvers": ["ndsvrp.bench.pyvrp_adapter:PyVRP"]}, "is not a solver: is a class, an object of it is needed"),
        ({"times": [1, 0]}, "time: 0 is not a number of seconds"),
        ({"seeds": [1, -1]}, "seed: -1 is below 0"),
        ({"jobs": 0}, "jobs: 0 is not within 1-"),
        ({"jobs": 10_000}, "jobs: 10000 is not within 1-"),
    ],
)
def test_bad_requests(small_set: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InstanceError, match=message):
        run([small_set], **{"solvers": ["fakes:STAR"], "times": [1]} | changes)


def test_what_is_given_twice_runs_once(small_set: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Pool, "call", lambda self, task, limit: [FOUND])
    rows = run([small_set, str(small_set)], ["fakes:STAR", "fakes:CHOOSY", "fakes:STAR"], [1, 1.0], "0", [3, 3])
    assert [(row["solver"], row["seed"], row["budget"]) for row in rows] == [
        ("fakes:STAR", 3, 1.0), ("fakes:CHOOSY", 3, 1.0),
    ]  # fmt: skip


def test_several_sets_seeds_and_times(small_set: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run for each combination; solvers take turns on each instance, seed and time."""
    tasks: list[Any] = []
    monkeypatch.setattr(Pool, "call", lambda self, task, limit: tasks.append(task) or [FOUND | {"cost": len(tasks)}])
    other = tmp_path / "other.npz"
    other.write_bytes(small_set.read_bytes())
    out, two = tmp_path / "x.jsonl", ["fakes:STAR", "fakes:CHOOSY"]
    rows = run([small_set, other], two, [1, 2.5], "0-1", [3, 4], out)
    names = ("set", "instance", "seed", "budget", "solver")
    expected = [
        (path.stem, instance, seed, time, solver)
        for path in (small_set, other) for instance in ("0000", "0001") for seed in (3, 4) for time in (1.0, 2.5)
        for solver in two
    ]  # fmt: skip
    assert [tuple(row[name] for name in names) for row in rows] == expected
    assert [row["cost"] for row in rows] == list(range(1, 33))
    assert [(task["seed"], task["budget"]) for task in tasks[:8:2]] == [(3, 1.0), (3, 2.5), (4, 1.0), (4, 2.5)]
    assert run([other], two, [2.5], None, [4], out)[:2] == [rows[22], rows[23]], "those are there"
