"""A network of a few hundred weights, and cards for it: what tests of files and commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from ndsvrp.policy import Network, NetworkConfig
from ndsvrp.policy.model_file import ModelCard, save_model
from ndsvrp.train.config import TrainConfig

TINY = NetworkConfig(
    width=8, heads=2, feed_forward=8, layers_before=1, layers_after=1, seed_bits=3, seed_width=4, beta=1.5
)


def tiny_network(seed: int = 0, config: NetworkConfig = TINY) -> Network:
    """Return weights that depend on the seed only; global random numbers are untouched."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return Network(config)


def tiny_card(**changes: Any) -> ModelCard:
    """A card with every field set."""
    fields: dict[str, Any] = {
        "network": TINY,
        "problems": ("cvrp",),
        "sizes": (20, 50),
        "training": TrainConfig(network=TINY).as_dict(),
        "commit": "0123456789abcdef0123456789abcdef01234567",
        "instances": 640,
        "steps": 250,
        "seconds": 90.5,
        "init": "",
        "validation": {"reward_ratio": 1.75, "sets": {"cvrp20": {"cost": 6.125}}},
        "created": "2026-01-02T03:04:05+00:00",
        "versions": {"ndsvrp": "0.1.0", "torch": "2.11"},
    }
    return ModelCard(**{**fields, **changes})


def save_tiny(folder: Path, name: str = "tiny", *, half: bool = False, seed: int = 0, **changes: Any) -> Path:
    """Write a model; returns the file of its weights."""
    card = tiny_card(**changes)
    file = folder / f"{name}.safetensors"
    save_model(file, tiny_network(seed, card.network).state_dict(), card, half=half)
    return file
