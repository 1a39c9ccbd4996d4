"""Waiting for what other processes do, without a fixed delay."""

import time
from collections.abc import Callable
from pathlib import Path


def wait_until(happens: Callable[[], bool]) -> None:
    for _ in range(200):
        if happens():
            return
        time.sleep(0.05)
    raise AssertionError("it does not happen")


def wait_for_end(pid: str) -> None:
    """Wait until a process has ended."""
    state = Path(f"/proc/{pid}/stat")
    wait_until(lambda: not state.exists() or state.read_text().split()[2] == "Z")
