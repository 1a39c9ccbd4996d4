"""Jobs where there is a GPU: availability is faked, no search runs."""

from __future__ import annotations

import threading
import time
from multiprocessing import Pipe

import pytest

import ndsvrp
from ndsvrp.engine import device
from ndsvrp.errors import EngineError, NdsError
from ndsvrp.io.environment import usable_cores
from ndsvrp.serve import worker
from ndsvrp.serve.config import ServeConfig
from ndsvrp.serve.jobs import JobOptions
from ndsvrp.serve.process import SearchProcess
from ndsvrp.serve.server import for_this_machine, serve
from ndsvrp.serve.store import Outcome
from ndsvrp.serve.worker import Refused, Task, _search
from serve.running import open_client


@pytest.fixture
def gpu(monkeypatch):
    monkeypatch.setattr(device, "available", lambda: True)
    monkeypatch.setattr(device, "require_gpu", lambda: None)


def test_one_search_fills_a_gpu(gpu):
    for name in ("auto", "cuda"):
        config = for_this_machine(ServeConfig(device=name))
        assert (config.processes, config.threads_each, config.device) == (1, usable_cores(), name)
    assert for_this_machine(ServeConfig(device="cuda", workers=3)).processes == 3  # as asked
    assert for_this_machine(ServeConfig(device="cpu")) == ServeConfig(device="cpu")


def test_without_a_gpu(tmp_path, monkeypatch):
    monkeypatch.setattr(device, "available", lambda: False)
    assert for_this_machine(ServeConfig()) == ServeConfig()

    def refuse():
        raise EngineError("device 'cuda': torch finds no NVIDIA GPU with a driver it can use; use 'cpu'")

    monkeypatch.setattr(device, "_import_torch", refuse)
    with pytest.raises(NdsError, match="finds no NVIDIA GPU"):  # before it listens
        serve(ServeConfig(device="cuda", database=str(tmp_path / "jobs.sqlite")), print)
    assert not (tmp_path / "jobs.sqlite").exists()


@pytest.mark.parametrize(
    ("asked", "options", "expected"),
    [
        ("auto", {}, ("cuda", "policy", None)),
        ("cuda", {"ruin": "policy"}, ("cuda", "policy", None)),
        ("cuda", {"solver": "hybrid"}, ("cuda", "string", None)),
        ("auto", {"solver": "sisr"}, ("cpu", "string", 2)),  # beside the GPU, with the threads of a worker
        ("cpu", {}, ("cpu", "string", 2)),
    ],
)
def test_what_a_job_uses(gpu, monkeypatch, tmp_path, asked, options, expected):
    """Up to the point where the GPU would be opened."""
    made = []

    class Solver(ndsvrp.Solver):
        def solve(self, problem, **_):
            made.append((self.plan(problem), self.request))
            raise NdsError("opened")

    monkeypatch.setattr(worker, "Solver", Solver)
    ndsvrp.write_set(tmp_path / "a.npz", ndsvrp.generate("cvrp", 100, seed=1))
    given = JobOptions(name="a.npz", **options)
    upload, request = given.upload((tmp_path / "a.npz").read_bytes()), given.request(asked)
    task = Task(upload, request, 2, given.limits(ServeConfig()), 0)
    answer = _search(Pipe()[0], task, threading.Event())
    assert answer == Refused("opened")
    ((plan, used),) = made
    assert (plan.device, plan.settings.ruin, used.threads) == expected
    assert (plan.model is not None) == (expected[1] == "policy")


def test_jobs_take_turns(gpu, monkeypatch, tmp_path, cvrp):
    running, most, devices = [], [], []

    def run(self):
        running.append(self)
        most.append(len(running))
        devices.append(self.task.request.device)
        time.sleep(0.02)
        running.remove(self)
        return Outcome("done")

    monkeypatch.setattr(SearchProcess, "run", run)
    config = for_this_machine(ServeConfig(device="cuda"))
    with open_client(tmp_path / "jobs.sqlite", workers=config.workers, device="cuda") as client:
        jobs = [client.submit(cvrp, name="a.vrp", seed=seed).json()["id"] for seed in range(4)]
        assert [client.ended(job)["state"] for job in jobs] == ["done"] * 4
    assert (most, devices) == ([1] * 4, ["cuda"] * 4)
