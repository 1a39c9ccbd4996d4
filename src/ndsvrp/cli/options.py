"""Arguments and options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ndsvrp.metric import Metric

InstanceFile = Annotated[
    Path,
    typer.Argument(metavar="FILE", help="Instance: VRPLIB .vrp, Solomon or Gehring-Homberger text, or an .npz set."),
]
Round = Annotated[
    str,
    typer.Option(
        "--round",
        metavar="RULE",
        help=f"How distances are rounded: auto, {', '.join(Metric)}. "
        "auto: the convention of the file (X: round, time windows: dimacs, .npz: none).",
    ),
]
Index = Annotated[
    int | None, typer.Option("--index", min=0, metavar="I", help="Which instance of an .npz set, from 0.")
]
