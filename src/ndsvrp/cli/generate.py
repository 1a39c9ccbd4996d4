"""`nds generate`."""

from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_args

import typer

from ndsvrp.cli.formatting import say
from ndsvrp.cli.options import one_of
from ndsvrp.errors import NdsError
from ndsvrp.generate import Clustered, Layout, Prizes, Uniform, Windows, generate
from ndsvrp.generate.config import CustomerPosition, DemandKind, DepotPosition, RouteSize
from ndsvrp.io import write_set
from ndsvrp.io.files import check_writable
from ndsvrp.io.npz import MAX_UNPACKED
from ndsvrp.text import amount, spread
from ndsvrp.variants import VARIANTS

Config = TypeVar("Config", Uniform, Clustered, Windows, Prizes)

MOST = MAX_UNPACKED // 64  # bytes of a customer with all constraints

_UNIFORM, _CLUSTERED = "Layout uniform", "Layout clustered (the X generator)"
_WINDOWS, _PRIZES = "Time windows", "Prizes"


def _option(panel: str, config: Any, name: str, choices: Any = None, flag: str | None = None) -> Any:
    """Return an option with the help and the default of a field."""
    field = next(field for field in fields(config) if field.name == name)
    sentence = field.metadata["doc"]
    if choices is not None:
        sentence += f" One of {', '.join(get_args(choices))}."
    default = "-".join(map(str, field.default)) if isinstance(field.default, tuple) else field.default
    return typer.Option(
        flag or f"--{name.replace('_', '-')}",
        help=f"{sentence} [default: {default}]".replace("[default", r"\[default"),
        metavar="MIN-MAX" if isinstance(field.default, tuple) else None,
        rich_help_panel=panel,
    )


def generate_command(
    variant: Annotated[
        str, typer.Argument(metavar="VARIANT", help=f"One of {', '.join(VARIANTS)}.", **one_of(VARIANTS))
    ],
    customers: Annotated[int, typer.Option("-n", "--customers", min=1, metavar="N", help="Customers per instance.")],
    out: Annotated[Path, typer.Option(metavar="SET.npz", help="File to write.")],
    count: Annotated[int, typer.Option(min=1, metavar="N", help="Number of instances.")] = 1,
    seed: Annotated[
        int, typer.Option(min=0, metavar="N", help="Random seed. Instance i depends on seed and i only.")
    ] = 0,
    first: Annotated[int, typer.Option(min=0, metavar="I", help="Number of the first instance.")] = 0,
    layout: Annotated[
        str | None,
        typer.Option(metavar="NAME", help=f"One of {', '.join(get_args(Layout))}; by default that of the variant."),
    ] = None,
    capacity: Annotated[
        float | None, typer.Option(metavar="Q", help="Vehicle capacity; by default as the layout has it.")
    ] = None,
    smallest: Annotated[int | None, _option(_UNIFORM, Uniform, "smallest")] = None,
    largest: Annotated[int | None, _option(_UNIFORM, Uniform, "largest")] = None,
    depot: Annotated[str | None, _option(_CLUSTERED, Clustered, "depot", DepotPosition)] = None,
    customer_layout: Annotated[
        str | None, _option(_CLUSTERED, Clustered, "customers", CustomerPosition, "--customer-layout")
    ] = None,
    seeds: Annotated[str | None, _option(_CLUSTERED, Clustered, "seeds")] = None,
    halving: Annotated[float | None, _option(_CLUSTERED, Clustered, "halving")] = None,
    demand: Annotated[str | None, _option(_CLUSTERED, Clustered, "demand", DemandKind)] = None,
    route_size: Annotated[str | None, _option(_CLUSTERED, Clustered, "route_size", RouteSize)] = None,
    horizon: Annotated[float | None, _option(_WINDOWS, Windows, "horizon")] = None,
    width: Annotated[float | None, _option(_WINDOWS, Windows, "width")] = None,
    service: Annotated[float | None, _option(_WINDOWS, Windows, "service")] = None,
    tick: Annotated[float | None, _option(_WINDOWS, Windows, "tick")] = None,
    prize_low: Annotated[float | None, _option(_PRIZES, Prizes, "low", flag="--prize-low")] = None,
    prize_high: Annotated[float | None, _option(_PRIZES, Prizes, "high", flag="--prize-high")] = None,
    prize_share: Annotated[float | None, _option(_PRIZES, Prizes, "share", flag="--prize-share")] = None,
) -> None:
    """Generate a set of random instances. The same seed gives the same instances."""
    if out.suffix.lower() != ".npz":
        raise NdsError(f"{out}: a set is written as .npz")
    if customers * count > MOST:
        raise NdsError(f"{customers * count:,} customers make a set too large to be read: at most {MOST:,}")
    check_writable(out)
    uniform = _config(Uniform, smallest=smallest, largest=largest)
    clustered = _config(
        Clustered, depot=depot, customers=customer_layout, seeds=_pair(seeds), halving=halving, demand=demand,
        route_size=route_size,
    )  # fmt: skip
    windows = _config(Windows, horizon=horizon, width=width, service=service, tick=tick)
    prizes = _config(Prizes, low=prize_low, high=prize_high, share=prize_share)
    problems = generate(
        variant, customers, count=count, seed=seed, first=first, layout=layout, capacity=capacity, uniform=uniform,
        clustered=clustered, windows=windows, prizes=prizes,
    )  # fmt: skip
    write_set(out, problems)
    capacities = spread(problem.capacity for problem in problems)
    kind = f"{layout or VARIANTS[variant].layout} {variant.upper()}"
    say(
        f"{out}: {amount(count, 'instance')} of {kind} with {amount(customers, 'customer')}, "
        f"capacity {capacities}, seed {seed}"
    )


def _config(kind: type[Config], **given: Any) -> Config | None:
    """Return a record with the given values, or None if there are none: unused settings are refused."""
    given = {name: value for name, value in given.items() if value is not None}
    return kind(**given) if given else None


def _pair(text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    low, dash, high = text.partition("-")
    if not (dash and low.isdecimal() and high.isdecimal()):
        raise NdsError(f"--seeds: '{text}' is not a range like 2-6")
    return int(low), int(high)
