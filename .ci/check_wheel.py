"""Is the wheel whole, and does it solve? Run by the interpreter of the environment it was installed in.

Usage: check_wheel.py WHEEL INSTANCE
"""

import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCES = {"src/ndsvrp": "ndsvrp", "native/include/ndsvrp": "ndsvrp/native/ndsvrp", "native/cuda": "ndsvrp/native/cuda"}


def missing_files(wheel: Path) -> list[str]:
    """Sources (modules, headers, data, models) that did not make it into the wheel."""
    packed = set(zipfile.ZipFile(wheel).namelist())
    tracked = subprocess.run(["git", "ls-files", *SOURCES], cwd=ROOT, check=True, capture_output=True, text=True)
    expected = set()
    for name in tracked.stdout.splitlines():
        for folder, target in SOURCES.items():
            if name.startswith(folder + "/"):
                expected.add(target + name.removeprefix(folder))
    if not any(name.endswith(".hpp") for name in expected):
        sys.exit("no native headers in the source tree: nothing to compare the wheel with")
    return sorted(expected - packed)


def main() -> None:
    """Check the files, then solve and check from a folder that has nothing to do with the source tree."""
    wheel, instance = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
    if missing := missing_files(wheel):
        sys.exit(f"{wheel.name} lacks {', '.join(missing)}")
    nds = Path(sys.prefix) / "bin" / "nds"
    with tempfile.TemporaryDirectory() as folder:
        for command in (
            [nds, "solve", instance, "--time", "2", "--seed", "1", "--out", "a.sol", "--plot", "a.png"],
            [nds, "check", instance, "a.sol"],
        ):
            subprocess.run(command, cwd=folder, check=True)
        for name in ("a.sol", "a.png"):
            if not (Path(folder) / name).stat().st_size:
                sys.exit(f"{name} is empty")
    print(f"{wheel.name}: whole, and solves")


if __name__ == "__main__":
    main()
