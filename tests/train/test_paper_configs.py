"""The paper's trainings as files, against the numbers in its text."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ndsvrp.policy import NetworkConfig
from ndsvrp.train.checkpoint import is_kept
from ndsvrp.train.config import Source, TrainConfig, read_config

ROOT = Path(__file__).parents[2]
PAPER = ROOT / "configs/paper"
PROBLEMS = ("cvrp", "vrptw", "pcvrp")
EPOCH = 1500  # instances


def read(name: str) -> TrainConfig:
    return read_config(PAPER / f"{name}.toml")


@pytest.mark.parametrize("customers", [100, 500, 1000, 2000])
@pytest.mark.parametrize("problem", PROBLEMS)
def test_the_twelve(problem: str, customers: int) -> None:
    config = read(f"{problem}-{customers}")
    recipe = config.train
    assert config.data == (Source(problem=problem, customers=(customers,)),)
    assert config.network == NetworkConfig.paper()
    assert recipe.instances == (500 if customers == 2000 else 2000) * EPOCH
    assert (recipe.iterations, recipe.rollouts, recipe.improvement_steps, recipe.removals) == (100, 128, 10, 15)
    assert (recipe.warm_up, recipe.warm_up_rollouts) == ("policy", 128)
    assert (recipe.learning_rate, recipe.schedule, recipe.warm_up_steps) == (1e-4, "constant", 0)
    assert (recipe.batch, recipe.step_every) == (64, 0)
    assert (recipe.weight_decay, recipe.clip_gradient, recipe.average) == (1e-6, 0, 0)
    assert (recipe.orders, recipe.start_rounds, recipe.scale_advantage) == (1, 100, False)


def test_network_of_the_paper() -> None:
    network = read("paper").network
    assert (network.width, network.heads, network.feed_forward) == (128, 8, 512)
    assert (network.layers_before, network.layers_after) == (2, 2)
    assert (network.message_passing, network.tour_encoding, network.distance_term) == (True, True, False)
    assert (network.tour_first, network.tour_aggregate) == (False, "mean")
    assert (network.seed_bits, network.seed_width, network.clip) == (10, 256, 10.0)


@pytest.mark.parametrize("problem", PROBLEMS)
def test_2000_starts_from_1000_at_epoch_1500(problem: str) -> None:
    before, after = read(f"{problem}-1000"), read(f"{problem}-2000")
    assert before.train.keep == (1500 * EPOCH,)
    folder, _, name = after.train.init.rpartition("/")
    assert folder == f"out/paper/{problem}-1000"  # where configs/README.md has it trained
    match = re.fullmatch(r"checkpoint-(\d{9})", name)
    assert match is not None
    instances = int(match[1])
    assert instances % 64 == 0 and is_kept(instances, before.train)
    assert before.network == after.network
    assert (after.train.keep, read(f"{problem}-100").train.keep) == ((), ())


@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("without-message-passing", {"message_passing": False}),
        ("without-tour-encoding", {"tour_encoding": False}),
        ("without-both", {"message_passing": False, "tour_encoding": False}),
        ("without-improvement", {}),
    ],
)
def test_ablations(problem: str, name: str, changes: dict[str, bool]) -> None:
    full, ablated = read(f"{problem}-500"), read(f"ablations/{problem}-{name}")
    assert ablated.network == NetworkConfig.paper(**changes)
    assert ablated.data == full.data
    differing = {key for key, value in vars(ablated.train).items() if value != getattr(full.train, key)}
    steps = {"improvement_steps"} if name == "without-improvement" else set()
    assert differing == {"instances", "keep"} | steps
    assert ablated.train.improvement_steps == (0 if steps else 10)
    assert ablated.train.instances == 1000 * EPOCH
    assert full.train.keep == (ablated.train.instances,)  # what they are compared to


@pytest.mark.parametrize(
    ("name", "sources"),
    [
        ("mixed-medium", [("uniform", (8, 12)), ("clustered", (8, 12))]),
        ("uniform-low", [("uniform", (5, 8))]),
        ("uniform-high", [("uniform", (12, 16))]),
        ("clustered-low", [("clustered", (5, 8))]),
        ("clustered-high", [("clustered", (12, 16))]),
    ],
)
def test_generalization(name: str, sources: list[tuple[str, tuple[int, int]]]) -> None:
    config = read(f"generalization/{name}")
    assert [(source.layout, source.customers_per_route) for source in config.data] == sources
    assert all(source.depot == ("random" if source.layout == "clustered" else "") for source in config.data)
    assert {(source.problem, source.customers, source.weight) for source in config.data} == {("cvrp", (500,), 1.0)}
    assert config.train == read("cvrp-100").train
    assert config.network == NetworkConfig.paper()


def test_every_file_can_be_read_and_is_listed() -> None:
    page = (ROOT / "configs/README.md").read_text()
    files = sorted((ROOT / "configs").rglob("*.toml"))
    assert len(files) >= 1 + 12 + 12 + 5
    for file in files:
        read_config(file)
        name = file.relative_to(ROOT / "configs").as_posix()
        kind = re.sub(r"/(vrptw|pcvrp)-without", "/cvrp-without", name)  # listed as …/vrptw-…
        assert f"`{kind}`" in page or f"`…/{file.name}`" in page, f"configs/README.md does not list {name}"
