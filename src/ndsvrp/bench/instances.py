"""The instances of a benchmark: an `.npz` set, or a folder or pattern of instance files."""

import hashlib
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ndsvrp.data.locate import locate
from ndsvrp.errors import InstanceError, warn
from ndsvrp.io import read, read_set
from ndsvrp.io.files import check_name, exists, read_bytes
from ndsvrp.io.folders import in_order
from ndsvrp.problem import Problem

SUFFIXES = (".vrp", ".txt", ".json")
TABLES = (".csv", ".tsv")  # of stops, which do not state their fleet


@dataclass(frozen=True)
class Case:
    """One instance of a set."""

    set: str  #: name of the set: stem of the `.npz` file, or the folder's name
    name: str  #: `0003` in an `.npz` set, the file's stem otherwise
    path: str
    index: int | None  #: position within an `.npz` set
    ignore_fields: tuple[str, ...] = ()  #: of `ndsvrp.read`

    def load(self) -> Problem:
        """Read the problem, with the rounding convention of its file."""
        return read(self.path, index=self.index, ignore_fields=self.ignore_fields)

    def digest(self) -> str:
        """Return a short digest of the file."""
        return _digest(self.path)


@cache
def _digest(path: str) -> str:
    return hashlib.sha256(read_bytes(path)).hexdigest()[:12]


def find_cases(set_path: str | Path, instances: str | None = None, ignore_fields: Sequence[str] = ()) -> list[Case]:
    """Return the instances that `instances` selects (all by default), in order, from a set or each set of a suite."""
    check_name(set_path)
    return [case for path in locate(set_path) for case in _cases(path, instances, ignore_fields)]


def _cases(path: Path, instances: str | None, ignore_fields: Sequence[str]) -> list[Case]:
    if path.suffix == ".npz" and exists(path):
        names = [f"{i:04d}" for i in range(len(read_set(path)))]
        return [Case(path.stem, names[i], os.path.realpath(path), i) for i in select(instances, names)]
    try:
        found = list(path.iterdir() if path.is_dir() else path.parent.glob(path.name))
    except (OSError, ValueError, NotImplementedError, re.error) as error:  # of a name or pattern that is none
        raise InstanceError(f"cannot be read ({error})", file=str(path)) from None
    files = in_order(found, SUFFIXES)
    if tables := in_order(found, TABLES):
        ignored = ", ".join(file.name for file in tables[:8]) + (", …" if len(tables) > 8 else "")
        warn(f"{path}: tables of stops are ignored, write them as .json by 'nds convert': {ignored}")
    if not files:
        kinds = ", ".join(SUFFIXES)
        raise InstanceError(f"no .npz set, no folder and no pattern that finds instances ({kinds})", file=str(path))
    names = [file.stem for file in files]
    folder = Path(os.path.realpath(files[0])).parent.name
    return [
        Case(folder, names[i], os.path.realpath(files[i]), None, tuple(ignore_fields)) for i in select(instances, names)
    ]


def select(text: str | None, names: list[str]) -> list[int]:
    """Return the positions chosen by `0-7`, `3`, `0,2,5-6` or by name, in the order written, each once."""
    if text is None:
        return list(range(len(names)))
    chosen: dict[int, None] = {}
    for part in (part.strip() for part in text.split(",")):
        span = parse_span(part)
        if part in names and span is None:
            chosen[names.index(part)] = None
            continue
        if span is None:
            raise InstanceError(f"'{part}' is neither a number, a range like 0-7 nor an instance", field="instances")
        if not span or span[-1] >= len(names):
            raise InstanceError(f"'{part}' is not within 0-{len(names) - 1}", field="instances")
        chosen.update(dict.fromkeys(span))
    return list(chosen)


def parse_span(text: str) -> range | None:
    """Return the numbers of `3` or `0-7`, none of `7-0`; None if it is neither."""
    span = re.fullmatch(r"(\d{1,18})(?:-(\d{1,18}))?", text, re.ASCII)
    return None if span is None else range(int(span[1]), int(span[2] or span[1]) + 1)
