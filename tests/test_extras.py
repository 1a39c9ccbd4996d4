"""Without the packages of an extra: what needs them says so in one line, everything else works."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import ndsvrp
from ndsvrp.extras import EXTRAS, require

ROOT = Path(__file__).parents[1]
INSTANCE = "examples/data/X-n106-k14.vrp"
POLICY = "nds: the learned policy needs torch and safetensors: pip install '.[policy]' in a clone of the repository\n"
RAY = "nds: a cluster needs ray: pip install '.[ray]' in a clone of the repository\n"
SERVE = "nds: the service needs fastapi, uvicorn and httptools: pip install '.[serve]' in a clone of the repository\n"
GPU = "nds: the GPU engine needs torch: pip install '.[gpu]' in a clone of the repository\n"

BASE = """
import sys
sys.modules.update(dict.fromkeys(sys.argv[1].split(",")))  # an import of these fails
from ndsvrp.cli import app
for line in sys.stdin.read().splitlines():
    try:
        app(line.split(), prog_name="nds")
    except SystemExit as end:
        print(f"exit {end.code}", file=sys.stderr)
"""


def answers(blocked: str, *commands: str) -> list[str]:
    """Return what each command writes to the error stream, run one after the other in one process."""
    done = subprocess.run(
        [sys.executable, "-c", BASE, blocked], input="\n".join(commands), cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stderr.replace("exit 2\n", "exit 2\0").replace("exit 0\n", "exit 0\0").split("\0")[:-1]


@pytest.mark.slow
def test_without_any_extra(tmp_path: Path) -> None:
    refused = {
        f"solve {INSTANCE} --ruin policy --time 1 -q": POLICY,
        f"solve {INSTANCE} --model all --time 1 -q": POLICY,
        "models": POLICY,
        "train configs/cvrp.toml": POLICY,
        f"solve {INSTANCE} --device cuda --time 1 -q": GPU,
        "serve": SERVE,
        f"solve {INSTANCE} --watch --time 1 -q": SERVE,
        f"solve {tmp_path / 'a.npz'} --cluster ray --time 1 -q": RAY,
        f"bench run {tmp_path / 'a.npz'} --cluster ray --time 1": RAY,
    }
    works = [
        f"solve {INSTANCE} --iterations 1 -q --out {tmp_path / 'a.sol'} --report {tmp_path / 'a.html'}",
        f"check {INSTANCE} {tmp_path / 'a.sol'}",
        f"generate vrptw -n 5 --out {tmp_path / 'a.npz'}",
        f"data make pcvrp100 --instances 1 --out {tmp_path / 'b.npz'}",
    ]
    found = answers("torch,safetensors,fastapi,uvicorn,httptools,cuda,ray", *works, *refused)
    assert [text.splitlines()[-1] for text in found[: len(works)]] == ["exit 0"] * len(works)
    assert found[len(works) :] == [f"{line}exit 2" for line in refused.values()]
    assert ndsvrp.read_set(tmp_path / "b.npz")[0].customers == 100


def test_the_error_is_an_import_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs that try an import, and fall back, need not know our errors."""
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    with pytest.raises(ImportError, match=r"the service needs uvicorn: pip install '.\[serve"):
        require("serve")
    assert issubclass(ndsvrp.MissingPackageError, ndsvrp.NdsError)


def test_the_package_declares_the_extras() -> None:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    for extra, (_, modules) in EXTRAS.items():
        (line,) = (line for line in text.splitlines() if line.startswith(f"{extra} = "))
        assert all(f'"{module}>=' in line for module in modules)


def test_unknown_names_of_the_package_are_refused() -> None:
    assert ndsvrp.__version__
    with pytest.raises(AttributeError, match="module 'ndsvrp' has no attribute 'no_such_name'"):
        _ = ndsvrp.no_such_name
