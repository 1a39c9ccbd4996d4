"""The instance files of a folder."""

import re
from collections.abc import Iterable
from pathlib import Path

from ndsvrp.errors import InstanceError
from ndsvrp.io.files import PathLike, check_name
from ndsvrp.io.forms import ENDINGS

SUFFIXES = tuple(suffix for suffix in ENDINGS if suffix != ".npz")


def is_folder(path: PathLike) -> bool:
    """Return whether a path is that of a folder; False for a name that no file can have."""
    try:
        return Path(path).is_dir()
    except (OSError, ValueError):
        return False


def instance_files(folder: PathLike) -> list[Path]:
    """Return the instance files of a folder in natural order."""
    check_name(folder)
    try:
        found = in_order(Path(folder).iterdir(), SUFFIXES)
    except OSError as error:
        raise InstanceError(f"cannot be read ({error.strerror})", file=str(folder)) from None
    if not found:
        raise InstanceError(f"has no instance files ({', '.join(SUFFIXES)})", file=str(folder))
    return found


def in_order(files: Iterable[Path], suffixes: tuple[str, ...]) -> list[Path]:
    """Return the files with one of these endings, X-n106 before X-n1001."""
    return sorted((file for file in files if file.suffix.lower() in suffixes), key=lambda file: _natural(file.stem))


def _natural(name: str) -> list[tuple[int, str]]:
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", name)]
