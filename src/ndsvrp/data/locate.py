"""From the name of a set to its files."""

from importlib.resources import files
from pathlib import Path

from ndsvrp.data.sets import SETS, SUITES
from ndsvrp.errors import InstanceError
from ndsvrp.io.files import PathLike, exists

SMOKE = Path(str(files(__package__))) / "smoke"


def locate(name: PathLike) -> list[Path]:
    """Return the files and folders of a set or suite, or what is given if that is no name of one.

    A file or folder of that name comes first. A made set is looked for as `NAME.npz` in the current folder.
    """
    path, text = Path(name), str(name)
    if exists(path) or (text not in SETS and text not in SUITES):
        return [path]
    if text in SUITES:
        return [_file(member) for member in SUITES[text]]
    return [_file(text)]


def locate_file(name: PathLike) -> Path:
    """Return the file of a set, for commands that read one."""
    found = locate(name)
    if len(found) > 1:
        raise InstanceError(f"stands for several sets ({', '.join(path.stem for path in found)})", file=str(name))
    path = found[0]
    if path.parent == SMOKE and path.is_dir():  # a literature instance with its licence
        return next(file for file in sorted(path.iterdir()) if file.suffix in (".vrp", ".txt"))
    return path


def _file(name: str) -> Path:
    row = SETS[name]
    if row.origin == "shipped":
        folder = SMOKE / name
        return folder if folder.is_dir() else SMOKE / f"{name}.npz"
    path = Path(f"{name}.npz")
    if row.origin == "made" and exists(path):
        return path
    how = f"'nds data make {name}' writes {path}" if row.origin == "made" else "give the folder that holds its files"
    raise InstanceError(f"is a set that is not here; {how}", file=name)
