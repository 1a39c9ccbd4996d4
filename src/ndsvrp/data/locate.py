"""From the name of a set to its files."""

from importlib.resources import files
from pathlib import Path

from ndsvrp.data.sets import SETS, SUITES
from ndsvrp.errors import InstanceError
from ndsvrp.io.files import PathLike, exists

SMOKE = Path(str(files(__package__))) / "smoke"


def locate(name: PathLike) -> list[Path]:
    """Return the files and folders of a set or suite, or what is given if that is no name of one.

    A file or folder of that name comes first. In the current folder, a made set is looked for as `NAME.npz`, and a set
    of files as the folder `NAME`.
    """
    path, text = Path(name), str(name)
    if exists(path) or (text not in SETS and text not in SUITES):
        return [path]
    if text not in SUITES:
        return [_file(text)]
    found = {member: _find(member) for member in SUITES[text]}
    missing = [member for member, file in found.items() if file is None]
    if missing:
        needed = f"{', '.join(missing)} {'is' if len(missing) == 1 else 'are'} not here"
        raise InstanceError(f"{needed}; {_how(missing[0])}", file=text)
    return [file for file in found.values() if file is not None]


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
    path = _find(name)
    if path is None:
        raise InstanceError(f"is a set that is not here; {_how(name)}", file=name)
    return path


def _find(name: str) -> Path | None:
    """Return the file or folder of a set; None if it is not here."""
    origin = SETS[name].origin
    if origin == "shipped":
        folder = SMOKE / name
        return folder if folder.is_dir() else SMOKE / f"{name}.npz"
    path = Path(f"{name}.npz" if origin == "made" else name)
    return path if exists(path) else None


def _how(name: str) -> str:
    """Return how the user obtains a set."""
    if SETS[name].origin == "made":
        return f"'nds data make {name}' writes {name}.npz"
    return f"give the folder that holds its files, or call the folder {name}"
