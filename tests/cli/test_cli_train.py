"""`nds train`: a tiny run through the command."""

from __future__ import annotations

import json
import re
import signal
import time
from pathlib import Path
from typing import Any

import pytest
import torch

from tiny_models import save_tiny

CONFIG = """
[network]
width = 8
heads = 2
feed_forward = 8
layers_before = 1
layers_after = 1
seed_bits = 4
seed_width = 4

[train]
seed = 3
batch = 4
instances = 8
iterations = 2
rollouts = 4
removals = 3
orders = 1
start_rounds = 2
improvement_steps = 1
warm_up_rollouts = 4

[validation]
every = 1
states = 2
search_instances = 1
search_iterations = 1

[[data]]
problem = "vrptw"
customers = [8]
"""


@pytest.fixture(autouse=True)
def same_threads() -> Any:
    """Runs set the threads of torch: they are given back."""
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.fixture
def run_file(tmp_path: Path) -> Path:
    file = tmp_path / "tiny.toml"
    file.write_text(CONFIG)
    return file


@pytest.fixture
def refused(nds: Any, tmp_path: Path) -> Any:
    """The one line a refused command line gives; it leaves nothing behind."""

    def run(*args: Any) -> str:
        before = sorted(tmp_path.rglob("*"))
        answer = nds("train", *args, code=2)
        assert answer.stdout == ""
        assert answer.stderr.startswith("nds: ") and answer.stderr.count("\n") == 1
        assert sorted(tmp_path.rglob("*")) == before
        return answer.stderr.removeprefix("nds: ").rstrip("\n")  # type: ignore[no-any-return]

    return run


def rows(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()]


@pytest.mark.slow
def test_a_run(nds: Any, run_file: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    answer = nds("train", run_file, "--out", out, "--threads", 1, "--device", "cpu")
    checkpoint = out / "checkpoint-000000008"
    assert checkpoint.is_dir()
    said = " ".join(answer.stdout.split())
    assert "related removal" in said and "stopped by all instances seen" in said
    assert str(checkpoint) in answer.stdout.replace("\n", "")
    told = answer.stderr
    assert "network on cpu, engine cpu, 1 thread" in told
    assert told.count("vrptw8") >= 3 and told.count("(search ") == 3, "three validations, a batch now and then"
    assert [row["kind"] for row in rows(out)] == [
        "run",
        "validation",
        "batch",
        "validation",
        "batch",
        "validation",
        "end",
    ]


@pytest.mark.slow
def test_quiet(nds: Any, run_file: Path, tmp_path: Path) -> None:
    answer = nds("train", run_file, "--out", tmp_path / "out", "--threads", 1, "-q")
    assert answer.stdout == f"{tmp_path}/out/checkpoint-000000008\n"
    assert answer.stderr == ""


@pytest.mark.slow
def test_folder_by_default(nds: Any, run_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert nds("train", "tiny.toml", "--threads", 1, "-q").stdout == "out/tiny/checkpoint-000000008\n"
    assert nds("train", "tiny.toml", "--threads", 1, "-q", code=2).stderr == (
        "nds: out/tiny holds a run already: go on with --resume out/tiny, or choose another --out\n"
    )


@pytest.mark.slow
def test_resume(nds: Any, run_file: Path, tmp_path: Path) -> None:
    """A run that ran out of time goes on where it was, and ends as one in one go."""
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    nds("train", run_file, "--out", whole, "--threads", 1, "-q")
    answer = nds("train", run_file, "--out", parts, "--threads", 1, "--time", 0.01)
    assert "time limit" in answer.stdout
    assert [path.name for path in sorted(parts.glob("checkpoint-*"))] == ["checkpoint-000000004"]
    answer = nds("train", run_file, "--resume", parts, "--threads", 1, "-q")
    assert answer.stdout == f"{parts}/checkpoint-000000008\n" and answer.stderr == ""
    nds("train", run_file, "--resume", parts, "--out", parts, "--time", 0.01, "--threads", 1, "-q")
    for name in ("training.safetensors", "model.safetensors"):
        first, second = (folder / "checkpoint-000000008" / name for folder in (whole, parts))
        assert first.read_bytes() == second.read_bytes()


@pytest.mark.slow
def test_init(nds: Any, run_file: Path, tmp_path: Path) -> None:
    first = nds("train", run_file, "--out", tmp_path / "first", "--threads", 1, "-q").stdout.strip()
    run_file.write_text(CONFIG.replace("vrptw", "cvrp").replace("[8]", "[12]"))
    second = nds("train", run_file, "--out", tmp_path / "second", "--init", first, "--threads", 1, "-q").stdout.strip()
    origin = rows(tmp_path / "second")[0]["init"]
    assert origin.startswith("checkpoint-000000008 (sha256 ") and "/" not in origin
    card = json.loads((Path(second) / "model.json").read_text())
    assert (card["init"], card["problems"], card["sizes"]) == (origin, ["cvrp"], [12])


TINY = tuple(
    part
    for change in ("train.instances=4", "train.batch=4", "train.iterations=1", "train.rollouts=4", "train.removals=3",
                   "train.orders=1", "validation.states=1", "validation.search_instances=2",
                   "validation.search_iterations=1", "validation.search_chains=1")
    for part in ("--set", change)
)  # fmt: skip


@pytest.mark.slow
def test_fine_tuning(nds: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a configuration: what is gained is printed, logged and kept with the model; the run can be resumed."""
    monkeypatch.chdir(tmp_path)
    save_tiny(tmp_path, "base", device="cpu")
    nds("generate", "vrptw", "-n", 8, "--count", 5, "--out", "mine.npz")
    answer = nds("train", "--from", "base.json", "--instances", "mine.npz", "--threads", 1, "--device", "cpu", *TINY)
    told = {what: value.strip() for what, value in (line.split("  ", 1) for line in answer.stdout.splitlines())}
    assert told["held back"] == "2 instances, mean cost of short searches with one seed"
    gain = rows(tmp_path / "out/mine")[-2]
    assert gain["kind"] == "gain"
    figures = gain["held_back"]
    assert told["start"] == f"{figures['start_cost']:.3f} ± {figures['start_cost_error']:.3f}"
    assert told["string removal"].startswith(f"{figures['string_cost']:.3f} ± {figures['string_cost_error']:.3f}; the ")
    assert f"{figures['to_start']:+.2f} ± {figures['to_start_error']:.2f}% to the start" in answer.stdout
    assert told["checkpoint"] == "out/mine/checkpoint-000000004"
    shown = nds("models", "out/mine").stdout
    assert "on cpu" in shown and re.search(r"continued from +base \(sha256 ", shown)
    assert re.search(r"lineage +base \(sha256 [0-9a-f]{12}\): 1\.5 min on cpu, 250 steps, commit 0123456", shown)
    assert re.search(r"validation: held_back\.to_start +\S+ ± \S+%", shown) and "start_costs" not in shown
    answer = nds("train", "--resume", "out/mine", "--set", "train.instances=8", "--threads", 1, "-q")
    assert "the configuration differs" in answer.stderr
    assert answer.stdout == "out/mine/checkpoint-000000008\n"


def test_fine_tuning_is_refused(refused: Any, run_file: Path, tmp_path: Path) -> None:
    save_tiny(tmp_path, "base")
    file = Path(__file__).parents[1] / "data/small/toy.vrp"
    needed = "training on your own needs 4 or more, some of which are held back"
    assert refused("--from", tmp_path / "base.json", "--instances", file) == f"{file}: has 1 instance, and {needed}"
    assert refused("--instances", file) == "--instances needs a model to start from, such as --from all"
    assert refused(run_file, "--instances", file).startswith(f"--instances is for a run without {run_file}, which may")
    assert refused("--resume", tmp_path, "--instances", file).startswith("--resume goes on with the instances of the")
    assert refused() == "give a configuration, or your own instances: nds train --from all --instances FILE|DIR"


def test_a_model_to_solve_with(nds: Any, run_file: Path, tmp_path: Path, data: Path) -> None:
    checkpoint = nds("train", run_file, "--out", tmp_path / "out", "--threads", 1, "-q").stdout.strip()
    file = tmp_path / "toy.sol"
    nds("solve", data / "small/toy.vrp", "--model", checkpoint, "--iterations", 2, "--chains", 2, "--out", file)
    assert file.read_text().startswith("Route #1:")


@pytest.mark.slow
@pytest.mark.parametrize("quiet", [True, False])
def test_interrupted(start_nds: Any, tmp_path: Path, quiet: bool) -> None:
    """Ctrl-C or SIGTERM: the batch is finished, a checkpoint written, and the exit code tells."""
    file, out = tmp_path / "long.toml", tmp_path / "out"
    file.write_text(CONFIG.replace("instances = 8\n", "instances = 4000000\n").replace("every = 1", "every = 0"))
    child = start_nds("train", file, "--out", out, "--threads", 1, *(["-q"] if quiet else []))
    deadline = time.monotonic() + 60
    while not ((out / "log.jsonl").exists() and '"kind": "batch"' in (out / "log.jsonl").read_text()):
        assert time.monotonic() < deadline and child.poll() is None
        time.sleep(0.05)
    child.send_signal(signal.SIGTERM if quiet else signal.SIGINT)
    stdout, stderr = child.communicate(timeout=60)
    (checkpoint,) = out.glob("checkpoint-*")
    assert checkpoint.name in stdout.replace("\n", "")
    assert "Traceback" not in stderr
    assert rows(out)[-1]["stopped"] == "interrupted"
    assert int(checkpoint.name[-9:]) == rows(out)[-1]["instances"]
    assert child.returncode == (143 if quiet else 130)


# --- errors ----------------------------------------------------------------------------------------------


def test_refused(refused: Any, run_file: Path, tmp_path: Path, nds: Any) -> None:
    no = tmp_path / "no"
    assert refused(tmp_path / "no.toml") == f"{tmp_path}/no.toml: no such file"
    assert refused(run_file, "--resume", no) == f"{no}: no such folder"
    assert refused(run_file, "--resume", no, "--out", tmp_path) == f"--resume goes on in {no}: --out is for a new run"
    assert refused(run_file, "--out", no, "--device", "tpu") == "unknown device 'tpu': one of auto, cpu, cuda"
    for seconds in ("0", "-1", "nan", "inf"):
        assert refused(run_file, "--out", no, "--time", seconds) == f"--time: {seconds} is not a number of seconds"
    assert "no.safetensors" in refused(run_file, "--out", no, "--init", no.with_suffix(".safetensors"))
    assert "nobody" in refused(run_file, "--out", no, "--init", "nobody")
    refused()
    refused(run_file, "--threads", 0)
    refused(run_file, "--bogus")
    run_file.write_text(CONFIG.replace("width = 8", "wide = 8"))
    message = refused(run_file, "--out", no)
    assert message.startswith(f"{run_file}: network: unknown field 'wide' (known: width, heads, feed_forward, ")
    run_file.write_text(CONFIG.replace("width = 8", "width = 9"))
    assert refused(run_file, "--out", no) == f"{run_file}: network: width must be a multiple of heads, got 9 and 2"


def test_another_network(refused: Any, nds: Any, run_file: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    checkpoint = nds("train", run_file, "--out", out, "--threads", 1, "-q").stdout.strip()
    run_file.write_text(CONFIG.replace("width = 8", "width = 16", 1))
    reason = f"{checkpoint}: its network is another one: width is 8 there and 16 here"
    assert refused(run_file, "--resume", out) == reason
    assert refused(run_file, "--out", tmp_path / "new", "--init", checkpoint) == reason


def test_a_folder_that_cannot_be_written(refused: Any, run_file: Path, tmp_path: Path) -> None:
    """Said before training, not after it."""
    (tmp_path / "file").write_text("")
    assert str(tmp_path / "file") in refused(run_file, "--out", tmp_path / "file", "--threads", 1)
    assert str(tmp_path / "file") in refused(run_file, "--out", tmp_path / "file/run", "--threads", 1)


def test_full_disk_under_the_log(refused: Any, run_file: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    out.mkdir()
    (out / "log.jsonl").symlink_to("/dev/full")
    assert refused(run_file, "--out", out) == f"{out}/log.jsonl: cannot be written (No space left on device)"


def test_full_disk_under_a_checkpoint(nds: Any, run_file: Path, tmp_path: Path, monkeypatch: Any) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("ndsvrp.io.files.os.fsync", full)
    out = tmp_path / "run"
    answer = nds("train", run_file, "--out", out, "--threads", 1, code=2)
    assert answer.stderr.splitlines()[-1].endswith("cannot be written (No space left on device)")
    assert [path.name for path in out.iterdir()] == ["log.jsonl"]
