"""Fine-tuning: the configuration that continues a model on your own instances, without a file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import median_low
from typing import Any

from ndsvrp.errors import NdsError
from ndsvrp.models import find
from ndsvrp.policy.model_file import ModelCard, read_model_file
from ndsvrp.train.config import Recipe, TrainConfig, changed, from_tables
from ndsvrp.train.own_instances import read_instances

SEARCHED = ("rollouts", "removals", "orders", "scope")  # of the recipe: as the model was trained with

#: No schedule, so that a run can be extended: the running mean of the weights takes the place of a falling rate.
COMMON: dict[str, Any] = {
    "instances": 1_000_000_000,  # the time limit or Ctrl-C ends the run
    "schedule": "constant", "checkpoint_seconds": 120.0,
}  # fmt: skip

#: By device: batches that fill it, and a small learning rate. A CPU makes a hundredth of the steps, larger ones.
BY_DEVICE: dict[str, dict[str, Any]] = {
    "cuda": {
        "batch": 512, "batch_customers": 128_000, "iterations": 100, "warm_up_steps": 200, "learning_rate": 3e-5,
    },
    "cpu": {
        "batch": 16, "batch_customers": 4_000, "iterations": 10, "warm_up_steps": 20, "learning_rate": 1e-4,
        "average": 0.99,
    },
}  # fmt: skip
VALIDATION: dict[str, dict[str, Any]] = {
    "cuda": {"states": 64, "search_instances": 16, "search_iterations": 50, "search_chains": 8},
    "cpu": {"states": 16, "search_instances": 8, "search_iterations": 10, "search_chains": 2},
}


def fine_tuning(model: str, instances: Path, device: str, changes: Sequence[str] = ()) -> TrainConfig:
    """Return the configuration that continues a model on a set or folder, with changes such as `train.batch=32`.

    Network, rollouts, removals, insertion orders and scope are those that the model was trained with. Problem and
    sizes are those of the instances.
    """
    if not model:
        raise NdsError("--instances needs a model to start from, such as --from all")
    instances = instances.absolute()  # a run may be resumed from another folder
    card = read_model_file(find(model)).card
    tables: dict[str, Any] = {
        "network": asdict(card.network),
        "train": COMMON | BY_DEVICE[device] | _searched(card),
        "validation": {"every": 0, "keep_best": True, **VALIDATION[device]},
        "data": [{"files": str(instances)}],
    }
    tables = changed(tables, changes)
    usual = {name: value for name, value in tables["validation"].items() if name != "customers"}  # no sizes known yet
    checked = from_tables({**tables, "validation": usual}, f"{instances} with --set").validation
    own = read_instances(instances, checked.held_back, checked.seed)
    sizes = own.sizes()
    tables["train"] = start_effort(median_low(sizes)) | tables["train"]
    tables["data"] = [{"files": str(instances), "problem": own.variant, "customers": sizes, "digest": own.digest}]
    return from_tables(tables, str(instances))


def start_effort(customers: int) -> dict[str, int]:
    """Return how much solutions are improved before training on them.

    A small instance that is improved as long as a large one is at its optimum, and nothing is left to learn from it.
    """
    return {
        "start_rounds": min(max(5, customers // 10), 30),
        "improvement_steps": min(max(2, customers // 20), 50),
        "warm_up_rollouts": min(max(16, customers // 2), 128),
    }


def _searched(card: ModelCard) -> dict[str, Any]:
    """Return how rollouts were made in the training of a model; its configuration may be one of an older version."""
    known, usual = card.training.get("train", {}), asdict(Recipe())
    return {name: known.get(name, usual[name]) for name in SEARCHED}
