"""Arguments and options that several commands share."""

from pathlib import Path
from typing import Annotated, Any

import typer

from ndsvrp.data.locate import locate_file
from ndsvrp.metric import Metric
from ndsvrp.records import describe
from ndsvrp.search.planning import Request
from ndsvrp.search.settings import Settings

_HELP = {name: sentence for record in (Settings, Request) for name, _, sentence in describe(record)}


def option(metavar: str, text: str, *flags: str, panel: str | None = None, **more: Any) -> Any:
    """Return an option with its help, in a panel of the help page."""
    return typer.Option(*flags, metavar=metavar, help=text, rich_help_panel=panel, **more)


def request_option(name: str, metavar: str, panel: str, **more: Any) -> Any:
    """Return the option for a field of `Request`, which has the help."""
    return option(metavar, _HELP[name], panel=panel, **more)


InstanceFile = Annotated[
    Path,
    typer.Argument(
        metavar="FILE",
        help="Instance: VRPLIB .vrp, Solomon or Gehring-Homberger text, an .npz set, or the name of a set.",
        callback=locate_file,
    ),
]
Round = Annotated[
    str,
    option(
        "RULE",
        f"How distances are rounded: auto, {', '.join(Metric)}. "
        "auto: the convention of the file (X: round, time windows: dimacs, .npz: none).",
        "--round",
    ),
]
Index = Annotated[int | None, option("I", "Index of the instance in an .npz set, from 0.", "--index", min=0)]
IgnoreField = Annotated[
    list[str] | None,
    option(
        "NAME",
        "Read a VRPLIB file without this field or section, which is unknown and may state a constraint; repeatable.",
        "--ignore-field",
    ),
]
RowFile = Annotated[Path | None, option("FILE.jsonl", "Append a row per measurement.")]
