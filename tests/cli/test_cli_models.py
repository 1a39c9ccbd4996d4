"""`nds models`, and `nds solve --model`."""

from __future__ import annotations

import json
import re

import pytest
import torch

from ndsvrp import models
from ndsvrp.cli.models import duration
from ndsvrp.policy.model_file import load_model
from tiny_models import save_tiny


@pytest.fixture
def shipped(tmp_path, monkeypatch):
    """An empty folder of shipped models."""
    folder = tmp_path / "shipped"
    folder.mkdir()
    monkeypatch.setattr(models, "FOLDER", folder)
    monkeypatch.setenv("COLUMNS", "200")
    return folder


@pytest.fixture
def quick():
    return ("--iterations", 1, "--chains", 1, "--set", "rollouts=5")


def facts(answer):
    lines = [line.split("  ", 1) for line in answer.stdout.splitlines() if "  " in line]
    return {what: value.strip() for what, value in lines}


def refusal(nds, *args):
    answer = nds(*args, code=2)
    assert answer.stderr.count("\n") == 1
    return answer.stderr.removeprefix("nds: ").rstrip("\n")


def test_none_is_shipped(nds, shipped):
    expected = "no model is shipped with this version; 'nds solve --model PATH' uses one of your own\n"
    assert nds("models").stdout == expected


def test_table(nds, shipped):
    save_tiny(shipped, "b-all", problems=("cvrp", "vrptw", "pcvrp"), sizes=(100,), seconds=5400, init="a-cvrp")
    save_tiny(shipped, "a-cvrp")
    head, *lines, _, more = nds("models").stdout.splitlines()
    assert more == "'nds models NAME' shows all of a model"
    rows = [re.split(r"  +", line.strip()) for line in lines]
    assert re.split(r"  +", head.strip()) == ["name", "problems", "sizes", "trained for", "validation"]
    assert rows == [
        ["a-cvrp", "CVRP", "20 to 50", "1.5 min", "1.75 x related removal"],
        ["b-all", "CVRP, VRPTW, PCVRP", "100 to 100", "1.5 h", "1.75 x related removal"],
    ]


def test_the_table_of_shipped_models_fits_a_terminal(nds, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    lines = nds("models").stdout.splitlines()
    assert len(lines) == 1 + len(models.shipped()) + 2  # nothing is wrapped


def test_one_in_detail(nds, shipped, tmp_path):
    file = save_tiny(tmp_path, "own", half=True)
    for path in (file, file.with_suffix(".json")):
        told = facts(nds("models", path))
        assert (told["name"], told["file"], told["stored as"]) == ("own", str(file), "float16")
        assert told["network"] == "width 8, 2 heads, 1 + 1 attention layers"
        assert (told["distance term"], told["tour encoding"]) == ("yes", "yes")
        assert told["sha256"] == json.loads(file.with_suffix(".json").read_text())["sha256"]
        assert (told["instances"], told["steps"], told["trained for"]) == ("640", "250", "1.5 min")
        assert (told["continued from"], told["versions"]) == ("random weights", "ndsvrp 0.1.0, torch 2.11")
        assert (told["validation: reward_ratio"], told["validation: sets.cvrp20.cost"]) == ("1.75", "6.125")
    save_tiny(shipped, "known", init="elsewhere")
    assert facts(nds("models", "known"))["continued from"] == "elsewhere"


def test_lineage(nds, shipped):
    """The models before, the last one first; the time of all runs; what held back instances gained."""
    first = {
        "model": "a (sha256 1)",
        "device": "NVIDIA H200",
        "seconds": 120.0,
        "instances": 8,
        "steps": 5,
        "commit": "",
    }
    second = {**first, "model": "b (sha256 2)", "seconds": 0.0, "commit": "0123456789"}
    validation = {"reward_ratio": 2.0, "held_back": {"to_start": -0.5, "to_start_error": 0.125, "start_costs": [1.0]}}
    save_tiny(
        shipped, "c", seconds=60.0, device="cpu", init="b (sha256 2)", lineage=[first, second], validation=validation
    )
    lines = [line.split("  ", 1) for line in nds("models", "c").stdout.splitlines()]
    told = [(what, value.strip()) for what, value in lines]
    at = told.index(("continued from", "b (sha256 2)"))
    assert told[at - 1 : at + 4] == [
        ("trained for", "1.0 min on cpu"),
        ("continued from", "b (sha256 2)"),
        ("lineage", "b (sha256 2): training not recorded, commit 0123456"),
        ("lineage", "a (sha256 1): 2.0 min on NVIDIA H200, 5 steps"),
        ("in all", "3.0 min in 3 runs"),
    ]
    assert told[-2:] == [("validation: reward_ratio", "2"), ("validation: held_back.to_start", "-0.5 ± 0.125%")]
    assert re.search(r"^c .* 3\.0 min +cost -0\.5 ± 0\.125% to start$", nds("models").stdout, re.MULTILINE)


def test_shipped_models_have_a_lineage(nds):
    """From random weights on: 52 minutes of one GPU for `all`, as in docs/training.md."""
    told = nds("models", "all").stdout
    assert told.count("\nlineage") == 4 and "51.7 min in 5 runs" in told and "18.3 min on NVIDIA H200" in told


def test_refusals(nds, shipped, tmp_path):
    save_tiny(shipped, "known")
    assert refusal(nds, "models", "x").endswith("nor the name of a model (those shipped are known)")
    file = save_tiny(tmp_path)
    file.with_suffix(".json").write_text("{")
    assert refusal(nds, "models", file).startswith(f"{tmp_path}/tiny.json: is not JSON (")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 s"), (59.4, "59 s"), (60, "1.0 min"), (3600, "1.0 h"), (86400, "24.0 h"), (172800, "2.0 days")],
)
def test_duration(seconds, text):
    assert duration(seconds) == text


def test_solve_with_a_path(nds, data, tmp_path, quick):
    file, out = save_tiny(tmp_path), tmp_path / "a.json"
    answer = nds("solve", data / "small/toy.vrp", "--model", file, *quick, "--json", out)
    assert "solver nds (auto), ruin policy, model tiny, device cpu (auto), 1 chain on 1 thread" in answer.stdout
    assert re.search(r"^model +tiny, loaded in \d+\.\d\d s before the search$", answer.stdout, re.MULTILINE)
    settings = json.loads(out.read_text())["settings"]
    assert (settings["solver"], settings["ruin"]) == ("nds", "policy")
    assert settings["model"]["name"] == "tiny"
    assert settings["model"]["sha256"] == json.loads(file.with_suffix(".json").read_text())["sha256"]
    assert settings["model"]["load_seconds"] > 0
    assert "warning" not in answer.stderr


def test_solve_with_a_shipped_one(nds, shipped, data, quick):
    save_tiny(shipped, "near", sizes=(10,))
    save_tiny(shipped, "far", sizes=(1000,))
    toy = data / "small/toy.vrp"
    assert "ruin policy, model near (auto), device" in nds("solve", toy, "--ruin", "policy", *quick).stdout
    assert "ruin policy, model far, device" in nds("solve", toy, "--model", "far", *quick).stdout
    answer = nds("solve", toy, "--ruin", "policy", "--preset", "paper", "--iterations", 1)
    assert "solver nds (auto), ruin policy, model near (auto), device cpu (auto), 8 chains" in answer.stdout


def test_set_loads_its_model_once_and_warns_once(nds, data, tmp_path, monkeypatch, quick):
    file, load = save_tiny(tmp_path), models.load
    loaded = []

    def watched(*args):
        loaded.append(args)
        return load(*args)

    monkeypatch.setattr(models, "load", watched)
    answer = nds("solve", data / "sets/pcvrp100.npz", "--model", file, *quick)
    assert "model tiny" in answer.stdout
    assert len(loaded) == 1
    warned = [line for line in answer.stderr.splitlines() if "warning" in line]  # progress may be told as well
    assert warned == ["nds: warning: the model tiny was trained on CVRP, and this is a PCVRP"]


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("--model", "m", "--ruin", "related"), "a model is for the ruin 'policy', not 'related'"),
        (("--model", "m", "--solver", "sisr"), "the ruin 'policy' is for the solver 'nds', not 'sisr'"),
        (("--model", "m"), "m: no such file or folder, nor the name of a model (none is shipped with this version)"),
        (("--ruin", "policy"), "ruin 'policy': no model for CVRP is shipped with this version; "
         "give one (--model NAME|PATH, or model= in Python)"),
    ],
)  # fmt: skip
def test_contradictions(nds, shipped, data, args, message):
    assert refusal(nds, "solve", data / "small/toy.vrp", *args) == message


def test_save_in_half_precision(nds, tmp_path):
    """What is shipped: half the size, the same card, weights to the precision of float16."""
    file = save_tiny(tmp_path, "one")
    assert facts(nds("models", file, "--save", tmp_path / "two"))["stored as"] == "float16"
    (before, card), (after, again) = load_model(file), load_model(tmp_path / "two.json")
    assert again == card
    for name, weight in after.state_dict().items():
        assert torch.equal(weight, before.state_dict()[name].half().float()), name
    assert refusal(nds, "models", "--save", tmp_path / "two") == "--save needs the model to be saved, by name or path"


@pytest.mark.parametrize("name", ["", ".", "/", "..", "x" * 300, "no/such", "own.safetensors", "own"])
def test_names_that_a_model_cannot_be_saved_under(nds, monkeypatch, tmp_path, name):
    save_tiny(tmp_path, "own")
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.iterdir())
    answer = nds("models", "own.json", "--save", name, code=2)
    assert answer.stderr.startswith("nds: ") and answer.stderr.count("\n") == 1
    assert sorted(tmp_path.iterdir()) == before
