"""What a result was made with: versions of the software, the machine, the commit."""

from __future__ import annotations

import os
import platform
import subprocess
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

COMMIT = "NDSVRP_COMMIT"  # names the commit on a machine that has only the files
PACKAGES = ("ndsvrp", "numpy", "torch")


def environment() -> dict[str, Any]:
    """`versions`, `hardware` and, from a checkout, `commit`. None stands for what is not there."""
    versions: dict[str, str | None] = {"python": platform.python_version()}
    versions |= {package: _version(package) for package in PACKAGES}
    hardware = {
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "usable_cores": usable_cores(),
        "platform": platform.platform(),
    }
    return {"versions": versions, "commit": _commit(), "hardware": hardware}


def usable_cores() -> int:
    """Cores this process may run on."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not Linux
        return os.cpu_count() or 1


def _version(package: str) -> str | None:
    try:
        return version(package)  # from its metadata: torch is not imported for this
    except PackageNotFoundError:
        return None


@cache
def _cpu() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass  # not Linux
    return platform.processor() or platform.machine()


@cache
def _commit() -> str | None:
    """The one that NDSVRP_COMMIT names, if any; else that of the checkout this file lies in, ending in -dirty if
    something in it has been changed."""
    root = Path(__file__).resolve().parents[3]
    if named := os.environ.get(COMMIT):
        return named
    if not (root / ".git").exists():
        return None
    command = ["git", "-C", str(root), "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=10, check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return None
