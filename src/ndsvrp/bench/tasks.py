"""What a benchmark consists of: solvers in their configurations, and the tasks of single processes."""

from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from ndsvrp.bench.instances import Case
from ndsvrp.bench.pool import Pool
from ndsvrp.bench.rows import Row
from ndsvrp.bench.solvers import DEFAULT
from ndsvrp.search.planning import Request


@dataclass(frozen=True)
class Entry:
    """A solver in one configuration, with the fields that all its rows share."""

    solver: str
    row: Row
    request: Request = DEFAULT  #: of a solver of this package
    iterations: int | None = None
    together: int = 1
    size: int = 1  #: instances per process
    cores: int = 1
    seeds: int = 1  #: searches of a run, each on a core of its own; the best counts

    @property
    def on_gpu(self) -> bool:
        """Whether its runs are on a GPU."""
        return self.request.device == "cuda"


@dataclass(frozen=True)
class BenchTask:
    """The work of one process: a solver on one instance or on several."""

    entry: Entry
    rows: list[Row]  #: what is known before the search
    cases: list[Case]

    def message(self) -> dict[str, Any]:
        """Return what the process is told."""
        entry, first = self.entry, self.rows[0]
        return {
            "cases": [asdict(case) for case in self.cases], "solver": entry.solver, "request": asdict(entry.request),
            "iterations": entry.iterations, "together": entry.together, "budget": first["budget"],
            "seed": first["seed"], "seeds": entry.seeds,
        }  # fmt: skip


def run_message(pool: Pool, message: dict[str, Any]) -> list[Row]:
    """Return what a run adds to its rows."""
    date = datetime.now(UTC).isoformat(timespec="seconds")
    return [{"date": date} | outcome for outcome in pool.run(message)]
