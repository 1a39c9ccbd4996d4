"""The version of the code that searches: the release, and a digest of all that affects results."""

import hashlib
from functools import cache
from pathlib import Path

import ndsvrp
from ndsvrp.engine.device import sources

PARTS = (
    "_core.*", "arrays.py", "check.py", "constraints/*.py", "counter_random.py", "experiments/ruins.py",
    "field_values.py", "geo.py", "metric.py", "problem.py", "variants.py",
)  # fmt: skip
FOLDERS = ("engine", "models", "policy", "ruin", "search")


@cache
def code_version() -> str:
    """Return `0.1.0+3f2a91c4d5e6`, which changes with the compiled core, the kernels, the search or a model.

    A commit does not change while files are edited, and it changes when only documentation does.
    """
    digest = hashlib.sha256()
    for name, file in sorted(_files().items()):
        digest.update(f"{name}\0".encode() + file.read_bytes())
    return f"{ndsvrp.__version__}+{digest.hexdigest()[:12]}"


def _files() -> dict[str, Path]:
    """Return the files that count, by their path within the package."""
    found: dict[str, Path] = {}
    for root in map(Path, ndsvrp.__path__):  # two in an editable install: sources and compiled core
        for pattern in (*PARTS, *(f"{folder}/**/*" for folder in FOLDERS)):
            for file in root.glob(pattern):
                if file.is_file() and file.suffix != ".pyc":
                    found[str(file.relative_to(root))] = file
    for folder in sources():  # of kernels that are compiled at run time
        found |= {f"native/{file.relative_to(folder.parent)}": file for file in folder.rglob("*") if file.is_file()}
    return found
