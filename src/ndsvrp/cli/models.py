"""The command `nds models`: the shipped models and how they were trained."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from ndsvrp import models
from ndsvrp.cli.formatting import console, print_facts, say
from ndsvrp.constraints.base import Facts
from ndsvrp.errors import NdsError
from ndsvrp.io.files import check_writable
from ndsvrp.text import amount, number

if TYPE_CHECKING:  # imports torch, which other commands do not need
    from ndsvrp.policy.model_file import Ancestor, ModelCard, ModelFile

HEAD = ("name", "problems", "sizes", "trained for", "validation")
_SHOWN = 7  # digits of a commit in the table


def models_command(
    model: Annotated[
        str | None,
        typer.Argument(
            metavar="[NAME|PATH]", help="Show this one in detail: a name, a .safetensors or .json file, a training run."
        ),
    ] = None,
    save: Annotated[
        Path | None,
        typer.Option(metavar="NAME", help="Write that model as NAME.safetensors and NAME.json, in half precision."),
    ] = None,
) -> None:
    """List the shipped models and how they were trained; 'nds solve --model NAME' uses one."""
    if model is not None:
        from ndsvrp.policy.model_file import load_model, read_model_file, save_model

        path = models.find(model)
        if save is not None:
            network, card = load_model(path)
            path = _target(save)
            save_model(path, network.state_dict(), card, half=True)
        print_facts(_facts(read_model_file(path)))
        return
    if save is not None:
        raise NdsError("--save needs the model to be saved, by name or path")
    found = models.shipped()
    if not found:
        say("no model is shipped with this version; 'nds solve --model PATH' uses one of your own")
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in HEAD:
        table.add_column(name, no_wrap=name == "name")
    for file in found:
        table.add_row(*_row(file))
    console().print(table)
    say("validation: mean reward of a ruin by that of related removal, or cost to start")
    say("'nds models NAME' shows all of a model")


def _target(save: Path) -> Path:
    """Return the file of the weights, which must be a new one."""
    if not save.name or save.name == "..":
        raise NdsError(f"--save: '{save}' is not a name")
    path = save if save.suffix == ".safetensors" else save.with_name(f"{save.name}.safetensors")
    for file in (path, path.with_suffix(".json")):
        check_writable(file)
        if file.exists():
            raise NdsError(f"{file} is there already")
    return path


def _row(file: ModelFile) -> tuple[str, ...]:
    card = file.card
    return (
        file.name,
        _problems(card),
        f"{min(card.sizes)} to {max(card.sizes)}",
        duration(card.total_seconds),
        _summary(card.validation),
    )


def _facts(file: ModelFile) -> Facts:
    card, network = file.card, file.card.network
    layers = f"{network.layers_before} + {network.layers_after} attention layers"
    parts = {
        "message passing": network.message_passing,
        "tour encoding": network.tour_encoding,
        "distance term": network.distance_term,
    }
    return [
        ("name", file.name),
        ("file", str(file.weights)),
        ("problems", _problems(card)),
        ("sizes", ", ".join(map(str, card.sizes))),
        ("network", f"width {network.width}, {amount(network.heads, 'head')}, {layers}"),
        *((part, "yes" if present else "no") for part, present in parts.items()),
        ("inputs", ", ".join(card.inputs)),
        *([("zero weights", ", ".join(card.untrained_inputs))] if card.untrained_inputs else []),
        ("stored as", file.dtype),
        ("sha256", file.sha256),
        ("instances", f"{card.instances:,}"),
        ("steps", f"{card.steps:,}"),
        ("trained for", _trained(card)),
        ("continued from", card.init or "random weights"),
        *_ancestors(card),
        ("commit", card.commit or "unknown"),
        ("created", card.created),
        ("versions", ", ".join(f"{name} {version}" for name, version in card.versions.items())),
        *((f"validation: {name}", figure) for name, figure in figures(card.validation)),
    ]


def duration(seconds: float) -> str:
    """Return `45 s`, `12.0 min`, `3.5 h` or `2.1 days`."""
    for unit, length in (("days", 86400.0), ("h", 3600.0), ("min", 60.0)):
        if seconds >= length * (2 if unit == "days" else 1):
            return f"{seconds / length:.1f} {unit}"
    return f"{seconds:.0f} s"


def _problems(card: ModelCard) -> str:
    return ", ".join(name.upper() for name in card.problems)


def _trained(card: ModelCard | Ancestor) -> str:
    return duration(card.seconds) + (f" on {card.device}" if card.device else "")


def _ancestors(card: ModelCard) -> Facts:
    """Return the models before this one, the last first, and the time of all."""
    facts: Facts = []
    for ancestor in reversed(card.lineage):
        known = f"{_trained(ancestor)}, {ancestor.steps:,} steps" if ancestor.seconds else "training not recorded"
        facts.append(
            (
                "lineage",
                f"{ancestor.model}: {known}" + (f", commit {ancestor.commit[:_SHOWN]}" if ancestor.commit else ""),
            )
        )
    return [*facts, ("in all", f"{duration(card.total_seconds)} in {amount(1 + len(facts), 'run')}")] if facts else []


def _summary(validation: dict[str, Any]) -> str:
    """Return the figure that says most: what held back instances gained, else the mean reward."""
    held_back = validation.get("held_back")
    told = dict(figures(held_back)) if isinstance(held_back, dict) else {}
    if "to_start" in told:
        return f"cost {told['to_start']} to start"
    ratio = validation.get("reward_ratio")
    return "none" if ratio is None else f"{ratio:.2f} x related removal"


def figures(validation: dict[str, Any], lead: str = "") -> Facts:
    """Return figures by name, with standard errors; names of nested tables are joined by dots. Lists are left out."""
    facts: Facts = []
    for name, value in validation.items():
        if isinstance(value, dict):
            facts += figures(value, f"{lead}{name}.")
        elif not isinstance(value, list) and not (name.endswith("_error") and name[: -len("_error")] in validation):
            error, percent = validation.get(f"{name}_error"), "%" if name.startswith("to_") else ""
            both = f"{_shown(value)} ± {_shown(error)}" if error is not None else _shown(value)
            facts.append((f"{lead}{name}", both + percent))
    return facts


def _shown(value: Any) -> str:
    return number(value) if isinstance(value, int | float) and not isinstance(value, bool) else str(value)
