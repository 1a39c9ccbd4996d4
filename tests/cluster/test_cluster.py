"""What does not need ray: decisions before the first search, what travels, what a node refuses, leased cores."""

from __future__ import annotations

import pickle
import sys
import threading
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import ndsvrp
from ndsvrp.bench import cores
from ndsvrp.bench.cores import leased
from ndsvrp.cluster import solving, worker
from ndsvrp.cluster.model_files import model_files
from ndsvrp.cluster.ray_cluster import LOST, Cluster, _remote_call
from ndsvrp.cluster.solving import ClusterSolver, Common, solve_batch
from ndsvrp.cluster.tasks import LOOK, Needs, Task, Waiting
from ndsvrp.errors import ClusterError, EngineError, InstanceError, NdsError, NoSolutionError
from ndsvrp.search.code_version import code_version
from ndsvrp.search.planning import Request
from tiny_models import save_tiny


class FakeCluster:
    """Four nodes of eight CPUs and one GPU, or none."""

    def __init__(self, gpus: int = 0) -> None:
        self.gpus, self.surveyed = gpus, list[Needs]()

    def has_gpu(self) -> bool:
        return self.gpus > 0

    def slots(self, needs: Needs) -> int:
        return 4 * (self.gpus // needs.gpus if needs.gpus else 8 // needs.cpus)

    def survey(self, needs: Needs) -> None:
        self.surveyed.append(needs)


def decided(request: Request, count: int = 20, together: int | None = None, gpus: int = 0) -> tuple[ClusterSolver, Any]:
    cluster: Any = FakeCluster(gpus)
    return ClusterSolver(cluster, ndsvrp.generate("cvrp", 30, count=count, seed=1), request, together), cluster


def test_a_search_on_cpus_has_one_thread_unless_more_are_asked_for() -> None:
    solver, cluster = decided(Request())
    assert (solver.request.device, solver.request.threads) == ("cpu", 1)
    assert [batch.members for batch in solver.batches] == [[i] for i in range(20)]
    assert cluster.surveyed == [Needs(1, 0)]
    assert decided(Request(threads=3))[1].surveyed == [Needs(3, 0)]
    assert decided(Request(threads=8, chains=2))[1].surveyed == [Needs(2, 0)], "a thread per chain"
    solver, cluster = decided(Request(threads=8, chains=2), count=5, together=3)
    assert [batch.members for batch in solver.batches] == [[0, 1, 2], [3, 4]]
    assert cluster.surveyed == [Needs(4, 0), Needs(6, 0)]


def test_plans_are_those_of_workers_in_the_given_time() -> None:
    cluster: Any = FakeCluster()
    problems = ndsvrp.generate("cvrp", 400, count=1, seed=1)
    populations = [
        ClusterSolver(cluster, problems, Request(), seconds=seconds).batches[0].plan.settings.population
        for seconds in (None, 39.0, 41.0)
    ]
    assert populations == [0, 0, 8], "0.1 s per customer"


def test_gpus_of_the_cluster_count_and_not_those_of_this_machine() -> None:
    solver, cluster = decided(Request(), gpus=1)
    assert (solver.request.device, solver.request.threads) == ("cuda", None)
    assert [len(batch.members) for batch in solver.batches] == [5, 5, 5, 5], "an equal share for every GPU"
    assert cluster.surveyed == [Needs(1, 1)]
    assert {batch.plan.device for batch in solver.batches} == {"cuda"}
    assert len(decided(Request(), count=100, gpus=1)[0].batches[0].members) == 16
    assert decided(Request(), together=1, gpus=1)[0].batches[19].members == [19]
    assert decided(Request(solver="sisr"), gpus=1)[0].request.device == "cpu"
    assert decided(Request(device="cuda"))[1].surveyed == [Needs(1, 1)], "which a real cluster refuses"
    assert str(Needs(1, 1)) == "1 CPU and 1 GPU" and str(Needs(2)) == "2 CPUs"


def test_results_travel_without_their_problem() -> None:
    problem = ndsvrp.generate("vrptw", 15, seed=1)[0]
    tight = problem.replace(vehicles=2)
    shared = Common(Request(device="cpu", threads=1, settings={"rollouts": 20}), None, {"iterations": 3}, 5)
    found, failed = pickle.loads(pickle.dumps(solve_batch(shared, [problem, tight])))
    local, partial = ndsvrp.solve_set([problem, tight], iterations=3, seed=5, threads=1, rollouts=20)
    result = solving._unpacked(found, problem)
    assert isinstance(result, ndsvrp.Result) and isinstance(local, ndsvrp.Result)
    assert (result.solution, result.report, result.cost) == (local.solution, local.report, local.cost)
    assert result.problem is problem and result.report.page == result.to_html
    assert result.environment is not None
    assert result.to_dict()["hardware"] == result.environment["hardware"]
    assert isinstance(failed, NoSolutionError) and isinstance(partial, NoSolutionError)
    error = solving._unpacked(failed, tight)
    assert isinstance(error, NoSolutionError) and error.result is not None and partial.result is not None
    assert (str(error), error.unserved) == (str(partial), partial.unserved)
    assert error.result.solution == partial.result.solution and error.result.problem is tight
    assert error.result.report == partial.result.report


def test_results_are_checked_here() -> None:
    """What a node says of a solution does not count, of a partial one neither."""
    problem = ndsvrp.generate("vrptw", 15, seed=1)[0]
    tight = problem.replace(vehicles=2)
    shared = Common(Request(device="cpu", threads=1, settings={"rollouts": 20}), None, {"iterations": 1}, 5)
    found, failed = solve_batch(shared, [problem, tight])
    assert isinstance(failed, NoSolutionError)
    partial: Any = failed.result
    for packed in (found, partial):
        packed.values["report"] = replace(packed.values["report"], cost=1.0, violations=())
    result, error = solving._unpacked(found, problem), solving._unpacked(failed, tight)
    assert isinstance(result, ndsvrp.Result) and isinstance(error, NoSolutionError) and error.result is not None
    assert result.report == ndsvrp.check(problem, result.solution)
    assert error.result.report == ndsvrp.check(tight, error.result.solution)


def test_models_travel_as_files(tmp_path: Path) -> None:
    assert model_files(Request(model="all")) is None and model_files(Request()) is None
    weights = save_tiny(tmp_path)
    files = model_files(Request(model=str(weights)))
    assert files is not None
    with files.written() as copy:
        assert copy.name == "tiny.safetensors" and copy != weights
        assert copy.read_bytes() == weights.read_bytes()
        assert copy.with_suffix(".json").read_bytes() == weights.with_suffix(".json").read_bytes()
    assert not copy.exists()
    folder = tmp_path / "run" / "step-7"
    folder.mkdir(parents=True)
    save_tiny(folder, "model")
    checkpoint = Request(model=folder / "model.json", device="cpu", threads=1, settings={"rollouts": 4})
    shared = Common(checkpoint, model_files(checkpoint), {"iterations": 1}, 1)
    (folder / "model.safetensors").unlink()
    problem = ndsvrp.generate("cvrp", 12, seed=1)[0]
    (packed,) = solve_batch(shared, [problem])
    assert packed.values["settings"]["model"]["name"] == "run/step-7"
    loaded = ndsvrp.models.load(weights, "cpu")
    for given in (Request(model=loaded), Request(ruin=loaded)):
        with pytest.raises(ClusterError, match="takes a model by its name or path, not one that is loaded already"):
            model_files(given)


def refuse(shared: object, content: object) -> None:
    raise InstanceError("no such field", file="a.vrp", line=3)


def caution(shared: int, content: int) -> int:
    from ndsvrp.errors import warn

    warn("take care")
    return shared + content


def common(function: Any, shared: Any, version: str | None = None) -> bytes:
    return pickle.dumps((version or code_version(), pickle.dumps((function, shared))))


def test_what_a_node_answers() -> None:
    three, missing = pickle.dumps(3), b"cno_such_module\nname\n."
    kind, error, _ = worker.answer(common(refuse, None), three)
    assert (kind, str(pickle.loads(pickle.dumps(error)))) == ("error", "a.vrp:3: no such field")
    assert worker.answer(common(caution, 4), three) == ("value", 7, ["take care"])
    kind, text, _ = worker.answer(pickle.dumps(("0.0.9+abc", missing)), missing)
    assert (kind, text) == (
        "refused", f"it has ndsvrp {code_version()}, not 0.0.9+abc: install the same build on every node",
    )  # fmt: skip
    kind, text, _ = worker.answer(common(caution, 4), missing)
    assert kind == "refused" and "needs a module that it does not have (No module named 'no_such_module')" in text


def test_a_node_without_this_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ndsvrp.cluster.worker", None)
    _, (kind, text, _) = _remote_call()(b"", b"")
    assert kind == "refused" and text.startswith("ndsvrp cannot be imported there (")


class FakeRay:
    """Two nodes; the GPU of the second one does not work."""

    exceptions = SimpleNamespace(**dict.fromkeys(LOST, OSError))
    answers = (("a", ("value", {"hardware": {"gpu": "H200"}}, [])), ("b", ("error", EngineError("no GPU"), [])))

    def nodes(self) -> list[dict[str, Any]]:
        return [{"NodeID": i, "Alive": True, "Resources": {"CPU": 8.0, "GPU": 1.0}} for i in range(2)]

    def remote(self, function: Any) -> Any:
        calls = iter(self.answers)
        return SimpleNamespace(options=lambda **_: SimpleNamespace(remote=lambda *_: next(calls)))

    def put(self, value: Any) -> Any:
        return value

    get = put

    def wait(self, asked: list[Any], **how: Any) -> tuple[list[Any], list[Any]]:
        return asked, []


def test_a_node_whose_gpu_does_not_work_is_no_place_of_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    strategies = SimpleNamespace(NodeAffinitySchedulingStrategy=lambda node, soft: node)
    for name, module in (("ray", SimpleNamespace(cloudpickle=pickle)), ("ray.util.scheduling_strategies", strategies)):
        monkeypatch.setitem(sys.modules, name, module)
    assert Cluster(FakeRay()).survey(Needs(1, 1)) == [{"hardware": {"gpu": "H200"}}]


def test_tasks_for_gpus_do_not_hold_up_others(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("ndsvrp.cluster.tasks.time.monotonic", lambda: now[0])
    tasks = [Task(str(i), list, Needs(1, i % 2)) for i in range(100)]
    slots = {Needs(1): 10, Needs(1, 1): 1}
    waiting = Waiting(tasks)
    assert list(waiting.due(slots.__getitem__)) == [*range(0, 40, 2), *range(1, 33, 2)]
    assert list(waiting.due(slots.__getitem__)) == [] and waiting
    waiting.ended(4)
    waiting.ended(7, again=True)
    assert list(waiting.due(slots.__getitem__)) == [40, 7]
    slots[Needs(1)] = 11
    assert list(waiting.due(slots.__getitem__)) == []
    now[0] += LOOK + 1
    assert list(waiting.due(slots.__getitem__)) == [42, 44]
    few = Waiting(tasks[:2])
    assert list(few.due(slots.__getitem__)) == [0, 1] and not few
    few.ended(1, again=True)
    assert few and list(few.due(slots.__getitem__)) == [1]


def test_leased_cores_are_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    mine = [9007, 9008, 9009]  # no cores: other tests may lease real ones
    monkeypatch.setattr(cores, "usable", lambda: mine[::-1])
    monkeypatch.setattr(cores, "PAUSE", 0.01)
    later: list[list[int]] = []

    def wait() -> None:
        with leased(2) as group:
            later.append(group)

    with leased(1) as first, leased(1) as second:
        assert (first, second) == ([9009], [9008])
        thread = threading.Thread(target=wait)
        thread.start()
        thread.join(0.1)
        assert not later, "one core is free, and two are wanted"
    thread.join(10)
    assert later in ([[9009, 9008]], [[9008, 9007]])
    with pytest.raises(InstanceError, match="cores: 4 is not within 1-3, the cores of a node"), leased(4):
        pass


def test_on_result_is_called_as_results_come() -> None:
    problems = ndsvrp.generate("cvrp", 12, count=3, seed=1)
    problems.insert(1, problems[0].replace(vehicles=1))
    told: dict[int, Any] = {}
    results = ndsvrp.solve_set(problems, iterations=2, together=1, on_result=told.__setitem__)
    assert list(told) == [1, 0, 2, 3] and [told[i] for i in range(4)] == results
    ended = ndsvrp.solve_set(problems, iterations=2, together=1, on_result=lambda i, result: i != 0)
    assert [isinstance(result, ndsvrp.Result) for result in ended] == [True, False, False, False]
    assert str(ended[2]) == "interrupted before its search"
    ended = ndsvrp.solve_set(problems, iterations=2, together=1, on_result=lambda i, result: False)
    assert [str(ended[i]) for i in (0, 2, 3)] == ["interrupted before its search"] * 3, "the refused one came first"
    with pytest.raises(ndsvrp.CallbackError, match="a callback or stop criterion raised KeyError: 0") as failed:
        ndsvrp.solve_set(problems, iterations=2, together=1, on_result=lambda i, result: {1: 1}[i])
    assert failed.value.results[0].cost == results[0].cost  # type: ignore[union-attr]
    with pytest.raises(NdsError, match="on_result must be a function of a position and a result, got int"):
        ndsvrp.solve_set(problems, iterations=2, on_result=3)  # type: ignore[arg-type]


def test_what_is_refused_before_anything_is_sent() -> None:
    problems = ndsvrp.generate("cvrp", 12, count=2, seed=1)
    refused: dict[str, dict[str, Any]] = {
        "unknown cluster 'slurm': one of ray": {"cluster": "slurm"},
        "callback is for searches in this process; with a cluster, on_result gets each result": {"callback": print},
        "stop is for searches in this process; with a cluster, on_result gets each result": {"stop": print},
        r"a search needs a limit: time \(in seconds\) or iterations": {"iterations": None},
        "together must be at least 1, got 0": {"together": 0},
        "unknown option 'colour'": {"colour": 1},
    }
    for message, options in refused.items():
        with pytest.raises(NdsError, match=f"^{message}"):
            ndsvrp.solve_set(problems, **{"iterations": 1, "cluster": "ray"} | options)


def test_errors_can_be_sent() -> None:
    error = NoSolutionError("none", [3], 0.5)
    copy = pickle.loads(pickle.dumps(error))
    assert (str(copy), copy.unserved, copy.preparation, copy.result) == ("none", [3], 0.5, None)
