"""Models as files: what comes back is what was written, and every broken pair is refused with its reason."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.torch
import torch

from ndsvrp import models
from ndsvrp.constraints import FLEET, TIME_WINDOWS, Input
from ndsvrp.errors import CheckpointError, NdsError
from ndsvrp.generate import generate
from ndsvrp.policy import Network, NetworkConfig
from ndsvrp.policy.inputs import static_inputs
from ndsvrp.policy.model_file import FIRST_INPUTS, Ancestor, load_model, read_model_file, save_model
from ndsvrp.search.plane import plane
from tiny_models import TINY, save_tiny, tiny_card, tiny_network


def bits(weights: dict[str, torch.Tensor]) -> dict[str, bytes]:
    return {name: tensor.numpy().tobytes() for name, tensor in weights.items()}


def edit(file: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    """Change the JSON beside a model."""
    table = json.loads(file.with_suffix(".json").read_text())
    change(table)
    file.with_suffix(".json").write_text(json.dumps(table))


def put(file: Path, weights: dict[str, torch.Tensor]) -> None:
    """Other weights, with a digest that fits them."""
    data = safetensors.torch.save(weights)
    file.write_bytes(data)
    edit(file, lambda table: table.update(sha256=hashlib.sha256(data).hexdigest()))


def refusal(file: Path) -> str:
    with pytest.raises(CheckpointError) as caught:
        load_model(file)
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_round_trip_is_bitwise(tmp_path: Path) -> None:
    file = save_tiny(tmp_path)
    network, card = load_model(file)
    assert bits(network.state_dict()) == bits(tiny_network().state_dict())
    assert card == tiny_card()
    assert network.config == TINY
    assert not network.training
    assert sorted(path.name for path in tmp_path.iterdir()) == ["tiny.json", "tiny.safetensors"]
    assert bits(load_model(file.with_suffix(".json"))[0].state_dict()) == bits(network.state_dict())


def test_json_says_what_the_weights_are(tmp_path: Path) -> None:
    file = save_tiny(tmp_path, problems=("cvrp", "vrptw"))
    told = json.loads(file.with_suffix(".json").read_text())
    assert (told["format"], told["dtype"]) == (1, "float32")
    assert told["sha256"] == hashlib.sha256(file.read_bytes()).hexdigest()
    assert told["network"]["width"] == 8 and told["network"]["beta"] == 1.5
    assert (told["problems"], told["sizes"]) == (["cvrp", "vrptw"], [20, 50])
    assert (told["instances"], told["steps"], told["seconds"]) == (640, 250, 90.5)
    assert told["training"]["train"]["batch"] == 64
    assert told["validation"] == {"reward_ratio": 1.75, "sets": {"cvrp20": {"cost": 6.125}}}
    found = read_model_file(file)
    assert (found.name, found.weights, found.sha256) == ("tiny", file, told["sha256"])


def test_half_is_widened(tmp_path: Path) -> None:
    file = save_tiny(tmp_path, half=True)
    assert read_model_file(file).dtype == "float16"
    stored = safetensors.torch.load_file(file)
    assert {tensor.dtype for tensor in stored.values()} == {torch.float16}
    network, _ = load_model(file)
    for name, tensor in network.state_dict().items():
        assert tensor.dtype == torch.float32
        assert torch.equal(tensor, tiny_network().state_dict()[name].half().float())
    assert network.state_dict()["beta"].item() == 1.5  # short of digits, as it is: nothing is lost


def test_loading_leaves_random_numbers_alone(tmp_path: Path) -> None:
    file = save_tiny(tmp_path)
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    load_model(file)
    save_tiny(tmp_path, "other")
    assert torch.equal(torch.rand(3), expected)


def test_card_of_today() -> None:
    values = {f.name: getattr(tiny_card(), f.name) for f in dataclasses.fields(tiny_card())}
    del values["created"], values["versions"]
    card = type(tiny_card())(**values)
    assert card.created.endswith("+00:00")
    assert card.versions["torch"] == torch.__version__


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"problems": ()}, "problems must be a list that is not empty, got ()"),
        ({"problems": ("tsp",)}, "problems: unknown 'tsp' (known: cvrp, vrptw, pcvrp, pcvrptw)"),
        ({"inputs": ("x", "charm")}, f"inputs: unknown 'charm' (known: {', '.join(FIRST_INPUTS)})"),
        ({"sizes": (0,)}, "sizes must be at least 1, got 0"),
        ({"sizes": (2.5,)}, "sizes must be a whole number, got 2.5"),
        ({"instances": -1}, "instances must be between 0 and 4611686018427387904, got -1"),
        ({"seconds": "1"}, "seconds must be a number, got '1'"),
        ({"seconds": float("nan")}, "seconds must be between 0 and 1e+18, got nan"),
        ({"commit": None}, "commit must be text, got None"),
        ({"validation": [1]}, "validation must be a table, got [1]"),
        ({"device": 3}, "device must be text, got 3"),
        ({"lineage": "all"}, "lineage must be a list, got 'all'"),
        ({"lineage": ["all"]}, "lineage must be a list of tables, got 'all'"),
        ({"lineage": [{"model": "all"}]}, "lineage: device is missing"),
        (
            {"lineage": [vars(Ancestor(model="all")) | {"steps": -1}]},
            "steps must be between 0 and 4611686018427387904, got -1",
        ),
    ],
)
def test_card_is_checked(change: dict[str, Any], message: str) -> None:
    with pytest.raises(NdsError) as caught:
        tiny_card(**change)
    assert str(caught.value) == message


# --- inputs by name -------------------------------------------------------------------------------


def log_probabilities(network: Network) -> torch.Tensor:
    """Of given rollouts on a problem with windows and prizes."""
    problems = generate("pcvrptw", 20, count=2)
    inputs = static_inputs(problems, np.stack([plane(problem) for problem in problems]), "cpu")
    removed = torch.arange(1, 13).view(2, 2, 3)
    seeds = torch.ones(2, 2, network.config.seed_bits)
    with torch.no_grad():
        return network(inputs, removed, seeds)


def test_a_new_input_has_zero_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before, card = load_model(models.find("all"))
    assert card.inputs == FIRST_INPUTS and not card.untrained_inputs
    expected = log_probabilities(before)
    first, *others = TIME_WINDOWS.inputs
    monkeypatch.setattr(TIME_WINDOWS, "inputs", (first, Input("noise", lambda xp, data: 1.0 + data.demand), *others))
    after, card = load_model(models.find("all"))
    assert card.untrained_inputs == ("noise",)
    assert after.embed_depot.weight.shape[1] == 11 and not after.embed_depot.weight[:, 4].any()
    torch.testing.assert_close(log_probabilities(after), expected, rtol=1e-6, atol=1e-5)
    assert models.load("all", "cpu").record()["untrained_inputs"] == ("noise",)
    file = tmp_path / "saved.safetensors"  # is saved as it was, for the same inputs
    save_model(file, after.state_dict(), card, half=True)
    assert read_model_file(file).sha256 == read_model_file(models.find("all")).sha256


def test_an_unknown_input_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(FLEET, "inputs", (Input("noise", lambda xp, data: data.demand),))
        file = save_tiny(tmp_path)
        assert load_model(file)[1].inputs == (*FIRST_INPUTS, "noise")
    assert refusal(file) == f"{tmp_path}/tiny.json: inputs: unknown 'noise' (known: {', '.join(FIRST_INPUTS)})"


def test_inputs_and_columns_agree(tmp_path: Path) -> None:
    file = save_tiny(tmp_path)
    edit(file, lambda table: table.update(inputs=["x", "y", "demand"]))
    assert refusal(file) == f"{file}: weight 'embed_depot.weight' has 10 columns for 3 inputs"
    narrow = save_tiny(tmp_path, "narrow", inputs=("demand", "y", "x"))
    assert safetensors.torch.load_file(narrow)["embed_depot.weight"].shape[1] == 3
    columns = load_model(narrow)[0].embed_depot.weight
    assert torch.equal(columns[:, :3], tiny_network().embed_depot.weight[:, :3]) and not columns[:, 3:].any()


# --- what is not written --------------------------------------------------------------------------


def test_weights_that_are_no_model_are_not_written(tmp_path: Path) -> None:
    weights = tiny_network().state_dict()
    file = tmp_path / "a.safetensors"
    bad = {**weights, "start": torch.full((8,), float("nan"))}
    with pytest.raises(CheckpointError, match=r"a\.safetensors: weight 'start' is not finite"):
        save_model(file, bad, tiny_card())
    with pytest.raises(CheckpointError, match="weight 'start' is not finite"):  # beyond 65504
        save_model(file, {**weights, "start": torch.full((8,), 1e5)}, tiny_card(), half=True)
    with pytest.raises(CheckpointError, match="is not one of the network's"):
        save_model(file, {**weights, "end": torch.zeros(8)}, tiny_card())
    with pytest.raises(CheckpointError, match="a model is written as"):
        save_model(tmp_path / "model-0.5", weights, tiny_card())
    assert list(tmp_path.iterdir()) == []


# --- what is refused ------------------------------------------------------------------------------


def test_missing_files(tmp_path: Path) -> None:
    file = save_tiny(tmp_path)
    assert refusal(tmp_path / "no.safetensors") == f"{tmp_path}/no.json: no such file"
    kept = file.read_bytes()
    file.unlink()
    assert refusal(file) == f"{file}: no such file"
    file.write_bytes(kept)
    file.with_suffix(".json").unlink()
    assert refusal(file) == f"{file}: there is no tiny.json beside it, which says what the weights are"


def test_folders_without_a_model(tmp_path: Path) -> None:
    assert refusal(tmp_path) == f"{tmp_path}: there is no whole checkpoint in this folder"


@pytest.mark.parametrize("name", ["a.pt", "a.pth", "a.ckpt", "a.pkl"])
def test_pickles_by_name(tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    torch.save(tiny_network().state_dict(), file)
    assert refusal(file) == f"{file}: is a pickle by its name, which is never loaded; models are .safetensors files"


def test_pickles_in_disguise(tmp_path: Path) -> None:
    """They would create a file when unpickled."""
    file, trap = save_tiny(tmp_path), tmp_path / "trap"

    class Trap:
        def __reduce__(self) -> tuple[Any, ...]:
            return (Path.touch, (trap,))

    expected = f"{file}: is a pickle or an archive of one, which is never loaded"
    file.write_bytes(pickle.dumps(Trap()))
    assert refusal(file) == expected
    torch.save(Trap(), file)
    assert refusal(file) == expected
    assert not trap.exists()


def test_other_files(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_text("weights")
    assert refusal(file) == f"{file}: is not a model: NAME.safetensors, NAME.json or the folder of a checkpoint"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is not JSON (Expecting property name enclosed in double quotes: line 1 column 2 (char 1))"),
        ("", "is empty"),
        ("\0", "is not a text file"),
        ("[1]", "is not a table of fields"),
        ("{}", "format must be a whole number from 1, got None"),
        ('{"format": "1"}', "format must be a whole number from 1, got '1'"),
        ('{"format": true}', "format must be a whole number from 1, got True"),
        ('{"format": 2}', "format 2 is newer than this program knows (1)"),
        ('{"format": 1}', "sha256 is missing"),
        ("[" * 100_000, "is not JSON ("),
    ],
    ids=lambda value: value[:12],
)
def test_broken_json(tmp_path: Path, text: str, message: str) -> None:
    file = save_tiny(tmp_path)
    file.with_suffix(".json").write_text(text)
    assert refusal(file).startswith(f"{tmp_path}/tiny.json: {message}")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"colour": "red"}, "unknown field 'colour' (known: format, sha256, dtype, network, "),
        ({"dtype": "int8"}, "dtype must be one of float32, float16, got 'int8'"),
        ({"dtype": ["float32"]}, "dtype must be one of float32, float16, got ['float32']"),
        ({"sha256": 7}, "sha256 must be text, got 7"),
        ({"problems": "cvrp"}, "problems must be a list that is not empty, got 'cvrp'"),
        ({"problems": [["cvrp"]]}, "problems: unknown '['cvrp']' (known: "),
        ({"sizes": ["20"]}, "sizes must be a whole number, got '20'"),
        ({"steps": 1.5}, "steps must be a whole number, got 1.5"),
        ({"created": 2026}, "created must be text, got 2026"),
        ({"training": None}, "training must be a table, got None"),
        ({"network": "large"}, "network must be a table"),
        ({"network": {}}, "network: width is missing"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_bad_fields(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    file = save_tiny(tmp_path)
    edit(file, lambda table: table.update(change))
    assert refusal(file).startswith(f"{tmp_path}/tiny.json: {message}")


LATER = ("inputs", "device", "lineage")  # that models of the first version lack


@pytest.mark.parametrize("name", [f.name for f in dataclasses.fields(tiny_card()) if f.name not in LATER])
def test_missing_fields(tmp_path: Path, name: str) -> None:
    file = save_tiny(tmp_path)
    edit(file, lambda table: table.pop(name))
    assert refusal(file) == f"{tmp_path}/tiny.json: {name} is missing"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"depth": 3}, "network: unknown field 'depth' (known: width, heads, "),
        ({"width": 9}, "network: width must be a multiple of heads, got 9 and 2"),
        ({"width": "8"}, "network: width must be a whole number, got '8'"),
        ({"width": 10**9}, "network: width must be between 1 and 4096, got 1000000000"),
        ({"distance_term": "yes"}, "network: distance_term must be True or False, got 'yes'"),
        ({"tour_aggregate": "max"}, "network: tour_aggregate must be one of mean, sum, got 'max'"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_bad_networks(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    file = save_tiny(tmp_path)
    edit(file, lambda table: table["network"].update(change))
    assert refusal(file).startswith(f"{tmp_path}/tiny.json: {message}")


@pytest.mark.parametrize("share", [0.0, 0.001, 0.3, 0.9, 0.999])
def test_truncated_weights(tmp_path: Path, share: float) -> None:
    file = save_tiny(tmp_path)
    data = file.read_bytes()
    file.write_bytes(data[: int(share * len(data))])
    reason = "is empty" if share == 0 else "is not a whole safetensors file ("
    assert refusal(file).startswith(f"{file}: {reason}")


def test_changed_weights(tmp_path: Path) -> None:
    file = save_tiny(tmp_path)
    data = bytearray(file.read_bytes())
    before = hashlib.sha256(data).hexdigest()
    data[-1] ^= 1
    file.write_bytes(data)
    after = hashlib.sha256(data).hexdigest()
    assert refusal(file) == f"{file}: its sha256 is {after[:12]}…, but {before[:12]}… was written down for it"


def test_weights_of_another_file(tmp_path: Path) -> None:
    file, other = save_tiny(tmp_path), save_tiny(tmp_path, "other", seed=1)
    file.write_bytes(other.read_bytes())
    assert "was written down for it" in refusal(file)


def test_weights_that_do_not_fit(tmp_path: Path) -> None:
    file = save_tiny(tmp_path)
    weights = dict(tiny_network().state_dict())
    put(file, {name: tensor for name, tensor in weights.items() if name != "embed_depot.bias"})
    assert refusal(file) == f"{file}: weight 'embed_depot.bias' is missing"
    put(file, {**weights, "extra": torch.zeros(1)})
    assert refusal(file) == f"{file}: weight 'extra' is not one of the network's"
    put(file, {**weights, "start": torch.zeros(9)})
    assert refusal(file) == f"{file}: weight 'start' has shape [9], the network's has [8]"
    put(file, {**weights, "start": torch.zeros(8, dtype=torch.float64)})
    assert refusal(file) == f"{file}: weight 'start' is float64, not float32"
    for number in ("nan", "inf"):
        put(file, {**weights, "start": torch.tensor([0.0] * 7 + [float(number)])})
        assert refusal(file) == f"{file}: weight 'start' is not finite"


def test_weights_of_another_network(tmp_path: Path) -> None:
    file = save_tiny(tmp_path)
    edit(file, lambda table: table["network"].update(distance_term=False))
    assert refusal(file) == f"{file}: weight 'beta' is not one of the network's"
    edit(file, lambda table: table["network"].update(distance_term=True, layers_after=2))
    assert refusal(file) == f"{file}: weight 'after.1.project.weight' is missing"


def test_a_large_claim_takes_no_memory(tmp_path: Path) -> None:
    """A JSON may claim a network of gigabytes; the file is refused before one is made."""
    file = save_tiny(tmp_path)
    large = {"width": 4096, "feed_forward": 16384, "layers_before": 1, "layers_after": 1}
    edit(file, lambda table: table["network"].update(large))
    assert NetworkConfig(**large).width == 4096
    assert refusal(file) == f"{file}: weight 'after.0.combine.bias' has shape [8], the network's has [4096]"


def test_text_that_no_file_can_state_is_escaped(tmp_path: Path) -> None:
    file = save_tiny(tmp_path, commit="\ud800é")
    assert read_model_file(file).card.commit == "\ud800é"
