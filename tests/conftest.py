"""Its place puts this folder on the path: tests of engine and search share `parity.problems`."""

from __future__ import annotations

import importlib
import os
import signal
import sys
from pathlib import Path
from types import ModuleType

import pytest

# Networks this small lose by more than one thread, above all where cores are shared: idle threads would keep a core
# busy. Also for processes that tests start.
os.environ |= {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive"}


@pytest.fixture(autouse=True, scope="session")
def _interrupts() -> None:
    """Shells start background jobs with interrupts ignored, which tests of Ctrl-C would inherit."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def _compiler(request: pytest.FixtureRequest) -> None:
    if request.node.get_closest_marker("emulator") is not None:
        from gpu.emulated import COMPILER

        if COMPILER is None:
            pytest.skip("no C++ compiler")


@pytest.fixture(autouse=True)
def _no_gpu(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that are not about GPUs go the same way on a machine that has one."""
    if request.node.get_closest_marker("gpu") is None:
        monkeypatch.setattr("ndsvrp.engine.device.available", lambda: False)
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")  # for processes that a test starts


@pytest.fixture
def tool(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The script of `tools/` that the test file names as TOOL."""
    monkeypatch.syspath_prepend(Path(__file__).parents[1] / "tools")
    monkeypatch.delitem(sys.modules, request.module.TOOL, raising=False)
    return importlib.import_module(request.module.TOOL)
