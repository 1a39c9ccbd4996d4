"""The benchmark sets that the program knows."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Literal

TEST_SEED, VALIDATION_SEED = 1234, 1233  # of the paper

KOOL = "Kool et al. 2019"
NDS = "Hottung et al. 2025"
Origin = Literal["made", "shipped", "files"]


@dataclass(frozen=True)
class BenchmarkSet:
    """A set with its name, and how it is obtained."""

    name: str
    variant: str
    customers: tuple[int, int]  #: fewest and most
    instances: int
    citation: str
    origin: Origin = "made"  #: made by `nds data make`, shipped with the package, or files of the user
    seed: int | None = None
    evidence: str = ""  #: of a set that is made: what it was compared with

    @property
    def size(self) -> int:
        """Customers of a set whose instances have the same number."""
        return self.customers[0]

    @property
    def digest(self) -> str:
        """Digest of the content; empty for files of the user."""
        return _digests().get(self.name, "")


@cache
def _digests() -> dict[str, str]:
    table: dict[str, str] = json.loads(files(__package__).joinpath("digests.json").read_text(encoding="utf-8"))
    return table


def _published(count: int) -> str:
    return f"bit-identical to the published set where compared: its first {count} instances"


def _generator(count: int) -> str:
    return f"bit-identical to what the authors' generator draws where compared: its first {count} instances"


_SAME = "drawn in the order of the authors' generator, as {}, which was compared; this set was not"
_EVIDENCE = {
    "cvrp100": _generator(256),
    "cvrp500": _published(64),
    "cvrp1000": _published(50),
    "cvrp2000": _SAME.format("cvrp1000"),
    "vrptw100": _generator(256),
    "vrptw500": _published(64),
    "vrptw1000": _generator(32),
    "vrptw2000": _generator(16),
    "pcvrp100": _generator(256),
    "pcvrp500": _published(64),
    "pcvrp1000": _published(32),
    "pcvrp2000": _generator(16),
}
_COUNTS = {"cvrp": {100: 10_000, 500: 128, 1000: 100, 2000: 100}}  # section 4 of the paper
_OTHER_COUNTS = {100: 10_000, 500: 250, 1000: 250, 2000: 250}
_CVRP_CITATIONS = {100: KOOL, 500: "Drakulic et al. 2023", 1000: "Ye et al. 2024", 2000: "Ye et al. 2024"}
_UNKNOWN_COUNT = "not known to be identical to the authors' set: all numbers depend on its size, which is not published"


def _paper_sets() -> Iterator[BenchmarkSet]:
    for variant in ("cvrp", "vrptw", "pcvrp"):
        for size, count in _COUNTS.get(variant, _OTHER_COUNTS).items():
            name = f"{variant}{size}"
            citation = _CVRP_CITATIONS[size] if variant == "cvrp" else NDS
            yield BenchmarkSet(name, variant, (size, size), count, citation, "made", TEST_SEED, _EVIDENCE[name])
    for variant in ("cvrp", "vrptw", "pcvrp"):
        name, count = f"{variant}500-validation", _COUNTS.get(variant, _OTHER_COUNTS)[500]
        evidence = _UNKNOWN_COUNT if variant == "cvrp" else _SAME.format(f"{variant}500")
        yield BenchmarkSet(name, variant, (500, 500), count, NDS, "made", VALIDATION_SEED, evidence)


SETS: dict[str, BenchmarkSet] = {
    row.name: row
    for row in (
        *_paper_sets(),
        BenchmarkSet("smoke-cvrp", "cvrp", (50, 50), 2, KOOL, "shipped", TEST_SEED),
        BenchmarkSet("smoke-vrptw", "vrptw", (50, 50), 2, NDS, "shipped", TEST_SEED),
        BenchmarkSet("smoke-pcvrp", "pcvrp", (50, 50), 2, NDS, "shipped", TEST_SEED),
        BenchmarkSet("smoke-x", "cvrp", (105, 105), 1, "Uchoa et al. 2017", "shipped"),
        BenchmarkSet("smoke-solomon", "vrptw", (100, 100), 1, "Solomon 1987", "shipped"),
        BenchmarkSet("X", "cvrp", (100, 1000), 100, "Uchoa et al. 2017", "files"),
        BenchmarkSet("XXL", "cvrp", (3000, 30000), 10, "Arnold, Gendreau & Sörensen 2019", "files"),
        BenchmarkSet("Solomon", "vrptw", (100, 100), 56, "Solomon 1987", "files"),
        BenchmarkSet("HG1000", "vrptw", (1000, 1000), 60, "Gehring & Homberger 1999", "files"),
        BenchmarkSet("PCVRPTW", "pcvrptw", (1000, 1000), 60, "PyVRP/Instances", "files"),
    )
}

#: Names that stand for several sets.
SUITES = {
    "smoke": tuple(name for name, row in SETS.items() if row.origin == "shipped"),
    "paper": tuple(name for name, row in SETS.items() if row.origin == "made" and row.seed == TEST_SEED),
    "literature": tuple(name for name, row in SETS.items() if row.origin == "files"),
}
