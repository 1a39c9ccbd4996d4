"""The environment of a result: versions of the software, hardware, commit."""

import os
import platform
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

COMMIT = "NDSVRP_COMMIT"  # names the commit if there is no checkout
PACKAGES = ("ndsvrp", "numpy", "torch")


def environment() -> dict[str, Any]:
    """Return `versions`, `hardware` and `commit`. None: unknown."""
    versions: dict[str, str | None] = {"python": platform.python_version()}
    versions |= {package: _version(package) for package in PACKAGES}
    hardware = {"cpu": _cpu(), "cores": os.cpu_count(), "usable_cores": usable_cores(), "platform": platform.platform()}
    return {"versions": versions, "commit": _commit(), "hardware": hardware}


def usable_cores() -> int:
    """Return the number of cores that this process may run on."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not Linux
        return os.cpu_count() or 1


def _version(package: str) -> str | None:
    from importlib.metadata import PackageNotFoundError, version  # here: slow, and every search imports this module

    try:
        return version(package)  # from its metadata, without importing torch
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
    """Return NDSVRP_COMMIT if set, else the commit of the checkout, with -dirty if it has changes."""
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


def peak_mib() -> float | None:
    """Return the peak memory of this process; None if unknown (not Linux).

    `ru_maxrss` is no alternative: a process inherits it from its parent.
    """
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        return None
    return next(int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("VmHWM"))
