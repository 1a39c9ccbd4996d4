"""Fine-tuning: its configuration, the weights it keeps, and what it says about held back instances."""

from __future__ import annotations

import json
import os
import re
import signal
from dataclasses import replace
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import pytest
import torch

from ndsvrp import Result, solve_set, write
from ndsvrp.engine.cpu import CpuEngine
from ndsvrp.errors import NdsError
from ndsvrp.generate import generate
from ndsvrp.policy.model_file import load_model, read_model_file
from ndsvrp.policy.policy import Policy
from ndsvrp.train.checkpoint import load_checkpoint
from ndsvrp.train.config import Recipe, Source, TrainConfig, Validation, from_tables
from ndsvrp.train.fine_tune import fine_tuning, start_effort
from ndsvrp.train.own_instances import read_own
from ndsvrp.train.run import Outcome, train
from ndsvrp.train.selection import Selection
from ndsvrp.train.short_search import ShortSearches
from ndsvrp.train.validation import Validator
from tiny_models import TINY, save_tiny, tiny_network

CPU = torch.device("cpu")
SMALL = (
    "train.instances=12", "train.batch=4", "train.iterations=2", "train.rollouts=4", "train.removals=3",
    "train.orders=1", "train.learning_rate=0.05", "validation.states=1", "validation.search_instances=2",
    "validation.search_iterations=1", "validation.search_chains=1", "validation.every=1",
    "validation.customers=[9]",
)  # fmt: skip


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    """Six instances of two sizes, and a model in `model`."""
    (tmp_path / "mine").mkdir()
    for i in range(6):
        write(tmp_path / f"mine/i{i}.json", generate("vrptw", 9 if i < 4 else 12, seed=i)[0])
    save_tiny(tmp_path, "model", init="old (sha256 123456789abc)", device="cpu")
    return tmp_path / "mine"


def tuned(mine: Path, *changes: str) -> TrainConfig:
    return fine_tuning(str(mine.parent / "model.json"), mine, "cpu", (*SMALL, *changes))


def rows(out: Path, kind: str) -> list[dict[str, Any]]:
    return [row for row in map(json.loads, (out / "log.jsonl").read_text().splitlines()) if row["kind"] == kind]


def run(mine: Path, out: str, *changes: str, **how: Any) -> Outcome:
    init = "" if how.get("resume") else str(mine.parent / "model.json")
    return train(tuned(mine, *changes), mine.parent / out, init=init, device="cpu", threads=1, **how)


# --- the configuration -----------------------------------------------------------------------------------


def test_without_a_file(mine: Path) -> None:
    """Network and rollouts of the model, problem and sizes of the instances, a batch for the device."""
    model = str(mine.parent / "model.json")
    config = fine_tuning(model, mine, "cpu")
    assert config.network == TINY
    (source,) = config.data
    assert replace(source, digest="") == Source(problem="vrptw", customers=(9, 12), files=str(mine))
    assert len(source.digest) == 16
    train = config.train
    assert (train.rollouts, train.removals, train.orders, train.batch) == (128, 15, 5, 16)
    assert (train.learning_rate, train.schedule, train.improvement_steps) == (1e-4, "constant", 2)
    assert config.validation.keep_best and config.validation.held_back == 0.25
    gpu = fine_tuning(model, mine, "cuda", ["train.rollouts=64", "train.start_rounds=3"])
    assert (gpu.train.batch, gpu.train.batch_customers, gpu.train.learning_rate) == (512, 128_000, 3e-5)
    assert (gpu.train.rollouts, gpu.train.start_rounds) == (64, 3)
    assert from_tables(json.loads(json.dumps(config.as_dict())), "json") == config, "as a checkpoint keeps it"


def test_starts_by_size() -> None:
    found = [tuple(start_effort(n).values()) for n in (5, 50, 100, 500, 1000, 5000)]
    assert found == [(5, 2, 16), (5, 2, 25), (10, 5, 50), (30, 25, 128), (30, 50, 128), (30, 50, 128)]


def test_refused(mine: Path) -> None:
    def message(*arguments: Any) -> str:
        with pytest.raises(NdsError) as caught:
            fine_tuning(*arguments)
        return str(caught.value)

    model = str(mine.parent / "model.json")
    assert message("", mine, "cpu") == "--instances needs a model to start from, such as --from all"
    assert "nobody" in message("nobody", mine, "cpu")
    assert message(model, mine.parent / "no", "cpu").startswith(f"{mine.parent / 'no'}: no such file")
    (mine.parent / "empty").mkdir()
    assert "has no instance files" in message(model, mine.parent / "empty", "cpu")
    assert "train: unknown field 'x'" in message(model, mine, "cpu", ["train.x=1"])
    assert "held_back must be between 0 and 0.9, got 1" in message(model, mine, "cpu", ["validation.held_back=1.0"])
    assert "search_instances must not be 0" in message(model, mine, "cpu", ["validation.search_instances=0"])


# --- short searches --------------------------------------------------------------------------------------


def test_figures_of_short_searches() -> None:
    """Means, standard errors and paired differences, by hand from single searches."""
    problems = generate("cvrp", 12, count=3, seed=8)
    config = TrainConfig(
        train=Recipe(rollouts=4, removals=3, orders=1), validation=Validation(search_iterations=2, search_chains=1)
    )
    first, second = (Policy(tiny_network(seed), CPU) for seed in (0, 1))

    def costs(ruin: Any) -> list[float]:
        how: dict[str, Any] = {"rollouts": 4, "removals": 3, "orders": 1, "scope": "touched", "threads": 1}
        found = solve_set(problems, solver="nds", ruin=ruin, iterations=2, seed=2, chains=1, device="cpu", **how)
        return [result.cost for result in found if isinstance(result, Result)]

    start, later, related, string = map(costs, (first, second, "related", "string"))
    searches = ShortSearches(problems, config, CPU)
    figures = searches.measure(first)
    assert (figures["to_start"], figures["to_start_error"], figures["start_costs"]) == (0, 0, start)
    figures = searches.measure(second)
    assert (figures["instances"], figures["cost"]) == (3, fmean(later))
    assert figures["cost_error"] == pytest.approx(stdev(later) / 3**0.5)
    for name, others in (("related", related), ("string", string), ("start", start)):
        pairs = [100 * (cost - other) / other for cost, other in zip(later, others, strict=True)]
        assert figures[f"{name}_cost"] == fmean(others)
        assert figures[f"to_{name}"] == pytest.approx(fmean(pairs))
        assert figures[f"to_{name}_error"] == pytest.approx(stdev(pairs) / 3**0.5)
    assert ShortSearches(problems, config, CPU, start=start).measure(second) == figures, "the start may be known"
    alone = ShortSearches(problems[:1], config, CPU, start=start).measure(second)
    assert alone["cost_error"] is None and alone["start_costs"] == later[:1], "costs of other instances are not used"


def test_validation_compares_with_rules_and_start() -> None:
    config = TrainConfig(
        network=TINY, train=Recipe(rollouts=4, removals=3, orders=1, improvement_steps=1),
        validation=Validation(states=2, search_instances=2, search_iterations=1, search_chains=1),
        data=(Source(customers=(8,)), Source(problem="pcvrp", customers=(9,))),
    )  # fmt: skip
    validator = Validator(config, CpuEngine(), CPU)
    first, second = (validator.measure(tiny_network(seed)) for seed in (0, 1))
    assert first["to_start"] == 0
    one, other = second["sets"].values()
    assert second["to_start"] == pytest.approx((one["to_start"] + other["to_start"]) / 2)
    assert second["to_start_error"] ** 2 == pytest.approx(
        (one["to_start_error"] ** 2 + other["to_start_error"] ** 2) / 4
    )
    for name, figure in second["sets"].items():
        assert figure["start_costs"] == first["sets"][name]["start_costs"]
        assert figure["related_cost"] == first["sets"][name]["related_cost"]
    seconds = replace(config, validation=replace(config.validation, search_seconds=0.02))
    figure = Validator(seconds, CpuEngine(), CPU).measure(tiny_network())["sets"]["cvrp8"]
    assert figure["cost"] > 0 and figure["string_cost"] > 0


# --- runs ------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_best_is_the_model(mine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of all validations the second has the lowest costs: its weights are the model, also after Ctrl-C.

    Costs that are lower still, but not by more than their standard error, do not count.
    """
    measure, seen = Validator.measure, []

    def watched(self: Validator, network: Any) -> dict[str, Any]:
        seen.append({name: tensor.clone() for name, tensor in network.state_dict().items()})
        change, error = [(0, 0), (-2, 0.5), (-3, 4), (-3, 4), (-1, 0.1)][len(seen) - 1]
        return measure(self, network) | {"to_start": change, "to_start_error": error}

    monkeypatch.setattr(Validator, "measure", watched)

    def interrupt(kind: str, row: dict[str, Any]) -> None:
        if kind == "batch" and row["batch"] == 2:
            os.kill(os.getpid(), signal.SIGINT)

    first = run(mine, "out", report=interrupt)
    assert first.stopped == "interrupted" and len(seen) == 3
    for outcome in (first, run(mine, "out", resume=True)):
        model, card = load_model(outcome.checkpoint)
        assert all(torch.equal(weight, seen[1][name]) for name, weight in model.state_dict().items())
        assert (card.validation["to_start"], card.validation["at_instances"]) == (-2, 4)
    state = load_checkpoint(mine.parent / "out/checkpoint-000000012")
    assert card.instances == state.instances == 12
    assert any(not torch.equal(weight, seen[1][name]) for name, weight in state.average.items()), "training went on"


def test_what_is_gained(mine: Path) -> None:
    """Held back instances: the costs of start and model, by searches of their own; lineage and log tell the same."""
    outcome = run(mine, "out")
    figures = outcome.validation["held_back"]
    model = read_model_file(outcome.checkpoint)
    assert model.card.validation["held_back"] == figures == rows(mine.parent / "out", "gain")[0]["held_back"]
    config = load_checkpoint(outcome.checkpoint).config
    held_back = read_own(config)[str(mine)].held_back
    assert figures["instances"] == len(held_back) == 2
    searches = ShortSearches(held_back, config, CPU)
    before = searches.measure(Policy(load_model(mine.parent / "model.json")[0], CPU))
    after = searches.measure(Policy(load_model(outcome.checkpoint)[0], CPU))
    assert figures["start_costs"] == before["start_costs"]
    assert {name: figures[name] for name in after} == after
    assert [ancestor.model for ancestor in model.card.lineage] == ["old (sha256 123456789abc)", model.card.init]
    assert (model.card.device, model.card.lineage[1].seconds, model.card.lineage[1].device) == ("cpu", 90.5, "cpu")
    assert model.card.total_seconds == model.card.seconds + 90.5


@pytest.mark.slow
def test_resumed_is_the_same(mine: Path) -> None:
    """Also by what it compares itself with: the start, not the point where it went on."""

    def stop(kind: str, row: dict[str, Any]) -> None:
        if kind == "batch" and row["batch"] == 1:
            os.kill(os.getpid(), signal.SIGTERM)

    whole = run(mine, "whole")
    run(mine, "parts", report=stop)
    parts = run(mine, "parts", resume=True)
    for figures in (whole.validation, parts.validation):
        figures["held_back"].pop("seconds")
    assert parts.validation == whole.validation
    for name in ("model.safetensors", "training.safetensors"):
        assert (parts.checkpoint / name).read_bytes() == (whole.checkpoint / name).read_bytes()
    assert load_model(parts.checkpoint)[1].lineage == load_model(whole.checkpoint)[1].lineage


def test_other_instances_are_refused(mine: Path) -> None:
    """Instances that were trained on would be held back, and costs of others compared."""
    config = tuned(mine)
    read_own(config)
    write(mine / "i1.json", generate("vrptw", 9, seed=77)[0])
    message = f"{mine}: holds other instances than the run began with; start a new run"
    with pytest.raises(NdsError, match=re.escape(message)):
        read_own(config)


def test_the_path_is_in_the_run_and_not_in_the_model(mine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(mine.parent)
    config = fine_tuning(str(mine.parent / "model.json"), Path("mine"), "cpu", SMALL)
    assert config.data[0].files == str(mine)
    outcome = run(mine, "out")
    assert load_model(outcome.checkpoint)[1].training["data"][0]["files"] == "mine"


def test_nothing_is_gained(mine: Path) -> None:
    """Without a learning rate the start stays the model, and the difference is exactly 0."""
    outcome = run(mine, "out", "train.learning_rate=0.0", "train.weight_decay=0.0")
    figures = outcome.validation
    assert (figures["at_instances"], figures["held_back"]["to_start"], figures["held_back"]["to_start_error"]) == (
        0,
        0,
        0,
    )
    start = load_model(mine.parent / "model.json")[0].state_dict()
    assert all(
        torch.equal(weight, start[name]) for name, weight in load_model(outcome.checkpoint)[0].state_dict().items()
    )


@pytest.mark.slow
def test_other_figures_are_not_compared(mine: Path) -> None:
    """A run that goes on with other searches begins to compare anew."""
    run(mine, "out", "train.instances=4")
    with pytest.warns(UserWarning, match="the configuration differs"):
        outcome = run(mine, "out", "train.instances=8", "validation.search_iterations=3", resume=True)
    first = [row for row in rows(mine.parent / "out", "validation") if row["batches"] == 1]
    assert first[-1]["to_start"] == 0 and outcome.validation["held_back"]["instances"] == 2


def test_a_checkpoint_has_its_own_figures(mine: Path) -> None:
    """Without `every`, validation is made whenever a checkpoint is written."""
    run(mine, "out", "validation.every=0", "validation.keep_best=false", "train.checkpoint_seconds=0.0")
    assert [row["instances"] for row in rows(mine.parent / "out", "validation")] == [0, 4, 8, 12]
    folder = mine.parent / "out/checkpoint-000000008"
    card = read_model_file(folder).card
    row = next(row for row in rows(mine.parent / "out", "validation") if row["instances"] == 8)
    assert card.validation["sets"] == row["sets"]


def test_the_model_without_keep_best(mine: Path) -> None:
    config = tuned(mine, "validation.keep_best=false")
    selection = Selection(config, CpuEngine(), CPU, 1, read_own(config), None)
    selection.measure(tiny_network(), 0)
    assert selection.weights is None and "at_instances" not in selection.figures
