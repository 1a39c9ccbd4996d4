"""Is the wheel whole, and does it solve without any extra? Run by the interpreter of the environment that has it.

Usage: check_wheel.py WHEEL INSTANCE
"""

import subprocess
import sys
import sysconfig
import tempfile
import zipfile
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCES = {"src/ndsvrp": "ndsvrp", "native/include/ndsvrp": "ndsvrp/native/ndsvrp", "native/cuda": "ndsvrp/native/cuda"}

LARGEST_MB = 210  # of site-packages: the package and what it needs, without any extra
NEEDS_TORCH = "the learned policy needs torch and safetensors: pip install '.[policy]' in a clone of the repository"


def installed_mb() -> float:
    """Size of the packages, without pip and setuptools, which the environment begins with."""
    packages = Path(sysconfig.get_path("platlib"))
    own = (path for path in packages.iterdir() if not path.name.startswith(("pip", "setuptools", "_distutils_hack")))
    files = (file for path in own for file in (path.rglob("*") if path.is_dir() else (path,)))
    return sum(file.stat().st_size for file in files if file.is_file()) / 1e6


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
    if find_spec("torch") is not None:
        sys.exit("torch is installed: it must come with an extra only")
    if (size := installed_mb()) > LARGEST_MB:
        sys.exit(f"the packages take {size:.0f} MB, more than {LARGEST_MB}")
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
        policy = [nds, "solve", instance, "--ruin", "policy", "--time", "1"]
        refused = subprocess.run(policy, cwd=folder, capture_output=True, text=True)
        if refused.returncode != 2 or NEEDS_TORCH not in refused.stderr:
            sys.exit(f"nds solve --ruin policy without torch: {refused.stderr}")
    print(f"{wheel.name}: whole, and solves; {size:.0f} MB with what it needs")


if __name__ == "__main__":
    main()
