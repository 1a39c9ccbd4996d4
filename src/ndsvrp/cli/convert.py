"""`nds convert` and `nds schema`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from ndsvrp.cli.formatting import headline, say
from ndsvrp.cli.options import (
    NOTHING,
    IgnoreField,
    Index,
    InstanceFile,
    Round,
    Stated,
    one_of,
    option,
    states_data,
)  # fmt: skip
from ndsvrp.cli.outputs import check_paths, make_folder, matrices_of
from ndsvrp.errors import NdsError
from ndsvrp.io import read, read_set
from ndsvrp.io.files import is_standard
from ndsvrp.io.folders import instance_files, is_folder
from ndsvrp.io.write import FORMS, form_by_ending, require_form, write_problems
from ndsvrp.schemas import NAMES, schema_text
from ndsvrp.text import amount


@states_data
def convert_command(
    file: InstanceFile,
    target: Annotated[
        Path, typer.Argument(metavar="TARGET", help="File to write, a folder for the instances of a set, or -.")
    ],
    to: Annotated[
        str | None,
        option("NAME", f"Format, if the ending of TARGET does not say it: {', '.join(FORMS)}.", **one_of(FORMS)),
    ] = None,
    round_: Round = "auto",
    index: Index = None,
    ignore_field: IgnoreField = None,
    stated: Stated = NOTHING,
) -> None:
    """Convert an instance: VRPLIB (.vrp), Solomon text (.txt), table of stops (.csv), JSON (.json), set (.npz).

    What the format of TARGET cannot hold is refused, or warned of if it does not change the problem.
    """
    ignored = ignore_field or ()
    names_no_file = not target.suffix and not is_standard(target)
    if is_folder(target) or (names_no_file and (to is None or (index is None and to != "npz" and _is_set(file)))):
        if index is not None:
            raise NdsError("--index chooses one instance, and TARGET is a folder for all of a set: name a file")
        _convert_set(file, target, to or "vrp", round_, ignored, stated)
        return
    form = form_by_ending(target, to)
    check_paths(file, target, matrices=matrices_of(stated))
    if form == "npz" and index is None:
        problems = read_set(file, round_, ignore_fields=ignored, **stated)
    else:
        problems = [read(file, round_, index, ignore_fields=ignored, **stated)]
    write_problems(target, problems, form)
    if not is_standard(target):
        say(f"{target}: {headline(problems[0], round_, len(problems) if len(problems) > 1 else None)}")


def _is_set(file: Path) -> bool:
    return is_folder(file) or file.suffix.lower() == ".npz"


def _convert_set(file: Path, folder: Path, form: str, round_: str, ignored: Sequence[str], stated: Stated) -> None:
    """Write every instance of a set or folder to a file of its own."""
    require_form(folder, form)
    problems = read_set(file, round_, ignore_fields=ignored, **stated)
    ending = {"solomon": "txt"}.get(form, form)
    stems = [path.stem for path in instance_files(file)] if is_folder(file) else []
    if len(set(stems)) != len(problems):
        stems = [f"{i:04d}" for i in range(len(problems))]
    make_folder(folder)
    paths = [folder / f"{stem}.{ending}" for stem in stems]
    check_paths(file, *paths)
    for path, problem in zip(paths, problems, strict=True):
        write_problems(path, [problem], form)
    say(f"{folder}: {amount(len(problems), 'instance')}, {stems[0]}.{ending}{' …' if len(stems) > 1 else ''}")


def schema_command(
    name: Annotated[str, typer.Argument(metavar="NAME", help=f"One of {', '.join(NAMES)}.", **one_of(NAMES))],
) -> None:
    """Print the JSON schema of a problem or of a result."""
    if name not in NAMES:
        raise NdsError(f"no schema '{name}' (known: {', '.join(NAMES)})")
    print(schema_text(name), end="")
