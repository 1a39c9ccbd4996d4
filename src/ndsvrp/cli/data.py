"""The command `nds data`: benchmark sets by name, and sets of others."""

from pathlib import Path
from typing import Annotated

import typer

from ndsvrp.cli.formatting import say
from ndsvrp.cli.options import option
from ndsvrp.data.sets import SETS, SUITES, BenchmarkSet
from ndsvrp.errors import NdsError
from ndsvrp.io import write_set
from ndsvrp.io.files import check_writable, exists
from ndsvrp.text import amount
from ndsvrp.variants import VARIANTS, variant_of

HEAD = ("name", "variant", "customers", "instances", "seed", "obtained", "digest", "citation")
NUMBERS = ("customers", "instances", "seed")
_SHOWN = 12  # digits of a digest

app = typer.Typer(no_args_is_help=True, help="List, make and import benchmark sets.")

SetFile = Annotated[Path | None, option("SET.npz", "File to write; by default in the current folder.", "--out")]


@app.command("list")
def list_command() -> None:
    """List the benchmark sets that the program knows, with a digest of their content.

    Names of sets that are shipped or made can be given to 'nds solve', 'nds info' and 'nds bench run'.
    """
    rows = [HEAD, *(_cells(row) for row in SETS.values())]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    align = [str.rjust if name in NUMBERS else str.ljust for name in HEAD]
    for row in rows:  # names and digests are for copying, so no cell is wrapped
        say("  ".join(pad(cell, width) for pad, cell, width in zip(align, row, widths, strict=True)).rstrip())
    say("")
    say("made: 'nds data make NAME' writes NAME.npz. shipped: in the package. files: a folder of yours.")
    for name, members in SUITES.items():
        say(f"{name}: stands for {', '.join(members)}.")


@app.command("make")
def make_command(
    names: Annotated[
        list[str],
        typer.Argument(metavar="NAME…", help="Sets that 'nds data list' shows as made; paper: the twelve test sets."),
    ],
    out: SetFile = None,
    instances: Annotated[int | None, option("N", "Only the first N instances.", min=1)] = None,
) -> None:
    """Make the paper's sets, with the random numbers of the authors' generators and the paper's seeds."""
    known = [row.name for row in SETS.values() if row.seed is not None]
    wanted = [member for name in names for member in (SUITES["paper"] if name == "paper" else (name,))]
    for name in wanted:
        if name not in known:
            raise NdsError(f"no set '{name}' that can be made (known: {', '.join(known)}; paper)")
    if out is not None and len(wanted) > 1:
        raise NdsError("--out: one file is for one set")
    for name, target in [(name, _target(out, Path(f"{name}.npz"))) for name in wanted]:
        _make(SETS[name], target, instances)


def _make(row: BenchmarkSet, target: Path, instances: int | None) -> None:
    """Make a set, compare its digest, write it, and say what it is."""
    from ndsvrp.data.make import digest, make, problems

    arrays = make(row, instances)
    content = digest(arrays)
    whole = instances is None or instances == row.instances
    if whole and content != row.digest:
        what = f"digest {content[:_SHOWN]}, expected {row.digest[:_SHOWN]}: this Python or numpy draws other numbers"
        raise NdsError(f"{row.name}: {what}")
    write_set(target, problems(row.name, arrays))
    count = amount(len(arrays["capacity"]), "instance")
    say(f"{target}: {count} of {row.variant.upper()} with {amount(row.size, 'customer')}, seed {row.seed}")
    say(f"digest {content}" + (", as recorded" if whole else f", of the first {instances} of {row.instances:,}"))
    say(row.evidence)


@app.command("import")
def import_command(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A .pkl, .pt or .npz file of another program.")],
    variant: Annotated[
        str | None, option("NAME", f"Refuse the file unless it holds this: {', '.join(VARIANTS)}.")
    ] = None,
    capacity: Annotated[
        float | None, option("Q", "Vehicle capacity, for files with demands divided by it (POMO's .pt).")
    ] = None,
    out: SetFile = None,
) -> None:
    """Import a set of another program as an .npz set: Kool's pickles, tensors of POMO and NDS, arrays of RL4CO.

    Nothing in the file is run. Every instance is checked. Numbers are kept exactly, except for
    demands that are divided by the capacity.
    """
    from ndsvrp.data.foreign import import_set

    target = _target(out, Path(file.name).with_suffix(".npz") if file.suffix else Path(f"{file.name}.npz"))
    imported = import_set(file, variant, capacity)
    write_set(target, imported.problems)
    first = imported.problems[0]
    count, customers = amount(len(imported.problems), "instance"), amount(first.customers, "customer")
    say(f"{target}: {count} of {variant_of(first).title} with {customers}, from the layout of {imported.layout}")
    if imported.note:
        say(f"{target}: {imported.note}", error=True)


def _target(out: Path | None, default: Path) -> Path:
    """Return the file to write. Without --out nothing is replaced."""
    if out is None and exists(default):
        raise NdsError(f"{default} is there already; --out names another file")
    target = default if out is None else out
    if target.suffix.lower() != ".npz":
        raise NdsError(f"{target}: a set is written as .npz")
    check_writable(target)
    return target


def _cells(row: BenchmarkSet) -> tuple[str, ...]:
    low, high = row.customers
    return (
        row.name,
        row.variant,
        f"{low:,}" if low == high else f"{low:,}-{high:,}",
        f"{row.instances:,}",
        str(row.seed or ""),
        row.origin,
        row.digest[:_SHOWN],
        row.citation,
    )
