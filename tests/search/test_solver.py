"""The solver opens a plan once, for any number of problems."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from ndsvrp import NdsError, Result, Solver, generate, models, solve, solve_set
from ndsvrp.cli import app
from ndsvrp.engine.cpu import CpuEngine
from ndsvrp.search.planning import Request
from tiny_models import save_tiny

SHORT: dict[str, Any] = {"iterations": 2, "seed": 3}
SMALL: dict[str, Any] = {"chains": 2, "rollouts": 5, "device": "cpu"}


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """What was made, in order: an engine, a model."""
    made: list[str] = []
    load, init = models.load, CpuEngine.__init__

    def watched_load(*args: Any) -> models.Model:
        made.append("model")
        return load(*args)

    def watched_init(self: CpuEngine, *args: Any, **more: Any) -> None:
        made.append("engine")
        init(self, *args, **more)

    monkeypatch.setattr(models, "load", watched_load)
    monkeypatch.setattr(CpuEngine, "__init__", watched_init)
    yield made


def course(result: Any) -> tuple[Any, ...]:
    assert isinstance(result, Result), result
    return result.solution, [(point.iteration, point.cost) for point in result.trace], result.reconstructions


def test_one_engine_and_one_model_for_many_problems(opened: list[str], tmp_path: Path) -> None:
    file, problems = save_tiny(tmp_path), generate("cvrp", 12, count=3, seed=1)
    with Solver(model=file, **SMALL) as solver:
        alone = [course(solver.solve(problem, **SHORT)) for problem in problems]
        again = [course(outcome) for outcome in solver.solve_set(problems, together=1, **SHORT)]
        assert opened == ["engine", "model"]
        solver.solve(generate("cvrp", 20, seed=1)[0], **SHORT)
        assert opened == ["engine", "model"], "another size needs nothing new"
    assert again == alone == [course(solve(problem, model=file, **SHORT, **SMALL)) for problem in problems]


@pytest.mark.parametrize("together", [1, 2])
def test_the_command_opens_once(opened: list[str], tmp_path: Path, together: int) -> None:
    data = Path(__file__).parents[1] / "data"
    file = save_tiny(tmp_path, problems=("cvrp", "pcvrp"))
    how = ["--model", str(file), "--iterations", "1", "--chains", "1", "--set", "rollouts=5", "-q"]
    for instance, more in ((data / "small/toy.vrp", []), (data / "sets/cvrp100.npz", ["--together", str(together)])):
        opened.clear()
        answer = CliRunner().invoke(app, ["solve", str(instance), *how, *more], prog_name="nds")
        assert answer.exit_code == 0, answer.output
        assert opened == ["engine", "model"]


def test_functions_open_once(opened: list[str], tmp_path: Path) -> None:
    file, problems = save_tiny(tmp_path), generate("cvrp", 12, count=5, seed=1)
    solve(problems[0], model=file, **SHORT, **SMALL)
    assert opened == ["engine", "model"]
    opened.clear()
    solve_set(problems, together=2, model=file, **SHORT, **SMALL)
    assert opened == ["engine", "model"]


def test_each_kind_of_problem_has_its_plan(opened: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models, "FOLDER", tmp_path)
    save_tiny(tmp_path, "plain", sizes=(12,))
    save_tiny(tmp_path, "prizes", problems=("pcvrp",), sizes=(12,))
    problems = [generate(variant, 12, seed=i)[0] for i in (1, 2) for variant in ("cvrp", "pcvrp")]
    with Solver(ruin="policy", **SMALL) as solver:
        results = solver.solve_set(problems, **SHORT)
        assert [solver.plan(problem).model for problem in problems] == ["plain", "prizes"] * 2
    names = [result.settings["model"]["name"] for result in results if isinstance(result, Result)]
    assert names == ["plain", "prizes"] * 2
    assert opened == ["engine", "model", "model"]


def test_the_plan_is_in_the_result() -> None:
    problem = generate("cvrp", 12, seed=1)[0]
    with Solver(solver="nds", ruin="related", **SMALL) as solver:
        plan, result = solver.plan(problem), solver.solve(problem, **SHORT)
    assert result.settings.items() >= plan.record().items()
    assert plan.record().items() >= {"solver": "nds", "device": "cpu", "ruin": "related", "chains": 2}.items()


def test_unknown_limits_are_refused() -> None:
    with pytest.raises(NdsError, match=r"unknown limit 'seconds' \(known: time, iterations, patience, target\)"):
        Solver().solve(generate("cvrp", 5)[0], seconds=1)  # type: ignore[call-arg]
    with pytest.raises(NdsError, match=r"unknown limit 'time_limit' \(time takes it, in seconds; known: time, "):
        Solver().solve(generate("cvrp", 5)[0], time_limit=1)  # type: ignore[call-arg]


def test_a_request_or_options() -> None:
    with pytest.raises(NdsError, match="a request or options, not both"):
        Solver(Request(), chains=2)


@pytest.mark.parametrize("solver", ["sisr", "nds"])
def test_a_limit_too_short_for_the_usual_start(solver: str) -> None:
    """Savings take the place of one route per customer, or of greedy insertion if the fleet is limited."""
    problem = generate("cvrp", 3000, seed=1)[0]
    nodes = range(1, 3001)
    alone = 2 * float(problem.length([0] * 3000, nodes).sum())
    for limited in (problem, problem.replace(vehicles=80)):
        result = solve(limited, time=0.3, seed=1, solver=solver, device="cpu")
        assert result.report.feasible and result.cost < 0.1 * alone
        assert result.seconds < 5 and 0 < result.preparation < 60


def test_iterations_alone_never_start_from_savings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CpuEngine, "construct", None)
    assert solve(generate("cvrp", 50, seed=1)[0], solver="sisr", device="cpu", **SHORT).report.feasible
    assert solve(generate("cvrp", 50, seed=1)[0], solver="sisr", device="cpu", time=0.05).report.feasible
