"""The command `nds settings`: every setting of a search or of a training run, generated from its definition."""

from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
import typer
from rich.table import Table

from ndsvrp.cli.formatting import console
from ndsvrp.problem import Problem
from ndsvrp.records import describe
from ndsvrp.search import presets
from ndsvrp.search.planning import Request
from ndsvrp.search.settings import Settings

HEAD = ("setting", "nds", "sisr", "hybrid", "what it is")
TRAINING_HEAD = ("field", "default", "what it is")
OPTIONS_HEAD = ("option", "default", "what it is")


def settings_command(
    training: Annotated[
        bool, typer.Option("--training", help="List the fields of a training configuration instead, by table.")
    ] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print the page of the documentation.")] = False,
) -> None:
    """List every search setting with its value for each solver; 'nds solve --set NAME=VALUE' changes one."""
    if markdown:
        print(training_page() if training else page(), end="")
        return
    if training:
        for name, record in training_rows().items():
            console().print(_table((f"[{name}]", *TRAINING_HEAD[1:]), record))
            console().print()
        return
    console().print(_table(HEAD, rows()))


def _table(head: tuple[str, ...], content: Sequence[tuple[str, ...]]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in head:
        sentence = name == head[-1]
        table.add_column(name, no_wrap=not sentence, justify="left" if sentence or name == head[0] else "right")
    for row in content:
        table.add_row(*row)
    return table


def rows() -> list[tuple[str, ...]]:
    """Return (name, value for each solver, sentence) of every setting; for hybrid that of a CVRP."""
    plain = Problem(demand=np.array([0.0, 1.0]), capacity=1.0, coordinates=np.zeros((2, 2)))
    others = presets.sisr(), presets.with_population(presets.hybrid(plain), plain, presets.population_for(plain))
    return [
        (name, _show(default), *(_show(getattr(other, name)) for other in others), text)
        for name, default, text in describe(Settings)
    ]


def training_rows() -> dict[str, list[tuple[str, str, str]]]:
    """Return (name, default, sentence) of every field of a training configuration, by table."""
    from ndsvrp.train.config import TABLES, Source

    return {
        name: [(field, _show(default), text) for field, default, text in describe(record)]
        for name, record in {**TABLES, "[data]": Source}.items()
    }


def training_page() -> str:
    """Return docs/training-settings.md."""
    lines = [
        "# Training settings",
        "",
        "Made by `nds settings --training --markdown`; the defaults and sentences are those of `policy/config.py` and",
        "`train/config.py`. A configuration is a TOML file of these tables; it may extend another: configs/README.md.",
        "`nds train CONFIG.toml --set train.batch=32` changes a field of the first three.",
    ]
    for name, record in training_rows().items():
        lines += ["", f"## [{name}]", "", *_markdown(TRAINING_HEAD, record)]
    return "\n".join(lines) + "\n"


def page() -> str:
    """Return docs/settings.md."""
    (few, most), least = presets.SOLUTIONS, presets.TIME_TO_RECOMBINE
    by_policy, by_rules = presets.GPU_TIME_TO_RECOMBINE
    children, of_islands = (
        ", ".join(f"`{name}` is {_show(value)}" for name, value in table.items())
        for table in (presets.LONG_CHILDREN, presets.GPU_CHILDREN)
    )
    lines = [
        "# Search settings",
        "",
        "Made by `nds settings --markdown`; the defaults and sentences are those of `search/settings.py`.",
        "`ndsvrp.solve(problem, string_average=15)` and `nds solve FILE --set string_average=15` change one.",
        "",
        *_markdown(HEAD, rows()),
        "",
        "The column `hybrid` is for a small CVRP on a CPU. For other problems it differs:",
        "",
        f"- From {presets.SMALL} to {presets.MIDDLE} customers there is a population if only a time limit ends",
        f"  the search, of at least {least} s of a core per customer: {few} solutions, or one for each core, at",
        f"  most {most}. A vehicle has to carry {presets.SHORT_ROUTE} customers or more.",
        f"  Then {children}.",
        f"- With windows there is a population for fewer than {presets.SMALL} customers, if a vehicle carries more",
        f"  than {presets.LONG_ROUTE} of them. There is none with prizes or limits on routes, with more than",
        f"  {presets.MIDDLE} customers, on a GPU, and if there are no more vehicles than the customers take at least.",
        "- Without a population `hot` is 0.1.",
        "- If vehicles are limited, `weigh_unserved` and `start_packed` are on.",
        "- With prizes `start_served` is on. If vehicles are limited, too, and no customer is required, `free_fleet`",
        "  is 0.3.",
        "- With windows, if a vehicle carries more than 25 customers, `open_cheaper` is 0.5. With prizes, too,",
        "  `serve_bonus` is 0.3.",
        "- Without a population, there are `regions` from 300 customers and 16 routes on, as many as have 150",
        "  customers and 8 routes each, at most 32 on a CPU, and one chain per region.",
        "- From 2,500 customers on, `start_savings` is on, and `hot` is 1.5 / sqrt(N).",
        "- On a GPU there are 256 chains, and `regions` is a power of two.",
        "",
        "With the ruin `policy` on a GPU there are 128 chains, `tails` is 20 and `tails_share` 0.3, and with prizes",
        "`hot` is 0.03, without them `start_savings` is on. There are regions only if there are four or more, and then",
        "`rule_steps` is 400. If `chains` or your own ruin is given, there are no population, no regions and no",
        "`rule_steps`, unless they are given, too.",
        f"If only a time limit ends the search, of at least {by_policy} s per customer, and if there are more",
        f"vehicles than the customers take at least, `islands` is {presets.ISLANDS}, or half of the solutions if that",
        "is less; it is 0 if `chains` or `regions` are given, and in the presets of the paper. With rules it takes",
        f"at least {by_rules} s per customer, windows where a vehicle carries more than {presets.LONG_ROUTE} of them,",
        f"fewer than {presets.LARGE:,} customers, and no limit on vehicles if there are prizes. With islands",
        f"{of_islands}.",
        "",
        "`--preset paper` is the column `nds`, with the ruin `related`, and with 128 chains where there are prizes.",
        "`--preset paper-text` and `--preset paper-code` also set `scope`, `start_rounds` and `temperature_scale`:",
        "[paper.md](paper.md).",
        "",
        "## Options",
        "",
        "Arguments of `ndsvrp.solve` and `ndsvrp.Solver`, and options of `nds solve` (`--solver`, …):",
        "",
        *_markdown(OPTIONS_HEAD, [(name, default or "–", text) for name, default, text in describe(Request)]),
    ]
    return "\n".join(lines) + "\n"


def _markdown(head: tuple[str, ...], content: Sequence[tuple[str, ...]]) -> list[str]:
    line = ["---", *["---:"] * (len(head) - 2), "---"]
    return [f"| {' | '.join(row)} |" for row in (head, line, *((f"`{name}`", *rest) for name, *rest in content))]


def _show(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple):
        return ", ".join(map(str, value))
    return str(value)
