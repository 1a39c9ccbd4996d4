"""Training configurations by the paper's text and by the authors' code, and the page that lists the differences."""

from __future__ import annotations

import re
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from ndsvrp import generate
from ndsvrp.search.presets import PRESETS
from ndsvrp.train.checkpoint import is_kept
from ndsvrp.train.config import TrainConfig, read_config

ROOT = Path(__file__).parents[2]
NAMES = [f"{problem}-{customers}" for problem in ("cvrp", "vrptw", "pcvrp") for customers in (100, 500, 1000, 2000)]
TEXT: dict[str, Any] = {
    "tour_first": False, "tour_aggregate": "mean", "tied_neighbours": False, "scope": "all", "acceptance": "always",
    "start_rounds": 0, "orders": 1, "warm_up_orders": 5, "temperature_scale": "absolute", "init_optimizer": False,
}  # fmt: skip
CODE = TEXT | {
    "tour_first": True, "tour_aggregate": "sum", "tied_neighbours": True, "scope": "touched", "start_rounds": 100
}  # fmt: skip


def read(kind: str, name: str) -> TrainConfig:
    return read_config(ROOT / f"configs/{kind}/{name}.toml")


def fields(config: TrainConfig) -> dict[str, Any]:
    return asdict(config.network) | asdict(config.train)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("kind", "values"), [("paper-text", TEXT), ("paper-code", CODE)])
def test_the_twelve(kind: str, values: dict[str, Any], name: str) -> None:
    """What they set, and that all else is that of configs/paper."""
    ours, paper = read(kind, name), read("paper", name)
    expected = values | ({"tied_neighbours": False} if name.startswith("vrptw") else {})
    assert {field: fields(ours)[field] for field in expected} == expected
    assert (ours.data, ours.validation) == (paper.data, paper.validation)
    differing = {field for field, value in fields(ours).items() if value != fields(paper)[field]}
    assert differing <= {*TEXT, "init", "keep"}


@pytest.mark.parametrize("problem", ["cvrp", "vrptw", "pcvrp"])
@pytest.mark.parametrize("kind", ["paper-text", "paper-code"])
def test_2000_starts_from_1000(kind: str, problem: str) -> None:
    before, after = read(kind, f"{problem}-1000"), read(kind, f"{problem}-2000")
    folder, _, name = after.train.init.rpartition("/")
    assert folder == f"out/{kind}/{problem}-1000"
    assert is_kept(int(name.removeprefix("checkpoint-")), before.train)
    assert before.network == after.network


def test_the_page_lists_every_difference() -> None:
    """A row of the table per option, with the value of the text, then that of the code."""
    page = (ROOT / "docs/paper.md").read_text(encoding="utf-8")
    cells = re.findall(r"^\| `(\w+)` \| `(\S+)` \| (not known \()?`(\S+)`\)? \|", page, re.M)
    rows = {name: (text, code) for name, text, _, code in cells}
    unknown = {name for name, _, mark, _ in cells if mark}
    assert unknown == {"chains", "acceptance", "orders", "warm_up_orders", "init_optimizer"}
    assert all(rows[name][0] == rows[name][1] for name in unknown), "then the text's value is taken"
    problem = generate("cvrp", 10, seed=1)[0]
    options = {name: (TEXT[name], CODE[name]) for name in TEXT}
    for name in ("scope", "start_rounds", "temperature_scale"):
        values = tuple(getattr(PRESETS[preset](problem), name) for preset in ("paper-text", "paper-code"))
        assert values == options[name], "search and training agree"
    options["chains"] = (128, 128)
    shown = {name: tuple(str(value).lower() for value in pair) for name, pair in options.items()}
    assert rows == shown
