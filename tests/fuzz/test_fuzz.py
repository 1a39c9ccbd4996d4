"""A few hundred cases of the fuzzer, and the fuzzer itself: it sees what it should."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from fuzz.cases import KINDS, Case
from fuzz.run import SECONDS, judge, snapshot, wrong_solution

RUN = Path(__file__).parent / "run.py"


@pytest.mark.slow
def test_damaged_files_and_command_lines() -> None:
    answer = subprocess.run([sys.executable, RUN, "--count", "200", "--seed", "1"], capture_output=True, text=True)
    assert answer.returncode == 0, answer.stdout[-5000:] + answer.stderr[-2000:]
    codes = json.loads(answer.stdout.splitlines()[-1])["exit_codes"]
    assert codes.keys() == KINDS.keys()
    assert {code for kind in codes.values() for code in kind} >= {"0", "2"}


CASE = Case("vrp", ("info", "toy.vrp"))


def faults(folder: Path, code: int = 2, seconds: float = 1.0, memory: int = 1, err: bytes = b"nds: no\n") -> str:
    return " ".join(judge(CASE, code, seconds, memory, err, {}, folder))


def test_what_is_a_fault(tmp_path: Path) -> None:
    assert faults(tmp_path) == ""
    assert faults(tmp_path, code=1) == "exit code 1"
    assert faults(tmp_path, code=-11) == "exit code -11"
    assert faults(tmp_path, seconds=SECONDS + 1) == "took 11.0 s"
    assert faults(tmp_path, memory=2 * 10**9) == "took 2,000 MB"
    assert "Traceback" in faults(tmp_path, err=b"nds: x\nTraceback (most recent call last):\n")
    assert "RuntimeWarning:" in faults(tmp_path, err=b"nds: a.py:3: RuntimeWarning: overflow\n")
    assert faults(tmp_path, err=b"") == "no message"
    assert faults(tmp_path, err=b"nds: \x1b[2J\n") == "error stream: ['\\x1b']"


@pytest.mark.parametrize(
    ("name", "content"),
    [("a.sol", b"Rou"), ("a.json", b'{"a": '), ("a.npz", b"PK"), ("a.csv", b"a,b"), (".nds-1.tmp", b"")],
)
def test_half_written_files(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    assert name in faults(tmp_path, code=0)


def test_changed_and_lost_files(tmp_path: Path) -> None:
    (tmp_path / "toy.vrp").write_text("a")
    before = snapshot(tmp_path)
    (tmp_path / "toy.vrp").write_text("b")
    assert judge(CASE, 0, 1.0, 1, b"", before, tmp_path) == ["changed toy.vrp"]
    (tmp_path / "toy.vrp").unlink()
    assert judge(CASE, 0, 1.0, 1, b"", before, tmp_path) == ["a file is gone"]


@pytest.mark.parametrize(("text", "wrong"), [("Cost: 32\n", False), ("Cost: 31\n", True)])
def test_wrong_cost(tmp_path: Path, text: str, wrong: bool) -> None:
    small = Path(__file__).parents[1] / "data/small"
    (tmp_path / "toy.vrp").write_bytes((small / "toy.vrp").read_bytes())
    (tmp_path / "out.sol").write_text((small / "toy.sol").read_text().replace("Cost: 32\n", text))
    assert bool(wrong_solution(Case("vrp", ("solve", "toy.vrp", "--out", "out.sol")), tmp_path)) == wrong


def test_damage_is_repeatable() -> None:
    from fuzz import mutations

    good = b"NAME : toy\nCAPACITY : 10\n"
    damaged = {kind(Random(3), good) for kind in (mutations.damage_text, mutations.damage_bytes) for _ in range(2)}
    assert len(damaged) == 2 and good not in damaged
