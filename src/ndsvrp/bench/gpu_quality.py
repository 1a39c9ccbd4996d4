"""What searches on a GPU find in seconds, on instances with known competitors: the sets cvrp500, vrptw500 and pcvrp500.

Every cost went through `check`, in a process of its own (bench/run.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

from ndsvrp.bench.gpu_engine import CHAINS
from ndsvrp.bench.rows import Row
from ndsvrp.bench.run import run
from ndsvrp.errors import InstanceError, NdsError

SEED = 1


class Asked(NamedTuple):
    """Searches whose mean cost is measured."""

    name: str  #: of the set
    ruin: str
    seconds: float  #: per instance
    instances: int  #: the first ones of the set
    together: int = 1

    @property
    def what(self) -> str:
        """`mean cost of 16 in 4 s`."""
        batch = f", {self.together} together" if self.together > 1 else ""
        return f"mean cost of {self.instances} in {self.seconds:g} s{batch}"


ASKED = (
    Asked("cvrp500", "policy", 4.0, 16),
    Asked("cvrp500", "policy", 4.0, 16, together=16),
    *(Asked(name, ruin, 6.0, 8) for name in ("vrptw500", "pcvrp500") for ruin in ("policy", "related")),
)


def files_of(folder: Path) -> dict[str, Path]:
    """Where the sets are."""
    found = {asked.name: folder / f"{asked.name}.npz" for asked in ASKED}
    for path in found.values():
        if not path.is_file():
            raise InstanceError("no such file", file=str(path))
    return found


def measure(folder: Path, chains: int = CHAINS) -> Iterator[Row]:
    """A row for each, and for the policy how far below related removal its costs are."""
    files, costs = files_of(folder), {}
    for each in ASKED:
        rows = run(
            files[each.name], ["nds"], each.seconds, f"0-{each.instances - 1}", SEED,
            how={"device": "cuda", "ruin": each.ruin, "chains": chains}, together=each.together,
        )  # fmt: skip
        for row in rows:
            if not row.get("feasible"):
                raise NdsError(f"{each.name} {row['instance']}: {row.get('error', 'nothing feasible was found')}")
        costs[each] = fmean(row["cost"] for row in rows)
        yield {
            "instance": each.name, "what": each.what, "removal": each.ruin, "value": costs[each], "unit": "",
            "costs": [row["cost"] for row in rows], "seconds": fmean(row["seconds"] for row in rows), "seed": SEED,
            "model": rows[0]["settings"].get("model"),
        }  # fmt: skip
        same = each._replace(ruin="policy")
        if each.ruin == "related" and same in costs:
            below = 100 * (1 - costs[same] / costs[each])
            yield {"instance": each.name, "what": "policy below related", "value": below, "unit": "%"}
