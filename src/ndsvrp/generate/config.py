"""Settings of the generators: one frozen record per part of an instance. Defaults are stated here only."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import isfinite
from typing import Literal, get_args

from ndsvrp.errors import NdsError
from ndsvrp.records import documented, require_record, require_whole

Layout = Literal["uniform", "clustered"]
DepotPosition = Literal["random", "centred", "cornered"]
CustomerPosition = Literal["random", "clustered", "random-clustered"]
DemandKind = Literal["unitary", "1-10", "5-10", "1-100", "50-100", "quadrant", "many-small"]
RouteSize = Literal["3-5", "5-8", "8-12", "12-16", "16-25", "25-50", "triangular"]

#: Seeds of the paper's test sets. Training and tuning never use them.
TEST_SEEDS = frozenset({1233, 1234})

WIDEST = 2**31  # times a random word of 32 bits, a range of whole numbers fits in 64 bits


def choose(what: str, value: str, known: Iterable[str]) -> None:
    """Raise NdsError for an unknown name, and list the known ones."""
    known = tuple(known)
    if value not in known:
        raise NdsError(f"unknown {what} '{value}' (known: {', '.join(known)})")


def _require(holds: bool, message: str) -> None:
    if not holds:
        raise NdsError(message)


@dataclass(frozen=True, kw_only=True)
class Uniform:
    """Depot and customers anywhere in the unit square (Kool et al. 2019)."""

    smallest: int = documented(1, "Smallest demand of a customer.")
    largest: int = documented(9, "Largest demand of a customer; all whole numbers in between are equally likely.")

    def __post_init__(self) -> None:
        require_record(self, {})
        message = f"demands must satisfy 0 <= smallest <= largest, got {self.smallest} and {self.largest}"
        _require(0 <= self.smallest <= self.largest, message)
        _require(self.largest < WIDEST, f"largest must be below {WIDEST:,}, got {self.largest}")


@dataclass(frozen=True, kw_only=True)
class Clustered:
    """The X generator (Uchoa et al. 2017) on a grid of 0 … 1000, divided by 1000.

    The defaults are the paper's: its script's types 2 (depot), 2 (customers), 2 (demand) and 3 (route size),
    with the seeds, the attraction and the route sizes of Queiroga et al. 2021. The set X itself was drawn with
    `seeds=(3, 8)`, `halving=40 * math.log(2)` and `route_size="triangular"`.
    """

    depot: DepotPosition = documented(
        "centred", "Position of the depot: anywhere on the grid, at (500, 500), or at (0, 0)."
    )
    customers: CustomerPosition = documented(
        "clustered", "Positions of customers: anywhere, around seeds, or half of them anywhere and half around seeds."
    )
    seeds: tuple[int, int] = documented((2, 6), "Fewest and most seeds: customers that attract others.")
    halving: float = documented(40.0, "Grid distance over which the attraction of a seed halves.")
    demand: DemandKind = documented(
        "1-10",
        "Demands: all 1, uniform in a range, 51-100 in the first and third quadrant and 1-50 in the others, "
        "or 50-100 for three customers in two routes and 1-10 for all others.",
    )
    route_size: RouteSize = documented(
        "8-12", "Customers a vehicle can serve on average: uniform in a range, or triangular from 3 over 6 to 25."
    )

    def __post_init__(self) -> None:
        choose("depot position", self.depot, get_args(DepotPosition))
        choose("customer position", self.customers, get_args(CustomerPosition))
        choose("demand distribution", self.demand, get_args(DemandKind))
        choose("route size", self.route_size, get_args(RouteSize))
        require_record(self, {})
        is_pair = isinstance(self.seeds, tuple | list) and len(self.seeds) == 2
        _require(is_pair, f"seeds must be two numbers, got {self.seeds!r}")
        low, high = self.seeds
        require_whole("seeds", low)
        require_whole("seeds", high)
        _require(1 <= low <= high, f"seeds must satisfy 1 <= fewest <= most, got {low} and {high}")
        _require(high < WIDEST, f"seeds must be below {WIDEST:,}, got {high}")
        _require(self.halving > 0 and isfinite(self.halving), f"halving must be positive, got {self.halving}")


@dataclass(frozen=True, kw_only=True)
class Windows:
    """Time windows after Solomon (1987): random centres, equal widths, clipped to times that a vehicle can keep.

    All times are whole multiples of `tick`.
    """

    horizon: float = documented(
        1.8, "Closing time of the depot. It is later if the farthest customer needs it for a window of half the width."
    )
    width: float = documented(0.4, "Length of a window that is not clipped.")
    service: float = documented(0.05, "Time spent at each customer.")
    tick: float = documented(0.001, "Resolution of times, and the slack at both ends of a window.")

    def __post_init__(self) -> None:
        require_record(self, {})
        for name in ("horizon", "width", "tick"):
            value = getattr(self, name)
            _require(value > 0 and isfinite(value), f"{name} must be positive, got {value}")
        _require(self.service >= 0 and isfinite(self.service), f"service must not be negative, got {self.service}")


@dataclass(frozen=True, kw_only=True)
class Prizes:
    """Prizes: a part depends on demand, the rest is random."""

    low: float = documented(0.1, "Smallest prize, above 0 (a customer without a prize is required).")
    high: float = documented(0.2, "Largest prize.")
    share: float = documented(0.5, "Part of the prize that grows with demand; the rest is uniform.")

    def __post_init__(self) -> None:
        require_record(self, {})
        message = f"prizes must satisfy 0 < low <= high, got {self.low} and {self.high}"
        _require(0 < self.low <= self.high < float("inf"), message)
        _require(0 <= self.share <= 1, f"share must be between 0 and 1, got {self.share}")
