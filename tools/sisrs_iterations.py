"""Run our SISRs on X instances with the iterations and temperatures of its paper. Print gaps to the best known cost.

    python tools/sisrs_iterations.py X/X-n106-k14.vrp X/X-n1001-k43.vrp --seeds 1 2 3 --out rows.jsonl

Christiaens & Vanden Berghe (2020) make it(n) iterations for n customers, linear between it(100) = 3e7 and it(1000) =
3e8, and cool from T = 100 to T = 1 exponentially. An iteration is one ruin and recreate. All of them take a minute
of one core or more per hundred customers; `--share 0.1` makes a tenth, and cools ten times as fast.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from ndsvrp import Problem, read, solve
from ndsvrp.best_known import best_known
from ndsvrp.io.environment import environment

PER_CUSTOMER = 3e5  # iterations: 3e7 for 100 customers, 3e8 for 1000
HOT, COLD = 100.0, 1.0  # for lengths of the X instances, on a grid of 1000
STEPS = 1000  # ruin and recreate steps at one temperature: an iteration of our search


@dataclass(frozen=True)
class Run:
    """A finished run."""

    instance: str
    customers: int
    iterations: int
    seed: int
    cost: float
    gap: float
    seconds: float


def iterations(customers: int, share: float = 1.0) -> int:
    """Return how many ruin and recreate steps the SISRs paper makes, or this share of them, in whole `STEPS`."""
    return STEPS * max(1, round(share * PER_CUSTOMER * customers / STEPS))


def run(problem: Problem, seed: int, share: float) -> Run:
    """Solve an instance as the SISRs paper does, on one core. The cost is that of `check`."""
    known, steps = best_known(problem), iterations(problem.customers, share)
    if known is None:
        raise SystemExit(f"{problem.name}: no best known cost; this is for the X instances")
    result = solve(
        problem, solver="sisr", iterations=steps // STEPS, rollouts=STEPS, seed=seed, hot=HOT, cold=COLD,
        temperature_scale="absolute", threads=1, device="cpu",
    )  # fmt: skip
    return Run(problem.name, problem.customers, steps, seed, result.cost, known.gap(result.cost), result.seconds)


def table(runs: Sequence[Run]) -> list[str]:
    """Return a Markdown table with a row per instance: means over the seeds."""
    lines = ["| instance | iterations | runs | mean cost | mean gap | seconds |", "| --- " + "| ---: " * 5 + "|"]
    for name in dict.fromkeys(each.instance for each in runs):
        of = [each for each in runs if each.instance == name]
        cost, gap, seconds = (fmean(getattr(each, field) for each in of) for field in ("cost", "gap", "seconds"))
        lines.append(f"| {name} | {of[0].iterations:,} | {len(of)} | {cost:.1f} | {gap:.2f}% | {seconds:.0f} |")
    return lines


def main() -> None:
    """Run all instances and seeds, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("instances", nargs="+", type=Path)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--share", type=float, default=1.0, help="of the paper's iterations")
    parser.add_argument("--out", type=Path, help="file to append a JSON row per run to")
    given = parser.parse_args()
    runs = []
    for file in given.instances:
        for seed in given.seeds:
            runs.append(run(read(file), seed, given.share))
            if given.out:
                with given.out.open("a") as rows:
                    rows.write(json.dumps({**vars(runs[-1]), "share": given.share, **environment()}) + "\n")
    print("\n".join(table(runs)))


if __name__ == "__main__":
    main()
