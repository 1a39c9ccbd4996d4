"""Arguments and options that several commands share."""

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from functools import wraps
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, get_args, get_type_hints

import typer

from ndsvrp.cluster import CLUSTERS
from ndsvrp.data.locate import locate_file
from ndsvrp.errors import NdsError
from ndsvrp.io.additions import columns_of
from ndsvrp.metric import Metric
from ndsvrp.records import describe
from ndsvrp.search.planning import DEVICES, OWN_OPTION, PRESETS, RUINS, SOLVERS, Request
from ndsvrp.search.settings import Settings

_HELP = {name: sentence for record in (Settings, Request) for name, _, sentence in describe(record)}


def option(metavar: str, text: str, *flags: str, panel: str | None = None, **more: Any) -> Any:
    """Return an option with its help, in a panel of the help page."""
    return typer.Option(*flags, metavar=metavar, help=text, rich_help_panel=panel, **more)


def one_of(names: Iterable[str]) -> dict[str, Any]:
    """Return the arguments of an option or argument whose values the shell completes."""
    known = tuple(names)

    def complete(incomplete: str) -> list[str]:
        return [name for name in known if name.startswith(incomplete)]

    return {"autocompletion": complete}


_COMPLETED = {"solver": SOLVERS, "ruin": RUINS, "preset": PRESETS, "device": DEVICES}


def request_option(name: str, metavar: str, panel: str, **more: Any) -> Any:
    """Return the option for a field of `Request`, which has the help."""
    return option(metavar, _HELP[name], panel=panel, **(one_of(_COMPLETED[name]) if name in _COMPLETED else {}), **more)


InstanceFile = Annotated[
    Path,
    typer.Argument(
        metavar="FILE",
        help="Instance: VRPLIB .vrp, Solomon or Gehring-Homberger text, a table of stops .csv, a problem .json, "
        "an .npz set, a folder, the name of a set, or - for standard input.",
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
        **one_of(("auto", *Metric)),
    ),
]
Index = Annotated[
    int | None, option("I", "Index of the instance in an .npz set or a folder, from 0.", "--index", min=0)
]
IgnoreField = Annotated[
    list[str] | None,
    option(
        "NAME",
        "Read a file without this field or section of VRPLIB, or column of a table, which may state a constraint; "
        "repeatable.",
        "--ignore-field",
    ),
]
_DATA = "Data beside the file"
_STATED: dict[str, Any] = {
    "columns": Annotated[
        list[str] | None,
        option(
            "OURS=THEIRS",
            "Column of a table of stops: demand=kg reads the column kg as the demand; repeatable.",
            "--column",
            panel=_DATA,
        ),
    ],
    "capacity": Annotated[float | None, option("Q", "Capacity of a vehicle.", "--capacity", panel=_DATA)],
    "vehicles": Annotated[int | None, option("N", "Number of vehicles.", "--vehicles", panel=_DATA)],
    "max_distance": Annotated[
        float | None, option("D", "Limit on the distance of a route.", "--max-distance", panel=_DATA)
    ],
    "max_duration": Annotated[
        float | None, option("T", "Limit on the duration of a route.", "--max-duration", panel=_DATA)
    ],
    "vehicle_cost": Annotated[
        float | None, option("C", "Fixed cost of each vehicle used.", "--vehicle-cost", panel=_DATA)
    ],
    "distance": Annotated[Path | None, option("FILE", "Matrix of distances, .csv or .npy.", "--distance", panel=_DATA)],
    "duration": Annotated[
        Path | None, option("FILE", "Matrix of travel times, .csv or .npy.", "--duration", panel=_DATA)
    ],
}
Stated = Mapping[str, Any]  #: what these options state beside the file, as arguments of `ndsvrp.read`
NOTHING: Stated = MappingProxyType({})


def states_data(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of `_STATED` in place of its parameter `stated`."""
    own = inspect.signature(command)
    options = [
        inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=None, annotation=annotation)
        for name, annotation in _STATED.items()
    ]
    parameters = [each for one in own.parameters.values() for each in (options if one.name == "stated" else [one])]

    @wraps(command)
    def with_options(**given: Any) -> None:
        stated = {name: given.pop(name) for name in _STATED}
        command(**given, stated={**stated, "columns": columns_of(stated["columns"] or (), "--column") or None})

    with_options.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]  # typer reads it
    return with_options


RowFile = Annotated[Path | None, option("FILE.jsonl", "Append a row per measurement.")]

ClusterName = Annotated[
    str | None,
    option(
        "NAME",
        f"Run on the machines of a cluster: {', '.join(CLUSTERS)}. RAY_ADDRESS names it; without one, Ray is started "
        "on this machine.",
    ),
]


def parse_changes(changes: list[str]) -> dict[str, Any]:
    """Return settings by name, converted to the types of their fields; a change is written `removals=20`."""
    types = get_type_hints(Settings)
    known = [field.name for field in fields(Settings) if field.name not in OWN_OPTION]
    parsed: dict[str, Any] = {}
    for change in changes:
        name, _, text = change.partition("=")
        if name not in known:
            hint = f"use --{name}" if name in OWN_OPTION else f"known: {', '.join(known)}"
            raise NdsError(f"--set: no setting '{name}' ({hint})")
        parsed[name] = _parse(name, text, types[name])
    return parsed


def _parse(name: str, text: str, kind: Any) -> Any:
    choices = {"true": True, "false": False} if kind is bool else {choice: choice for choice in get_args(kind)}
    if choices:
        if text not in choices:
            raise NdsError(f"--set: {name} is one of {', '.join(choices)}, not '{text}'")
        return choices[text]
    try:
        return kind(text)
    except ValueError:
        what = "a whole number" if kind is int else "a number"
        raise NdsError(f"--set: {name} is {what}, not '{text}'") from None
