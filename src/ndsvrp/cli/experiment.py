"""The command `nds experiment`."""

from pathlib import Path
from typing import Annotated

import typer

from ndsvrp.cli.formatting import say
from ndsvrp.cli.options import one_of, option
from ndsvrp.errors import NdsError
from ndsvrp.experiments.catalogue import EXPERIMENTS
from ndsvrp.search.planning import DEVICES

LIST, ALL = "list", "all"


def experiment_command(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME",
            help="Experiments, or 'all'; 'list', or no name, lists them.",
            **one_of((*EXPERIMENTS, ALL, LIST)),
        ),
    ] = None,
    scale: Annotated[
        str,
        option(
            "NAME",
            "smoke: seconds on a CPU. small: minutes on a GPU. paper: the paper's protocol, weeks.",
            **one_of(("smoke", "small", "paper")),
        ),
    ] = "smoke",
    out: Annotated[
        Path | None,
        option("FOLDER", "Folder for rows, tables, pictures, sets and models; by default out/experiments/SCALE."),
    ] = None,
    models: Annotated[
        Path | None,
        option("FOLDER", "Trained models by the names of configs/paper, such as cvrp-500; others are trained."),
    ] = None,
    configs: Annotated[Path, option("FOLDER", "Training configurations of the scale paper.")] = Path("configs/paper"),
    device: Annotated[str, option("NAME", f"One of {', '.join(DEVICES)}. auto: cuda where there is a GPU.")] = "auto",
    threads: Annotated[int | None, option("N", "Cores of our own code on a CPU, all by default.", min=1)] = None,
    jobs: Annotated[
        int | None, option("N", "Baselines side by side, on one core each; all cores but one by default.", min=1)
    ] = None,
    baselines: Annotated[
        str, option("NAMES", "Other solvers to run: hgs, pyvrp, sisr; or none. A package that is missing is refused.")
    ] = "hgs,pyvrp,sisr",
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print only the tables that were written.")] = False,
) -> None:
    """Run experiments of the paper: rows, a table and a picture each, with the paper's values beside ours.

    An experiment trains the policies that it needs. Experiments with one folder share them, and the sets.
    Runs that are in the folder are not repeated, so that an interrupted experiment goes on.
    """
    if not names or names == [LIST]:
        width = max(map(len, EXPERIMENTS))
        for row in EXPERIMENTS.values():
            say(f"{row.name:<{width}}  {row.text}")
        return
    if device not in DEVICES:
        raise NdsError(f"--device: one of {', '.join(DEVICES)}, not '{device}'")
    from ndsvrp.engine.device import available
    from ndsvrp.experiments.run import TABLE, run

    where = ("cuda" if available() else "cpu") if device == "auto" else device
    folders = run(
        list(EXPERIMENTS) if names == [ALL] else names, scale, out or Path("out/experiments") / scale, device=where,
        threads=threads, jobs=jobs or 0, baselines=[] if baselines == "none" else baselines.split(","),
        models_folder=models, configs=configs, tell=lambda line: None if quiet else say(line, error=True),
    )  # fmt: skip
    for folder in folders:
        say(str(folder / TABLE))
