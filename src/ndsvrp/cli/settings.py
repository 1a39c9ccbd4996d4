"""The command `nds settings`: every setting of a search or of a training run, generated from its definition."""

from collections.abc import Sequence
from textwrap import wrap
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

OF_HYBRID = (
    "From {SMALL} to {MIDDLE} customers there is a population if only a time limit ends the search, of at least "
    "{TIME_TO_RECOMBINE} s of a core per customer: {MIDDLE_POPULATION[0]} solutions, or one for each core, at most "
    "{MIDDLE_POPULATION[1]}. A vehicle has to carry {SHORT_ROUTE} customers or more. Then {MIDDLE_CHILDREN}.",
    "With windows there is a population for fewer than {SMALL} customers, if a vehicle carries more than {LONG_ROUTE} "
    "of them. There is none with prizes or limits on routes, with more than {MIDDLE} customers, on a GPU, and if there "
    "are no more vehicles than the customers take at least.",
    "Without a population `hot` is {HOT}.",
    "If vehicles are limited, `weigh_unserved`, `start_packed` and `count_absences` are on. `fewest_vehicles` limits "
    "them; with it a search has neither population nor islands unless they are given, and `unserved_price` is "
    "{UNSERVED_PRICE} on a CPU if there are windows, a vehicle carries at most {LONG_ROUTE} customers, and there would "
    "be no regions.",
    "If vehicles are limited, no customer is required, and only a time limit ends the search, of at least "
    "{CPU_ISLAND_TIME} s of a core per customer, `islands` is {CPU_ISLANDS} up to {MOST_ON_ISLANDS} customers on a "
    "CPU where there are no regions (below), with {CPU_ISLAND_CHAINS} chains or more, and {ISLAND_CHILDREN}.",
    "With prizes `start_served` is on. If vehicles are limited, too, and no customer is required, `free_fleet` is "
    "{FREE_FLEET}.",
    "With windows, if a vehicle carries more than {LONG_ROUTE} customers, `open_cheaper` is {OPEN_CHEAPER}. With "
    "prizes, too, `serve_bonus` is {SERVE_BONUS}.",
    "Without a population, there are as many `regions` as have {REGION[0]} customers and {REGION[1]} routes each, if "
    "that is two or more, at most {CPU_CHAINS[1]} on a CPU, and one chain per region.",
    "From {LARGE:,} customers on, `start_savings` is on, and `hot` is {LARGE_HOT} / sqrt(N).",
    "On a GPU there are {GPU_CHAINS[1]} chains, and `regions` is a power of two. For a CVRP without a distance matrix "
    "`insert_near` is {INSERT_NEAR}, if a step removes strings of {INSERT_NEAR} / 2 customers in the mean or fewer and "
    "has one order.",
)
ON_A_GPU = (
    "With the ruin `policy` on a GPU there are {GPU_CHAINS[0]} chains, {TAILS}, and with prizes `hot` is {GPU_HOT}, "
    "without them `start_savings` is on. There are regions only if there are {POLICY_REGIONS} or more, and then "
    "`rule_steps` is {RULE_STEPS}. If `chains` or your own ruin is given, there are no population, no regions and no "
    "`rule_steps`, unless they are given, too.",
    "If only a time limit ends the search, of at least {GPU_TIME_TO_RECOMBINE[0]} s per customer, and if there are "
    "more vehicles than the customers take at least, `islands` is {MOST_ISLANDS}, or half of the solutions if that is "
    "less; it is 0 if `chains` or `regions` are given, and in the presets of the paper. With rules it takes at least "
    "{GPU_TIME_TO_RECOMBINE[1]} s per customer, windows where a vehicle carries more than {LONG_ROUTE} of them, and "
    "fewer than {LARGE:,} customers. With islands {ISLAND_CHILDREN}.",
)


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
        *(line for text in OF_HYBRID for line in _filled(text, "- ")),
        "",
        *(line for text in ON_A_GPU for line in _filled(text)),
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


def _filled(text: str, mark: str = "") -> list[str]:
    """Return the lines of a text of the page, with the constants of presets.py that it names in braces."""
    values = {name: _values(value) if isinstance(value, dict) else value for name, value in vars(presets).items()}
    return wrap(
        text.format_map(values | {"HOT": Settings().hot}), 110, initial_indent=mark, subsequent_indent=" " * len(mark),
        break_on_hyphens=False,
    )  # fmt: skip


def _values(settings: dict[str, Any]) -> str:
    return ", ".join(f"`{name}` is {_show(value)}" for name, value in settings.items())


def _markdown(head: tuple[str, ...], content: Sequence[tuple[str, ...]]) -> list[str]:
    line = ["---", *["---:"] * (len(head) - 2), "---"]
    return [f"| {' | '.join(row)} |" for row in (head, line, *((f"`{name}`", *rest) for name, *rest in content))]


def _show(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple):
        return ", ".join(map(str, value))
    return str(value)
