"""Costs of short searches on a GPU, on sets where those of other solvers are known: cvrp500, vrptw500 and pcvrp500.

Every cost comes from `check`, in a worker process (bench/run.py).
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

from ndsvrp.bench.gpu_engine import CHAINS
from ndsvrp.bench.rows import Row
from ndsvrp.bench.run import run
from ndsvrp.bench.solvers import DEFAULT
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
    """Return the files of the sets by name."""
    found = {asked.name: folder / f"{asked.name}.npz" for asked in ASKED}
    for path in found.values():
        if not path.is_file():
            raise InstanceError("no such file", file=str(path))
    return found


def measure(folder: Path, chains: int = CHAINS) -> Iterator[Row]:
    """Yield a row for each, and how far the costs of the policy are below those of related removal."""
    files, costs = files_of(folder), {}
    for each in ASKED:
        rows = run(
            [files[each.name]], ["nds"], [each.seconds], f"0-{each.instances - 1}", [SEED],
            request=replace(DEFAULT, device="cuda", ruin=each.ruin, chains=chains), together=each.together,
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
