"""Worker processes: several cores, and their end."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from dataclasses import asdict, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ndsvrp.bench import pool
from ndsvrp.bench import run as runner
from ndsvrp.bench.instances import find_cases
from ndsvrp.bench.pool import Pool, best_of, seeds_of
from ndsvrp.bench.report import make_report
from ndsvrp.bench.rows import Row
from ndsvrp.bench.run import run
from ndsvrp.bench.solvers import DEFAULT
from ndsvrp.errors import InstanceError, NdsError
from ndsvrp.generate import generate
from ndsvrp.search.planning import Request, plan
from waiting import wait_for_end, wait_until

pytestmark = pytest.mark.usefixtures("fakes")
two_cores = pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two cores")


def test_seeds_of_several_cores_are_apart() -> None:
    assert seeds_of(7, 1) == [7]
    assert [seeds_of(seed, 4) for seed in (0, 1, 2)] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]]


def found(cost: float, seconds: float, cpu: float, feasible: bool = True, **more: Any) -> Row:
    return {"cost": cost, "feasible": feasible, "seconds": seconds, "cpu_seconds": cpu, **more}


def test_the_best_of_several_seeds() -> None:
    outcomes = [
        found(10.0, 1.0, 0.9, routes=3, trace=[[0.1, 14.0], [0.5, 10.0]]), {"error": "lost"},
        found(9.0, 1.2, 0.5, routes=2, trace=[[0.2, 12.0], [0.3, 11.5], [0.9, 9.0]]),
        found(5.0, 1.1, 1.0, feasible=False, trace=[[0.0, 5.0]]),
    ]  # fmt: skip
    assert best_of([4, 5, 6, 7], outcomes) == {
        "cost": 9.0, "feasible": True, "routes": 2, "seconds": 1.2, "cpu_seconds": 0.5,
        "trace": [[0.1, 14.0], [0.2, 12.0], [0.3, 11.5], [0.5, 10.0], [0.9, 9.0]],
        "runs": [
            {"seed": 4, "cost": 10.0, "feasible": True}, {"seed": 5, "error": "lost"},
            {"seed": 6, "cost": 9.0, "feasible": True}, {"seed": 7, "cost": 5.0, "feasible": False},
        ],
    }  # fmt: skip
    assert best_of([1, 2], [{"error": "a"}, {"error": "b"}]) == {"error": "a"}
    assert best_of([1, 2], [{"skipped": "no"}, {"skipped": "no"}]) == {"skipped": "no"}


@pytest.mark.slow
@two_cores
def test_a_solver_on_two_cores(small_set: Path, tmp_path: Path) -> None:
    out = tmp_path / "x.jsonl"
    (row,) = run([small_set], ["fakes:SEEDED"], [1], "0", [2], out, cores=2)
    assert row["cost"] == pytest.approx(5 + 1 + 18**0.5)  # one route, of seed 5
    assert (row["seed"], row["threads"]) == (2, 2)
    assert [(each["seed"], each["cost"]) for each in row["runs"]] == [(4, 12.0), (5, row["cost"])]
    assert row["trace"] == [[0.04, 99.0], [0.4, 46.0], [0.5, 45.0]]
    assert run([small_set], ["fakes:SEEDED"], [1], "0", [2], out, cores=2) == [row], "it is there"
    (single,) = run([small_set], ["fakes:SEEDED"], [1], "0", [2], out)
    assert single["cost"] == 12.0 and "runs" not in single
    lines = make_report([row, single]).lines
    assert [line.hardware.split(",")[0] for line in lines] == ["2 cores", "1 core"]
    assert lines[0].solver.startswith("fakes:SEEDED (2 cores, ")


@pytest.mark.slow
@two_cores
def test_own_search_on_two_cores(small_set: Path) -> None:
    """`hybrid` uses both in one search; SISRs has one chain, so it runs on each with another seed."""
    hybrid, sisr = run([small_set], ["hybrid", "sisr"], [1], "0", [2], cores=2)
    assert [(row["solver"], row["threads"], row["seed"]) for row in (hybrid, sisr)] == [
        ("hybrid", 2, 2), ("sisr", 2, 2),
    ]  # fmt: skip
    assert "runs" not in hybrid and hybrid["settings"]["threads"] == 2
    assert [each["seed"] for each in sisr["runs"]] == [4, 5] and sisr["settings"]["threads"] == 1
    assert hybrid["cpu_seconds"] < 1.5 * hybrid["seconds"], "of one core"


def test_auto_is_what_a_user_gets(small_set: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a CPU `hybrid` on the cores of the run; on a GPU the policy, if the problem suits it."""
    (row,) = run([small_set], ["auto"], [0.1], "0")
    assert (row["solver"], row["settings"]["solver"], row["settings"]["threads"]) == ("auto", "hybrid", 1)
    asked: list[Request] = []
    monkeypatch.setattr(runner, "Device", lambda: SimpleNamespace(name="H200"))
    monkeypatch.setattr(
        Pool, "call", lambda self, task, limit: asked.append(Request(**task["request"])) or [found(1.0, 1, 1)]
    )
    (row,) = run([small_set], ["auto"], [1], "0", request=replace(DEFAULT, device="cuda"))
    assert row["solver"] == "auto-cuda"
    chosen = plan(generate("cvrp", 100, seed=1)[0], asked[0], has_gpu=lambda: True)
    assert (chosen.solver, chosen.settings.ruin) == ("nds", "policy")


def test_a_gpu_takes_one_process_whatever_the_cores(small_set: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(runner, "Device", lambda: asked.append(1) or SimpleNamespace(name="H200"))
    monkeypatch.setattr(pool, "_groups", lambda groups, cores: [[0] * cores] * groups)
    calls: list[dict[str, Any]] = []
    monkeypatch.setattr(
        Pool, "call", lambda self, task, limit: calls.append(task) or [found(1.0, 1, 1)] * len(task["cases"])
    )
    request = replace(DEFAULT, device="cuda")
    rows = run([small_set, small_set], ["nds", "fakes:STAR"], [1], "0", [1], request=request, cores=16)
    assert [(row["solver"], row["threads"], row["hardware"].get("gpu")) for row in rows[:2]] == [
        ("nds-cuda", 1, "H200"), ("fakes:STAR", 16, None),
    ]  # fmt: skip
    assert sorted(call["seed"] for call in calls[:17]) == [1, *range(16, 32)]
    assert asked == [1], "the GPU is asked for its name once"


def test_presets_and_iterations(small_set: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Presets are for the solver nds, iterations for all solvers of this package."""
    tasks: list[dict[str, Any]] = []
    monkeypatch.setattr(Pool, "call", lambda self, task, limit: tasks.append(task) or [found(1.0, 1, 1)])
    chosen: dict[str, Any] = {"presets": ["default", "paper"], "iterations": [10, 1000]}
    rows = run([small_set], ["nds", "sisr", "fakes:STAR"], [1], "0", **chosen)
    assert [row["solver"] for row in rows] == [
        "nds-iterations=10", "nds-iterations=1000",
        "nds-preset=paper-iterations=10", "nds-preset=paper-iterations=1000",
        "sisr-iterations=10", "sisr-iterations=1000", "fakes:STAR",
    ]  # fmt: skip
    assert [(task["request"]["preset"], task["iterations"]) for task in tasks] == [
        ("default", 10), ("default", 1000), ("paper", 10), ("paper", 1000), ("default", 10), ("default", 1000),
        ("default", None),
    ]  # fmt: skip
    with pytest.raises(InstanceError, match=r"^preset: presets are those of the solver nds, which does not take part$"):
        run([small_set], ["sisr"], [1], "0", presets=["paper"])
    with pytest.raises(NdsError, match="unknown preset 'best'"):
        run([small_set], ["nds"], [1], "0", presets=["best"])


def test_iterations_end_a_search(small_set: Path) -> None:
    (row,) = run([small_set], ["sisr"], [20], "0", iterations=[2])
    assert (row["solver"], row["settings"]["iterations"], row["settings"]["stopped"]) == (
        "sisr-iterations=2", 2, "iterations",
    )  # fmt: skip
    assert row["cost"] == pytest.approx(5 + 1 + 18**0.5)


def test_programs_that_a_solver_runs_end_with_it(
    small_set: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    workers, file = Pool(1), tmp_path / "pid"
    (case,) = find_cases(small_set, "0")
    message = {
        "cases": [asdict(case)],
        "solver": "fakes:STARTING",
        "request": asdict(DEFAULT),
        "iterations": None,
        "seeds": 1,
    }
    thread = threading.Thread(target=workers.run, args=[message | {"together": 1, "budget": 60.0, "seed": 1}])
    thread.start()
    wait_until(lambda: file.exists() and file.read_text() != "")
    workers.end()
    thread.join()
    wait_for_end(file.read_text())


@pytest.mark.slow
def test_a_worker_ends_if_its_parent_is_killed(small_set: Path, tmp_path: Path) -> None:
    code = f"from ndsvrp.bench.run import run; run([{str(small_set)!r}], ['fakes:STARTING'], [60], '0')"
    path, file = os.pathsep.join(filter(None, sys.path)), tmp_path / "pid"
    parent = subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path, env=os.environ | {"PYTHONPATH": path})
    wait_until(lambda: file.exists() and file.read_text() != "")
    parent.kill()
    parent.wait()
    wait_for_end(file.read_text())


@pytest.mark.slow
def test_the_cpu_time_of_programs_counts(small_set: Path) -> None:
    (row,) = run([small_set], ["fakes:WORKING"], [1], "0")
    assert row["cpu_seconds"] >= 0.13 and "peak_mib" not in row


@pytest.mark.parametrize(
    ("jobs", "cores", "message"),
    [(1, 0, "cores: 0 is not within 1-4"), (1, 5, "cores: 5 is not within 1-4, the cores of this machine"),
     (3, 2, "jobs: 3 is not within 1-2, 2 cores each"), (5, 1, "jobs: 5 is not within 1-4, one core each")],
)  # fmt: skip
def test_cores_are_limited(jobs: int, cores: int, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0, 1, 2, 3})
    with pytest.raises(InstanceError, match=message):
        Pool(jobs, cores)
    workers = Pool(2, 2)
    assert [workers.free.get(), workers.free.get()] == [[3, 2], [1, 0]]
