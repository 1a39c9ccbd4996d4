"""The command `nds train`."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.live import Live
from rich.text import Text

from ndsvrp.cli.formatting import console, print_facts, say
from ndsvrp.cli.options import option
from ndsvrp.constraints.base import Facts
from ndsvrp.data.locate import locate_file
from ndsvrp.errors import NdsError
from ndsvrp.extras import require
from ndsvrp.text import amount, printable

if TYPE_CHECKING:
    from ndsvrp.train.config import TrainConfig
    from ndsvrp.train.run import Outcome

STOPPED = {"instances": "all instances seen", "time": "time limit", "interrupted": "interrupted"}


def train_command(
    config: Annotated[
        Path | None,
        typer.Argument(metavar="CONFIG.toml", help="The configuration; see configs/.", show_default=False),
    ] = None,
    time: Annotated[float | None, option("S", "Stop after so many seconds, with a checkpoint to resume from.")] = None,
    resume: Annotated[
        Path | None,
        option("DIR", "Continue from the newest complete checkpoint of this run, by its configuration or CONFIG.toml."),
    ] = None,
    init: Annotated[
        str, option("MODEL", "Start from the weights of a model of any size or problem.", "--from", "--init")
    ] = "",
    instances: Annotated[
        Path | None,
        option(
            "FILE|DIR",
            "Fine-tune that model to your own instances, an .npz set or a folder, without a configuration. Some are "
            "held back, to show what is gained.",
        ),
    ] = None,
    out: Annotated[
        Path | None, option("DIR", "Folder for checkpoints and log; by default out/CONFIG or out/FILE.")
    ] = None,
    device: Annotated[
        str, option("NAME", "Device of the network: auto, cpu, cuda. auto: a GPU if there is one.")
    ] = "auto",
    threads: Annotated[int | None, option("N", "Cores to use, all by default.", min=1)] = None,
    changes: Annotated[
        list[str] | None, option("TABLE.NAME=VALUE", "Change a field of the configuration: train.batch=32.", "--set")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print only the last checkpoint.")] = False,
) -> None:
    """Train a policy, by a configuration or on your own instances.

    Ctrl-C or SIGTERM ends the run after the batch, with a checkpoint.
    Several GPUs or machines: torchrun … -m ndsvrp train …
    """
    require("policy")
    from ndsvrp.train.run import train  # imports torch, which other commands do not need

    if time is not None and not 0 < time < float("inf"):
        raise NdsError(f"--time: {time:g} is not a number of seconds")
    if resume is not None and out is not None and out != resume:
        raise NdsError(f"--resume goes on in {resume}: --out is for a new run")
    settings = _settings(config, instances, resume, init, device, changes or ())
    given = config or instances
    folder = resume or out or Path("out") / (given.resolve().stem if given is not None else "")
    with _Screen(quiet=quiet or os.environ.get("RANK", "0") != "0") as screen:
        outcome = train(
            settings, folder, seconds=time, resume=resume is not None, init=init, device=device, threads=threads,
            report=screen.show,
        )  # fmt: skip
    if outcome.leads:
        _print_end(outcome, quiet=quiet)
    if outcome.stopped == "interrupted":
        raise typer.Exit(128 + (outcome.signal or signal.SIGINT))


def _settings(
    config: Path | None, instances: Path | None, resume: Path | None, init: str, device: str, changes: Sequence[str]
) -> TrainConfig:
    """Return the configuration: of a file, of the run that is resumed, or for fine-tuning."""
    from ndsvrp.train.checkpoint import load_checkpoint, newest
    from ndsvrp.train.config import changed, from_tables, read_config
    from ndsvrp.train.fine_tune import fine_tuning
    from ndsvrp.train.processes import choose_device

    if instances is not None and resume is not None:
        raise NdsError("--resume goes on with the instances of the run: --instances is for a new one")
    if instances is not None and config is not None:
        raise NdsError(
            f'--instances is for a run without {config}, which may name them: [[data]] files = "{instances}"'
        )
    if instances is not None:
        return fine_tuning(init, locate_file(instances), choose_device(device).type, changes)
    if config is not None:
        return read_config(config, changes)
    if resume is None:
        raise NdsError("give a configuration, or your own instances: nds train --from all --instances FILE|DIR")
    before = load_checkpoint(newest(resume)).config
    return from_tables(changed(before.as_dict(), changes), f"{resume} with --set") if changes else before


def _print_end(outcome: Outcome, *, quiet: bool) -> None:
    if quiet:
        say(str(outcome.checkpoint))
        return
    figures = outcome.validation
    facts = [("stopped by", STOPPED[outcome.stopped]), ("checkpoint", str(outcome.checkpoint))]
    if "held_back" in figures:
        facts = gain_facts(figures["held_back"]) + facts
        if figures.get("at_instances") == 0:
            facts.insert(0, ("model", "the one it started from: no later weights were clearly better"))
    if figures and "held_back" not in figures:
        facts.insert(0, ("reward", f"{_times(figures['reward_ratio'])} related removal"))
    print_facts(facts)


class _Screen:
    """Shows batches as a live line on a terminal, as plain lines elsewhere; lines of validations stay."""

    def __init__(self, *, quiet: bool) -> None:
        target = console(stderr=True)
        self._quiet = quiet
        self._live = Live(console=target, transient=True, refresh_per_second=4) if target.is_terminal else None
        self._next = 0.0

    def __enter__(self) -> _Screen:
        if self._live is not None and not self._quiet:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()

    def show(self, kind: str, row: dict[str, Any]) -> None:
        """Show a row of the log."""
        if self._quiet:
            return
        if kind == "run":
            self._print(f"network on {row['device']}, engine {row['engine']}, {amount(row['threads'], 'thread')}"
                        + (f", {row['processes']} processes" if row["processes"] > 1 else ""))  # fmt: skip
        elif kind == "validation":
            self._print(validation_line(row))
        elif kind == "batch":
            line = batch_line(row)
            if self._live is not None:
                self._live.update(Text(line, no_wrap=True, overflow="ellipsis"))
            elif row["trained_seconds"] >= self._next:
                self._next = row["trained_seconds"] + max(2.0, 0.05 * row["trained_seconds"])
                self._print(line)

    def _print(self, line: str) -> None:
        if self._live is not None:
            self._live.console.print(printable(line))
        else:
            say(line, error=True)


def batch_line(row: dict[str, Any]) -> str:
    """Return a line about a batch."""
    return (
        f"{row['trained_seconds']:.0f} s  {row['instances']:,} instances  {row['steps']:,} steps  "
        f"{row['problem']}{row['customers']}  cost {row['cost_before']:.3f} to {row['cost_after']:.3f}  "
        f"best reward {row['best_reward']:.5f}  rate {row['learning_rate']:.2g}"
    )


def validation_line(row: dict[str, Any]) -> str:
    """Return a line with rewards relative to related removal, and the costs of short searches."""
    parts = []
    for name, figure in row["sets"].items():
        part = f"{name} {_times(figure['reward_ratio'])}"
        if "cost" in figure:
            costs = ", ".join(f"{rule} {figure[f'{rule}_cost']:.3f}" for rule in ("related", "string"))
            part += f" (search {with_error(figure, 'cost')}, {costs}; to the start {with_error(figure, 'to_start')}%)"
        parts.append(part)
    return f"{row['trained_seconds']:.0f} s  best-of-K reward against related removal: {', '.join(parts)}"


def gain_facts(figures: dict[str, Any]) -> Facts:
    """Return what searches on held back instances found: mean costs, standard errors, paired differences."""
    rules = [(f"{rule} removal", f"{with_error(figures, f'{rule}_cost')}; the model is at "
              f"{with_error(figures, f'to_{rule}')}%") for rule in ("related", "string")]  # fmt: skip
    return [
        ("held back", f"{amount(figures['instances'], 'instance')}, mean cost of short searches with one seed"),
        ("start", with_error(figures, "start_cost")),
        ("model", f"{with_error(figures, 'cost')}; {with_error(figures, 'to_start')}% to the start, paired"),
        *rules,
    ]


def with_error(figures: dict[str, Any], name: str) -> str:
    """Return a figure with its standard error; differences have a sign."""
    sign, error = "+" if name.startswith("to_") else "", figures[f"{name}_error"]
    digits = 2 if sign else 3
    return f"{figures[name]:{sign}.{digits}f}" + ("" if error is None else f" ± {error:.{digits}f}")


def _times(ratio: float | None) -> str:
    return "n/a" if ratio is None else f"{ratio:.2f} x"
