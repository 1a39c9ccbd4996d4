"""Faults around the command: full devices, signals, strange names and terminals. Nothing is lost."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from ndsvrp.cli.progress import PlainLines
from ndsvrp.cli.streams import Unfailing

DATA = Path(__file__).parents[1] / "data"
TOY = DATA / "small/toy.vrp"


def run(*args, **options):
    """Run a command line in a new process."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))} | options.pop("env", {})
    return subprocess.run([sys.executable, "-m", "ndsvrp", *args], env=environment, timeout=60, **options)


# --- standard output and error ---------------------------------------------------------------------------


@pytest.mark.slow
def test_full_terminal_does_not_cost_the_solution(tmp_path):
    out, report = tmp_path / "a.sol", tmp_path / "a.json"
    with Path("/dev/full").open("wb") as full:
        answer = run("solve", TOY, "--iterations", "3", "--out", out, "--json", report, stdout=full, stderr=full)
    assert answer.returncode == 0
    assert out.read_text().endswith("Cost: 32\n")
    assert json.loads(report.read_text())["cost"] == 32


def test_closed_streams_do_not_cost_the_solution(tmp_path):
    out = tmp_path / "a.sol"
    closed = f'"{sys.executable}" -m ndsvrp solve "{TOY}" --iterations 3 --out "{out}" >&- 2>&-'
    assert subprocess.run(["sh", "-c", closed], timeout=60, check=False).returncode == 0
    assert out.read_text().endswith("Cost: 32\n")


def test_error_behind_a_full_terminal_keeps_its_exit_code():
    with Path("/dev/full").open("wb") as full:
        assert run("solve", "no.vrp", stdout=full, stderr=full).returncode == 2


def test_what_cannot_be_written_is_dropped_for_good(tmp_path):
    full = Path("/dev/full").open("w")  # noqa: SIM115
    stream = Unfailing(full)
    assert stream.write("lost\n") == 5
    full.close()  # would raise if the text were still there
    assert stream.write("lost") == 4
    kept = (tmp_path / "a").open("w", encoding="ascii")
    print("Ö…", file=Unfailing(kept))
    kept.close()
    assert (tmp_path / "a").read_text() == "\\xd6\\u2026\n"


def test_ascii_terminal(tmp_path):
    file = tmp_path / "straße.vrp"
    file.write_text(TOY.read_text().replace("NAME : toy", "NAME : straße"), encoding="utf-8")
    ascii_only = {"PYTHONIOENCODING": "ascii", "LC_ALL": "C", "PYTHONUTF8": "1"}
    answer = run("solve", file, "--iterations", "1", env=ascii_only, capture_output=True)
    assert answer.returncode == 0
    assert answer.stdout.startswith(b"stra\\xdfe: CVRP")


def test_control_characters_never_reach_the_terminal(nds, tmp_path):
    evil = "\x1b[2J\x07\u202e\x9b31m"
    file = tmp_path / "a.vrp"
    file.write_text(TOY.read_text().replace("NAME : toy", f"NAME : {evil}"), encoding="utf-8")
    strange = tmp_path / f"{evil}.vrp"
    strange.write_text(TOY.read_text())
    solution = tmp_path / f"{evil}.sol"
    row = {"set": evil, "instance": evil, "data": "x", "solver": evil, "solver_version": evil, "seed": 1, "budget": 1,
           "threads": 1, "hardware": {"cpu": evil}, "error": evil}  # fmt: skip
    rows = tmp_path / f"{evil}.jsonl"
    rows.write_text(json.dumps(row) + "\n")
    answers = [
        nds("info", file), nds("solve", file, "--iterations", 1, "--out", solution), nds("check", file, solution),
        nds("info", strange), nds("check", strange, solution), nds("bench", "report", rows),
        nds("solve", tmp_path / f"no{evil}.vrp", code=2), nds("train", tmp_path / f"no{evil}.toml", code=2),
        nds("solve", file, "--model", evil, code=2), nds("solve", file, "--time", evil, code=2),
        nds("models", f"{evil}.json", code=2), nds("solve", file, "--set", evil, code=2), nds(evil, code=2),
    ]  # fmt: skip
    for answer in answers:
        shown = answer.stdout + answer.stderr
        assert not [c for c in shown.replace("\n", "") if not c.isprintable()], shown
    assert "\\x1b[2J\\x07\\u202e\\x9b31m" in answers[0].stdout


# --- signals ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signal_ends_a_search_with_its_best_solution(nds, monkeypatch, tmp_path, number, code):
    handlers = [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)]

    def interrupt(self, progress):
        if progress.iteration == 3:
            os.kill(os.getpid(), number)

    monkeypatch.setattr(PlainLines, "__call__", interrupt)
    answer = nds("solve", TOY, "--time", 60, "--out", tmp_path / "a.sol", "--json", tmp_path / "a.json", code=code)
    assert "stopped by       interrupted" in answer.stdout
    assert (tmp_path / "a.sol").read_text().endswith("Cost: 32\n")
    assert json.loads((tmp_path / "a.json").read_text())["stopped"] == "interrupted"
    answer = nds("solve", DATA / "sets/cvrp100.npz", "--time", 60, "--out", tmp_path / "set", code=code)
    assert sorted(path.name for path in (tmp_path / "set").iterdir()) == ["0000.sol", "summary.csv"]
    assert [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)] == handlers


# --- files -----------------------------------------------------------------------------------------------


def test_names_that_are_not_utf8_are_refused_before_the_search(nds, tmp_path):
    name = os.fsdecode(b"\xff")
    file = tmp_path / f"{name}.vrp"
    file.write_bytes(TOY.read_bytes())
    assert nds("solve", file, "--time", 600, code=2).stderr.endswith(": the name of the file is not UTF-8 text\n")
    for option in ("--out", "--json", "--plot"):
        answer = nds("solve", TOY, "--time", 600, option, tmp_path / f"{name}.png", code=2)
        assert answer.stderr.endswith("\\udcff.png: the name of the file is not UTF-8 text\n")
    nds("solve", DATA / "sets/cvrp100.npz", "--time", 600, "--out", tmp_path / name, code=2)
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize("command", ["solve", "generate", "bench", "train", "models"])
def test_names_that_are_too_long(nds, monkeypatch, tmp_path, command):
    monkeypatch.chdir(tmp_path)
    long = "x" * 300
    lines = {
        "solve": [(TOY, "--out", long), (TOY, "--json", long), (TOY, "--model", long), (TOY, "--init", long), (long,),
                  (DATA / "sets/cvrp100.npz", "--out", long)],
        "generate": [("cvrp", "-n", 5, "--out", f"{long}.npz")],
        "bench": [("run", long), ("run", f"{long}.npz"), ("report", long), ("run", TOY.parent, "--out", long)],
        "train": [(long,), (TOY.parent / "no.toml", "--init", long)],
        "models": [(long,), (f"{long}.json",), (f"{long}.safetensors",)],
    }[command]  # fmt: skip
    for line in lines:
        answer = nds(command, *line, code=2)
        assert answer.stderr.startswith("nds: ") and answer.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_full_disk_under_the_outputs(nds, monkeypatch, tmp_path):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    answer = nds("solve", TOY, "--iterations", 1, "--out", tmp_path / "a.sol", code=2)
    assert answer.stderr == f"nds: {tmp_path}/a.sol: cannot be written (No space left on device)\n"
    nds("generate", "cvrp", "-n", 5, "--out", tmp_path / "a.npz", code=2)
    assert list(tmp_path.iterdir()) == []


def test_full_disk_under_a_benchmark(nds, monkeypatch, tmp_path):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    rows = tmp_path / "rows.jsonl"
    monkeypatch.setattr("ndsvrp.bench.rows._write_all", full)
    answer = nds("bench", "speed", TOY, "--time", 0.01, "--out", rows, code=2)
    assert answer.stderr.endswith(f"nds: {rows}: cannot be written (No space left on device)\n")
    assert rows.read_bytes() == b""


def test_rows_are_no_device(nds):
    assert nds("bench", "speed", TOY, "--out", "/dev/full", code=2).stderr == (
        "nds: /dev/full: is not a regular file\n"
    )


def test_set_of_many_instances_is_described_by_its_first(nds, monkeypatch, tmp_path):
    monkeypatch.setattr("ndsvrp.cli.inspect.DESCRIBED", 2)
    many = tmp_path / "many.npz"
    np.savez(
        many, depot_xy=np.zeros((9, 2)), node_xy=np.ones((9, 1, 2)), demand=np.ones((9, 1)), capacity=np.arange(1, 10)
    )
    facts = nds("info", many).stdout
    assert "9, many-0000 … many-0008" in facts and "the first 2\n" in facts and "1 … 2\n" in facts


@pytest.mark.parametrize("time", ["nan", "inf", "-1", "0"])
def test_time_that_is_no_time(nds, tmp_path, time):
    config = tmp_path / "a.toml"
    config.write_text("")
    for command in (
        ("solve", TOY),
        ("bench", "run", TOY.parent),
        ("bench", "speed"),
        ("bench", "limits"),
        ("train", config),
    ):
        assert f"{time} is not a number of seconds" in nds(*command, "--time", time, code=2).stderr


def test_depot_that_is_open_for_a_moment(nds, tmp_path):
    file = tmp_path / "a.vrp"
    file.write_text(
        "TYPE : VRPTW\nDIMENSION : 2\nEDGE_WEIGHT_TYPE : EUC_2D\nCAPACITY : 1\nNODE_COORD_SECTION\n1 5 5\n2 5 5\n"
        "DEMAND_SECTION\n1 0\n2 1\nTIME_WINDOW_SECTION\n1 5 5\n2 5 5\nDEPOT_SECTION\n1\n-1\nEOF\n"
    )
    answer = nds("info", file)
    assert "window width  0\n" in answer.stdout and answer.stderr == ""
