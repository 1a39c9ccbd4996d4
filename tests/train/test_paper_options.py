"""Options of training in which the paper's text and the authors' code differ: each changes what it says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from ndsvrp import Problem, Solution, check, generate
from ndsvrp.engine.base import Recipe as Reconstruction
from ndsvrp.engine.cpu import CpuEngine
from ndsvrp.errors import CheckpointError, NdsError
from ndsvrp.policy import Network, NetworkConfig
from ndsvrp.policy.inputs import Inputs
from ndsvrp.policy.model_file import ModelCard, load_model, save_model
from ndsvrp.policy.network import TourEncoding
from ndsvrp.train.checkpoint import load_checkpoint
from ndsvrp.train.config import Recipe, Source, TrainConfig, Validation
from ndsvrp.train.processes import joined
from ndsvrp.train.run import _trainer, capture, train
from ndsvrp.train.states import prepare
from ndsvrp.train.trainer import Trainer

CPU = torch.device("cpu")
NETWORK = NetworkConfig(width=8, heads=2, feed_forward=8, layers_before=1, layers_after=1, seed_bits=4, seed_width=4)


def config(**recipe: Any) -> TrainConfig:
    """Batches of four small instances, one batch."""
    usual: dict[str, Any] = {
        "seed": 3, "batch": 4, "instances": 4, "iterations": 3, "rollouts": 2, "removals": 3, "orders": 2,
        "start_rounds": 2, "improvement_steps": 2, "warm_up_rollouts": 4, "average": 0.0,
    }  # fmt: skip
    return TrainConfig(
        network=NETWORK, train=Recipe(**usual | recipe), data=(Source(customers=(10,)),),
        validation=Validation(every=0, states=2, search_instances=0),
    )  # fmt: skip


def card(network: NetworkConfig) -> ModelCard:
    return ModelCard(
        network=network, problems=("cvrp",), sizes=(10,), training={}, commit="", instances=0, steps=0, seconds=0.0,
        init="", validation={},
    )  # fmt: skip


class Recorded(CpuEngine):
    """An engine that records what it is asked."""

    def __init__(self) -> None:
        super().__init__()
        self.improved: list[tuple[Reconstruction, float]] = []  #: recipe and first temperature of each call
        self.evaluated: list[Reconstruction] = []
        self.changes: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []  #: costs before, lowest change, costs after

    def improve(self, state: Any, recipe: Any, removed: Any, temperature: Any, *rest: Any, **more: Any) -> None:
        self.improved.append((recipe, float(temperature[0, 0])))
        super().improve(state, recipe, removed, temperature, *rest, **more)

    def evaluate(self, state: Any, recipe: Any, *rest: Any, **more: Any) -> Any:
        before = state.stats().costs
        change = super().evaluate(state, recipe, *rest, **more)
        self.evaluated.append(recipe)
        self.changes.append((before, change.min(axis=1), state.stats().costs))
        return change


def trained(**recipe: Any) -> Recorded:
    """Train on one batch."""
    engine, settings = Recorded(), config(**recipe)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        trainer = Trainer(settings, Network(settings.network), engine, CPU)
    trainer.train_batch()
    trainer.close()
    return engine


# --- solutions and rollouts --------------------------------------------------------------------


def test_the_best_rollout_may_be_worse() -> None:
    """Two routes to the right and left of the depot; the order 1, 3, 2, 4 makes two routes from side to side.

    A route of the good solution costs 2 sqrt(101) + 2, one of the others 2 sqrt(101) + 20.
    """
    problem = Problem(coordinates=[[0, 0], [10, 1], [10, -1], [-10, 1], [-10, -1]], demand=[0, 1, 1, 1, 1], capacity=2)
    engine, good = CpuEngine(), Solution([(1, 2), (3, 4)])
    removed, recipe = np.array([[[1, 3, 2, 4]]], np.int32), Reconstruction(removals=4)
    for always, extra in ((False, 4.0), (True, 40.0)):
        state = engine.start([problem], [0], good)
        change = engine.evaluate(state, recipe, removed, 1, 0, 0, keep_best=True, always=always)
        assert change[0, 0] == pytest.approx(36.0, abs=1e-5)
        kept = engine.export(state, 0, best=False)
        assert check(problem, kept).cost == pytest.approx(4 * 101**0.5 + extra)
        assert {frozenset(route) for route in kept.routes} == ({frozenset({1, 3}), frozenset({2, 4})} if always else
                                                              {frozenset({1, 2}), frozenset({3, 4})})  # fmt: skip
        assert check(problem, engine.export(state, 0)).cost == pytest.approx(4 * 101**0.5 + 4.0), "the best is kept"


def test_acceptance() -> None:
    """The solution becomes the best rollout's if that is better, or always."""
    for acceptance in ("better", "always"):
        changes = trained(acceptance=acceptance, iterations=6, start_rounds=30).changes
        assert len(changes) == 6
        for before, change, after in changes:
            taken = change if acceptance == "always" else np.minimum(change, 0.0)
            assert after == pytest.approx(before + taken, abs=1e-6)
        assert any((change > 1e-6).any() for _, change, _ in changes), "some iteration finds nothing better"


@pytest.mark.parametrize(("scope", "everywhere"), [("touched", False), ("all", True)])
def test_scope(scope: str, everywhere: bool) -> None:
    engine = trained(scope=scope)
    assert {recipe.all_routes for recipe in engine.evaluated} == {everywhere}
    assert [recipe.all_routes for recipe, _ in engine.improved] == [True, everywhere, everywhere], (
        "the start: always all"
    )


@pytest.mark.parametrize(("orders", "warm_up_orders", "before"), [(1, 0, 1), (1, 5, 5), (5, 1, 1)])
def test_orders(orders: int, warm_up_orders: int, before: int) -> None:
    engine = trained(orders=orders, warm_up_orders=warm_up_orders)
    assert {recipe.orders for recipe in engine.evaluated} == {orders}
    assert [recipe.orders for recipe, _ in engine.improved[1:]] == [before] * 2


def test_start_rounds() -> None:
    """Without rounds and improvement steps, a solution has one route per customer."""
    assert len(trained(start_rounds=0).improved) == 2, "the improvement steps alone"
    before = trained(start_rounds=0, improvement_steps=0).changes[0][0]
    problems = generate("cvrp", 10, count=4, seed=3)
    there_and_back = [2 * problem.length(np.zeros(11, int), np.arange(11)).sum() for problem in problems]
    assert before == pytest.approx(there_and_back, rel=1e-6)


@pytest.mark.parametrize("scale", ["side", "absolute"])
def test_temperatures(scale: str) -> None:
    """From 0.1 to 0.001 in two improvement steps: times the side, or as they are."""
    recipe, engine = config(temperature_scale=scale, start_rounds=0).train, Recorded()
    problem = generate("cvrp", 10, seed=3)[0]
    assert problem.coordinates is not None
    large = problem.replace(coordinates=50 * problem.coordinates)
    prepare(engine, [large], recipe, 1, 0, CPU)
    unit = large.side() if scale == "side" else 1.0
    assert large.side() > 30
    assert [temperature for _, temperature in engine.improved] == pytest.approx([0.1 * unit, 0.001 * unit])


# --- initial weights ---------------------------------------------------------------------------


def moments(trainer: Trainer) -> dict[str, dict[str, torch.Tensor]]:
    state = capture(trainer, 0.0)
    return {part: getattr(state, part) for part in ("exp_avg", "exp_avg_sq", "step")}


@pytest.mark.parametrize("optimizer", [False, True])
def test_optimizer_state_of_the_initial_checkpoint(tmp_path: Path, optimizer: bool) -> None:
    first = train(config(), tmp_path / "first", threads=1, device="cpu").checkpoint
    before = load_checkpoint(first)
    assert before.steps == 3 and set(map(float, before.step.values())) == {3.0}
    settings = config(init=str(first), init_optimizer=optimizer)
    with joined("cpu") as process:
        trainer, origin = _trainer(settings, tmp_path / "second", process, 1, False, "")
    trainer.close()
    assert (trainer.steps, trainer.instances, origin.seconds) == (0, 0, 0.0), "a new run"
    assert origin.init.startswith(first.name)
    for name, weight in trainer.network.state_dict().items():
        assert torch.equal(weight, before.weights[name])
    held = moments(trainer)
    if not optimizer:
        assert held == {"exp_avg": {}, "exp_avg_sq": {}, "step": {}}
        return
    for part, tensors in held.items():
        assert tensors.keys() == getattr(before, part).keys() and tensors
        for name, tensor in tensors.items():
            assert torch.equal(tensor, getattr(before, part)[name]), (part, name)


def test_optimizer_state_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(NdsError, match="init_optimizer is for a run from a checkpoint: give one as init or by --init"):
        train(config(init_optimizer=True), tmp_path / "a", threads=1, device="cpu")
    alone = tmp_path / "alone.safetensors"
    save_model(alone, Network(NETWORK).state_dict(), card(NETWORK))
    with pytest.raises(CheckpointError, match=r"alone\.safetensors: holds weights alone, but init_optimizer asks"):
        train(config(init_optimizer=True, init=str(alone)), tmp_path / "b", threads=1, device="cpu")


# --- network -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("aggregate", "expected"), [("mean", [7, 3, 5, 10, 4]), ("sum", [7, 5, 7, 10, 4])])
def test_tour_layer(aggregate: str, expected: list[float]) -> None:
    """h + tour, worked by hand: routes {1, 2} and {3}, customer 4 unserved, h = 7 (depot), 1, 3, 5, 4.

    The first route has the mean 2 and the sum 4. W4 selects the tour, the feed-forward layers pass it on, without norm.
    """
    layer = TourEncoding(NetworkConfig(width=1, heads=1, feed_forward=1, tour_aggregate=aggregate))  # type: ignore[arg-type]
    layer.norm = nn.Identity()  # type: ignore[assignment]
    with torch.no_grad():
        layer.merge.weight.copy_(torch.tensor([[0.0, 1.0]]))
        for part in (layer.feed_forward[0], layer.feed_forward[2]):
            part.weight.fill_(1.0)
        for part in (layer.merge, layer.feed_forward[0], layer.feed_forward[2]):
            part.bias.zero_()
        h = torch.tensor([7.0, 1.0, 3.0, 5.0, 4.0]).reshape(1, 5, 1)
        zeros, route = torch.zeros(1, 5, dtype=torch.int64), torch.tensor([[-1, 0, 0, 1, -1]])
        out = layer(h, Inputs(torch.zeros(1, 5, 2), None, zeros, zeros, route))
    assert out.reshape(-1).tolist() == expected


def test_order_of_layers() -> None:
    names = {
        first: [type(layer).__name__ for layer in Network(NetworkConfig(tour_first=first, width=8, heads=2)).layers]
        for first in (False, True)
    }
    assert names[False] == ["Attention"] * 2 + ["MessagePassing", "TourEncoding"] + ["Attention"] * 2
    assert names[True] == ["Attention"] * 2 + ["TourEncoding", "MessagePassing"] + ["Attention"] * 2


def test_tied_neighbours(tmp_path: Path) -> None:
    """One matrix of 8 x 8 numbers less; direction is then invisible to the layer; files keep the network."""
    tied = NetworkConfig(**{**vars(NETWORK), "tied_neighbours": True})
    sizes = [sum(weight.numel() for weight in Network(form).parameters()) for form in (NETWORK, tied)]
    assert sizes[0] - sizes[1] == 8 * 8
    h, zeros = torch.randn(1, 3, 8, generator=torch.Generator().manual_seed(1)), torch.zeros(1, 3, dtype=torch.int64)
    previous, following = torch.tensor([[0, 0, 1]]), torch.tensor([[0, 2, 0]])
    for form in (NETWORK, tied):
        network = Network(form)
        assert network.message_passing is not None
        there, back = (
            network.message_passing(h, Inputs(torch.zeros(1, 3, 2), None, *each, zeros))
            for each in ((previous, following), (following, previous))
        )
        assert torch.equal(there, back) == form.tied_neighbours
        file = tmp_path / f"{form.tied_neighbours}.safetensors"
        save_model(file, network.state_dict(), card(form))
        loaded, read = load_model(file)
        assert read.network == loaded.config == form
        assert all(torch.equal(a, b) for a, b in zip(loaded.parameters(), network.parameters(), strict=True))


def test_models_from_before_ties(tmp_path: Path) -> None:
    """A card without the field is of a model with two matrices."""
    save_model(tmp_path / "old.safetensors", Network(NETWORK).state_dict(), card(NETWORK))
    described = tmp_path / "old.json"
    table = json.loads(described.read_text())
    del table["network"]["tied_neighbours"]
    described.write_text(json.dumps(table))
    assert load_model(described)[0].config == NETWORK
