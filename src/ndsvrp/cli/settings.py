"""`nds settings`: every search setting, from the place where it is defined."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.table import Table

from ndsvrp.cli.words import console
from ndsvrp.records import describe
from ndsvrp.search import settings
from ndsvrp.search.settings import Settings

HEAD = ("setting", "nds", "sisr", "what it is")


def settings_command(
    markdown: Annotated[bool, typer.Option("--markdown", help="As a page of the documentation.")] = False,
) -> None:
    """List every search setting with its value for either solver; 'nds solve --set NAME=VALUE' changes one."""
    if markdown:
        print(page(), end="")
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in HEAD:
        table.add_column(name, no_wrap=name in HEAD[:3], justify="right" if name in HEAD[1:3] else "left")
    for row in rows():
        table.add_row(*row)
    console().print(table)


def rows() -> list[tuple[str, str, str, str]]:
    """(name, value for nds, value for sisr, sentence) of every setting."""
    sisr = settings.sisr()
    return [(name, _show(default), _show(getattr(sisr, name)), text) for name, default, text in describe(Settings)]


def page() -> str:
    """docs/settings.md."""
    lines = [
        "# Search settings",
        "",
        "Made by `nds settings --markdown`; the defaults and sentences are those of `search/settings.py`.",
        "`ndsvrp.solve(problem, string_average=15)` and `nds solve FILE --set string_average=15` change one.",
        "",
        f"| {' | '.join(HEAD)} |",
        "| --- | ---: | ---: | --- |",
        *(f"| `{name}` | {nds} | {sisr} | {text} |" for name, nds, sisr, text in rows()),
        "",
        "`--preset paper` is the column `nds`, with the ruin `related`, and with 128 chains where there are prizes.",
    ]
    return "\n".join(lines) + "\n"


def _show(value: Any) -> str:
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)
