"""A Ray cluster of two workers: the routes of a local search, lost workers, interrupts, the command, benchmarks."""

from __future__ import annotations

import csv
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import fatal
import numpy as np
import pytest
from typer.testing import CliRunner

import ndsvrp
from ndsvrp.bench.rows import read_rows
from ndsvrp.bench.run import run
from ndsvrp.cli import app
from ndsvrp.cluster import ray_cluster
from ndsvrp.cluster.ray_cluster import connect
from ndsvrp.errors import ClusterError, InstanceError, NdsWarning, NoSolutionError
from test_doc_snippets import run_page
from waiting import wait_for_end

pytestmark = pytest.mark.slow
SHORT: dict[str, Any] = {"iterations": 3, "seed": 3, "rollouts": 20}


def problems() -> list[ndsvrp.Problem]:
    return [*ndsvrp.generate("cvrp", 20, count=3, seed=1), *ndsvrp.generate("vrptw", 12, count=2, seed=1)]


def course(result: ndsvrp.Result | NoSolutionError) -> tuple[Any, ...]:
    assert isinstance(result, ndsvrp.Result), result
    return result.solution, result.cost, [(p.iteration, p.cost) for p in result.trace], result.iterations


def shuffled(request: ndsvrp.RuinRequest) -> Any:
    customers = np.arange(1, request.problem.customers + 1, dtype=np.int32)
    shape = len(request.coordinates), request.rollouts, 1
    return request.random.permuted(np.tile(customers, shape), axis=2)[:, :, : request.removals]


def fatal_ruin(mark: Path, name: str, times: int = 1) -> Callable[[ndsvrp.RuinRequest], Any]:
    """Return a ruin that kills its process when it gets the problem of this name, so many times."""
    draw = shuffled

    def ruin(request: ndsvrp.RuinRequest) -> Any:
        if request.problem.name == name and len(list(mark.iterdir())) < times:
            (mark / str(os.getpid())).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return draw(request)

    return ruin


@pytest.mark.usefixtures("ray")
def test_the_routes_are_those_of_a_local_search(tmp_path: Path) -> None:
    tight = problems()[0].replace(vehicles=1)
    given = [*problems(), tight]
    local = [course(result) for result in ndsvrp.solve_set(problems(), **SHORT)]
    told: dict[int, Any] = {}
    results = ndsvrp.solve_set(given, cluster="ray", on_result=told.__setitem__, **SHORT)
    assert [course(result) for result in results[:5]] == local
    assert isinstance(results[5], NoSolutionError) and next(iter(told)) == 5, "refused at once"
    assert [told[i] for i in range(6)] == results
    first = results[0]
    assert isinstance(first, ndsvrp.Result) and first.environment is not None
    assert first.settings["threads"] == 1 and first.environment["hardware"]["node"]
    for more in ({"threads": 2}, {"together": 3}):
        assert [course(result) for result in ndsvrp.solve_set(problems(), cluster="ray", **SHORT, **more)] == local


@pytest.mark.usefixtures("ray")
def test_a_lost_worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given, own = problems(), {"solver": "nds", "chains": 2} | SHORT
    local = [course(result) for result in ndsvrp.solve_set(given, ruin=shuffled, **own)]
    once, always = tmp_path / "once", tmp_path / "always"
    once.mkdir(), always.mkdir()
    with pytest.warns(NdsWarning, match=r"^cvrp20-seed1-0001: its process died; it runs again \(1 of 3\)$"):
        results = ndsvrp.solve_set(given, ruin=fatal_ruin(once, given[1].name), cluster="ray", **own)
    assert [course(result) for result in results] == local
    assert len(list(once.iterdir())) == 1
    monkeypatch.setattr(ray_cluster, "RETRIES", 1)
    with pytest.warns(NdsWarning, match="it runs again"):
        results = ndsvrp.solve_set(given, ruin=fatal_ruin(always, given[1].name, 9), cluster="ray", **own)
    reason = "lost 2 times on the cluster, the last time because its process died"
    assert str(results[1]) == f"cvrp20-seed1-0001 was {reason}"
    assert [course(result) for result in results[:1] + results[2:]] == local[:1] + local[2:]
    assert len(list(always.iterdir())) == 2


@pytest.mark.usefixtures("ray")
def test_an_interrupt_keeps_what_is_there(tmp_path: Path) -> None:
    """One result is there, two searches run, and one waits."""
    given = ndsvrp.generate("cvrp", 20, count=4, seed=1)
    first, draw = given[0].name, shuffled
    done = threading.Event()

    def ruin(request: ndsvrp.RuinRequest) -> Any:
        while request.problem.name != first:
            (tmp_path / request.problem.name).touch()
            time.sleep(0.05)
        return draw(request)

    def interrupt() -> None:
        done.wait(60)
        while len(list(tmp_path.iterdir())) < 2:
            time.sleep(0.02)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    results = ndsvrp.solve_set(
        given, solver="nds", ruin=ruin, chains=2, cluster="ray", on_result=lambda i, result: done.set(), **SHORT
    )
    thread.join()
    stopped = [result.stopped if isinstance(result, ndsvrp.Result) else str(result) for result in results]
    assert stopped == ["iterations", "interrupted", "interrupted", "interrupted before its search"]
    assert all(result.report.feasible for result in results if isinstance(result, ndsvrp.Result))


@pytest.mark.usefixtures("ray")
def test_the_command(tmp_path: Path) -> None:
    ndsvrp.write_set(tmp_path / "set.npz", ndsvrp.generate("cvrp", 20, count=3, seed=1))
    line = ["solve", str(tmp_path / "set.npz"), "--iterations", "3", "--set", "rollouts=20"]
    for folder, more in (("far", ["--cluster", "ray"]), ("near", [])):
        answer = CliRunner().invoke(app, [*line, "--out", str(tmp_path / folder), *more], prog_name="nds")
        assert answer.exit_code == 0, answer.output
    near, far = (read_summary(tmp_path / folder) for folder in ("near", "far"))
    assert far == near and [row["instance"] for row in far] == ["0", "1", "2"]
    for name in ("0000.sol", "0001.sol", "0002.sol"):
        assert (tmp_path / "far" / name).read_bytes() == (tmp_path / "near" / name).read_bytes()
    answer = CliRunner().invoke(app, [*line, "--cluster", "ray"], prog_name="nds")
    assert "on a Ray cluster: 1 node, 2 at once" in answer.output and " on 1 thread" in answer.output
    for wrong, message in {
        ("--cluster", "slurm"): "unknown cluster 'slurm': one of ray",
        ("--cluster", "ray", "--index", "1"): "--cluster is for the instances of a set",
        ("--cluster", "ray", "--threads", "3"): (
            "no node of the cluster has 3 CPUs; a node that could be added must be started first"
        ),
    }.items():
        answer = CliRunner().invoke(app, [*line, *wrong], prog_name="nds")
        assert (answer.exit_code, answer.stderr.splitlines()[-1]) == (2, f"nds: {message}")


def read_summary(folder: Path) -> list[dict[str, str]]:
    with (folder / "summary.csv").open() as stream:
        return [{name: row[name] for name in row if name != "seconds"} for row in csv.DictReader(stream)]


def test_another_process_uses_the_cluster_that_is_named(ray: Any, tmp_path: Path) -> None:
    code = (
        "import ndsvrp, ray, signal\n"
        "before = signal.getsignal(signal.SIGTERM)\n"
        "found = ndsvrp.solve_set(ndsvrp.generate('cvrp', 20, count=2, seed=1), iterations=3, seed=3, rollouts=20,"
        " cluster='ray')\n"
        "print(*(result.cost for result in found), ray.is_initialized(), signal.getsignal(signal.SIGTERM) is before)"
    )
    address = ray.get_runtime_context().gcs_address
    path = os.pathsep.join(filter(None, sys.path))
    done = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | {"RAY_ADDRESS": address, "PYTHONPATH": path},
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    near = [course(result)[1] for result in ndsvrp.solve_set(problems()[:2], **SHORT)]
    assert done.stdout.split() == [*map(repr, near), "False", "True"]


def test_an_address_without_a_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    ray = pytest.importorskip("ray")
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:9")
    with pytest.raises(ClusterError, match=r"^RAY_ADDRESS: 127\.0\.0\.1:9 does not answer \(.*refused\)$"), connect():
        pass
    monkeypatch.setattr(ray, "init", lambda **options: 1 / 0)
    monkeypatch.setenv("RAY_ADDRESS", "auto")
    with pytest.raises(ClusterError, match=r"^ray cannot connect to auto: division by zero$"), connect():
        pass


def test_what_cannot_be_sent() -> None:
    pytest.importorskip("ray")
    with pytest.raises(ClusterError, match=r"^this cannot be sent to a cluster: .*lock"):
        ray_cluster._pickled(threading.Lock())


@pytest.mark.usefixtures("ray")
def test_benchmarks(tmp_path: Path) -> None:
    """Rows have the hardware of the node; no two runs share a core; a run whose worker is lost is made again."""
    ndsvrp.write_set(tmp_path / "set.npz", ndsvrp.generate("cvrp", 3, count=3, seed=1))
    asked: dict[str, Any] = {"sets": [tmp_path / "set.npz"], "solvers": ["fatal:FATAL"], "times": [1]}
    with pytest.warns(NdsWarning, match=r"^fatal:FATAL on set 0\d+: its process died; it runs again \(1 of 3\)$"):
        rows = run(**asked, out=tmp_path / "rows.jsonl", cluster="ray")
    near = run(**asked, instances="0")
    assert [row["instance"] for row in rows] == ["0000", "0001", "0002"]
    assert rows[0]["cost"] == near[0]["cost"]
    assert all(row["hardware"]["node"] and row["threads"] == 1 for row in rows)
    used = sorted((*row["settings"]["cores"], row["settings"]["began"], row["settings"]["ended"]) for row in rows)
    assert len(used[0]) == 3, "one core each"
    assert all(a[0] != b[0] or a[2] <= b[1] for a, b in pairwise(used)), "one after the other"
    wait_for_end(Path(os.environ["FATAL"], "pid").read_text())
    assert run(**asked, out=tmp_path / "rows.jsonl", cluster="ray") == rows, "they are there"
    assert sorted(row["instance"] for row in read_rows(tmp_path / "rows.jsonl")) == ["0000", "0001", "0002"]
    with pytest.raises(InstanceError, match="jobs: a cluster runs as many side by side as it has cores"):
        run(**asked, jobs=2, cluster="ray")
    with pytest.raises(ClusterError, match="no node of the cluster has 3 CPUs"):
        run(**asked, cores=3, cluster="ray")


@pytest.mark.usefixtures("ray")
def test_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert run_page("cluster", tmp_path, commands=True) >= 5
    assert {row["solver"] for row in read_rows("rows.jsonl")} == {"hybrid", "sisr"}


@pytest.mark.usefixtures("ray")
def test_a_benchmark_needs_the_same_solvers_everywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fatal.Fatal, "release", "2")
    ndsvrp.write_set(tmp_path / "set.npz", ndsvrp.generate("cvrp", 3, seed=1))
    with pytest.raises(ClusterError, match=r"^node .*: the solver fatal:FATAL is 1 there and 2 here$"):
        run([tmp_path / "set.npz"], ["fatal:FATAL"], [1], cluster="ray")
