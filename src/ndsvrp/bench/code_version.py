"""Which code searched: the version, and a digest of what decides the outcome of a search."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

import ndsvrp
from ndsvrp.engine.device import sources

PARTS = ("_core.*", "problem.py", "metric.py", "constraints/*.py", "variants.py")
FOLDERS = ("engine", "models", "policy", "ruin", "search")


@cache
def code_version() -> str:
    """`0.1.0+3f2a91c4d5e6`: changes whenever the compiled core, the kernels, the search or a model does.

    A commit would not do: it stands still while files are edited, and moves when only a text changes.
    """
    digest = hashlib.sha256()
    for name, file in sorted(_files().items()):
        digest.update(f"{name}\0".encode() + file.read_bytes())
    return f"{ndsvrp.__version__}+{digest.hexdigest()[:12]}"


def _files() -> dict[str, Path]:
    """What counts, by its path within the package."""
    found: dict[str, Path] = {}
    for root in map(Path, ndsvrp.__path__):  # an editable install has two: the sources and the compiled core
        for pattern in (*PARTS, *(f"{folder}/**/*" for folder in FOLDERS)):
            for file in root.glob(pattern):
                if file.is_file() and file.suffix != ".pyc":
                    found[str(file.relative_to(root))] = file
    for folder in sources():  # kernels are compiled from them at run time
        found |= {f"native/{file.relative_to(folder.parent)}": file for file in folder.rglob("*") if file.is_file()}
    return found
