"""Shipped models by name, which one is chosen, and searches that use one."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from clocks import FakeClock
from ndsvrp import Problem, RuinRequest, Solution, Solver, generate, models, solve
from ndsvrp.errors import CheckpointError, EngineError, NdsError, NdsWarning
from ndsvrp.policy import Policy
from ndsvrp.policy.model_file import load_model
from ndsvrp.train.checkpoint import save_checkpoint
from tiny_models import save_tiny, tiny_card
from train.test_checkpoint import state_after


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder of shipped models."""
    folder = tmp_path / "shipped"
    folder.mkdir()
    monkeypatch.setattr(models, "FOLDER", folder)
    return folder


def problem(variant: str = "cvrp", customers: int = 20) -> Problem:
    return generate(variant, customers, seed=1)[0]


def shape(result: Any) -> tuple[Any, ...]:
    return result.solution.routes, result.cost, result.iterations, result.reconstructions


# --- which ----------------------------------------------------------------------------------------


def test_names_and_paths(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shipped = save_tiny(folder, "cvrp-500")
    own = save_tiny(tmp_path, "own")
    assert [file.name for file in models.shipped()] == models.names() == ["cvrp-500"]
    assert models.find("cvrp-500") == shipped
    assert models.find(str(own)) == models.find(own) == own
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cvrp-500").mkdir()
    assert models.find("cvrp-500") == shipped
    assert models.find("./cvrp-500") == models.find(Path("cvrp-500")) == Path("cvrp-500")


def test_unknown_names_list_the_known(folder: Path) -> None:
    none = r"^x: no such file or folder, nor the name of a model \(none is shipped with this version\)$"
    with pytest.raises(CheckpointError, match=none):
        models.find("x")
    save_tiny(folder, "b")
    save_tiny(folder, "a")
    with pytest.raises(CheckpointError, match=r"\(those shipped are a, b\)$"):
        models.find("x")


def test_choice(folder: Path) -> None:
    assert models.choose(problem()) is None
    save_tiny(folder, "small", sizes=(100, 400))
    save_tiny(folder, "large", sizes=(1000,))
    save_tiny(folder, "prizes", problems=("pcvrp",), sizes=(100,))
    chosen = {n: models.choose(problem(customers=n)) for n in (20, 100, 600, 700, 3000)}
    # 600 / 400 = 1.5 is less than 1000 / 600 = 1.67; 700 / 400 = 1.75 is more than 1000 / 700 = 1.43
    assert chosen == {20: "small", 100: "small", 600: "small", 700: "large", 3000: "large"}
    assert models.choose(problem("pcvrp")) == "prizes"
    assert models.choose(problem("vrptw")) is None
    save_tiny(folder, "all", problems=("cvrp", "vrptw", "pcvrp"), sizes=(100, 1000))
    assert models.choose(problem("vrptw")) == "all"
    assert models.choose(problem(customers=100)) == "small"  # as near as the other, and made for this alone


def test_those_of_this_package_can_be_loaded() -> None:
    for file in models.shipped():
        network, card = load_model(file.weights)
        assert network.config == card.network
        assert card.commit and card.validation


# --- searches -------------------------------------------------------------------------------------


def test_search_with_a_model(folder: Path, tmp_path: Path) -> None:
    file = save_tiny(tmp_path)
    apart = Solution([c] for c in range(1, 21))  # from where the way is long enough to be seen
    how: dict[str, Any] = {"iterations": 3, "seed": 1, "chains": 2, "rollouts": 10, "init": apart}
    result = solve(problem(), model=file, **how)
    assert (result.settings["solver"], result.settings["ruin"]) == ("nds", "policy")
    told = result.settings["model"]
    assert (told["name"], told["sha256"]) == ("tiny", models.load(file).sha256)
    assert 0 < told["load_seconds"] < 60
    for same in (
        {"model": str(file)},
        {"model": models.load(file)},
        {"model": Policy(load_model(file)[0])},
        {"ruin": "policy", "model": file, "solver": "nds", "threads": 1},
        {"ruin": Policy(load_model(file)[0]), "solver": "nds"},
    ):
        assert shape(solve(problem(), **how, **same)) == shape(result)
    other = save_tiny(tmp_path, "other", seed=1)
    assert shape(solve(problem(), **how, model=other)) != shape(result)


def test_search_with_a_function_for_a_model() -> None:
    def first(request: RuinRequest) -> Any:
        removed = np.arange(1, request.removals + 1, dtype=np.int32)
        return np.tile(removed, (len(request.view.route), request.rollouts, 1))

    result = solve(problem(), iterations=1, model=first, chains=1)
    assert result.settings["ruin"] == "policy"
    assert result.settings["model"] == {"name": "first"}


def test_shipped_one_is_chosen(folder: Path) -> None:
    save_tiny(folder, "near", sizes=(20,))
    save_tiny(folder, "far", sizes=(500,))
    result = solve(problem(), iterations=1, ruin="policy", chains=1, rollouts=5)
    assert result.settings["model"]["name"] == "near"
    assert solve(problem(), iterations=1, model="far", chains=1, rollouts=5).settings["model"]["name"] == "far"
    missing = r"^ruin 'policy': no model for VRPTW is shipped with this version; give one \(--model NAME\|PATH, or "
    with pytest.raises(NdsError, match=missing):
        solve(problem("vrptw"), iterations=1, ruin="policy")


@pytest.mark.slow
def test_training_run_as_a_model(tmp_path: Path) -> None:
    save_checkpoint(tmp_path / "run", state_after(64), tiny_card())
    result = solve(problem(), iterations=1, model=tmp_path / "run", chains=1, rollouts=5)
    assert result.settings["model"]["name"] == "run/checkpoint-000000064"


@pytest.mark.parametrize("variant", ["cvrp", "vrptw", "pcvrp"])
def test_preset_paper_with_the_policy(folder: Path, variant: str) -> None:
    save_tiny(folder, "all", problems=("cvrp", "vrptw", "pcvrp"))
    chosen = Solver(preset="paper", ruin="policy").plan(problem(variant))
    names = ("ruin", "rollouts", "removals", "orders", "threshold", "hot", "cold", "sorted_orders", "blink", "scope")
    values = [getattr(chosen.settings, name) for name in names]
    assert values == ["policy", 200, 15, 5, 15.0, 0.1, 0.001, False, 0.0, "touched"]
    assert chosen.settings.chains == (128 if variant == "pcvrp" else 8)  # the paper's section 5.2
    assert (chosen.solver, chosen.model) == ("nds", "all")


def test_loading_is_not_part_of_the_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, load, clock = save_tiny(tmp_path), models.load, FakeClock(monkeypatch, tick=1e-3)

    def slow(*args: Any) -> models.Model:
        clock.now += 20.0
        return load(*args)

    monkeypatch.setattr(models, "load", slow)
    result = solve(problem(), time=10.0, iterations=2, model=file, chains=1, rollouts=5)
    assert (result.stopped, result.iterations) == ("iterations", 2)
    assert 0 < result.seconds < 10.0


def test_other_features_are_told(tmp_path: Path) -> None:
    file = save_tiny(tmp_path, problems=("cvrp", "pcvrp"))
    how: dict[str, Any] = {"iterations": 1, "chains": 1, "rollouts": 5, "model": models.load(file)}
    with pytest.warns(NdsWarning, match=r"^the model tiny was trained on CVRP, PCVRP, and this is a VRPTW$"):
        assert solve(problem("vrptw"), **how).report.feasible
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        solve(problem("pcvrp"), **how)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"model": "m", "ruin": "string"}, "a model is for the ruin 'policy', not 'string'"),
        ({"model": "m", "ruin": models.choose}, "a model is for the ruin 'policy', not choose"),
        ({"model": "m", "solver": "sisr"}, "the ruin 'policy' is for the solver 'nds', not 'sisr'"),
        ({"ruin": "policy", "solver": "sisr"}, "the ruin 'policy' is for the solver 'nds', not 'sisr'"),
        ({"ruin": "worst"}, "unknown ruin 'worst': one of string, related, random, policy"),
        ({"model": "no.safetensors"}, "no.safetensors: no such file or folder, nor the name of a model"),
    ],
)
def test_contradictions(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(NdsError) as caught:
        solve(problem(), iterations=1, **arguments)
    assert str(caught.value).startswith(message)


def test_missing_device_is_refused_before_loading(tmp_path: Path) -> None:
    with pytest.raises(EngineError):
        solve(problem(), iterations=1, model=tmp_path / "no.safetensors", device="cuda")
