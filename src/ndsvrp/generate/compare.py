"""Compare statistics of given sets and generated ones: `python -m ndsvrp.generate.compare SET.npz …`.

Every set is compared with 256 instances of its variant and size, generated with seed 0 and the default settings.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ndsvrp.errors import NdsError
from ndsvrp.generate import generate
from ndsvrp.io import read_set
from ndsvrp.problem import Problem
from ndsvrp.variants import variant_of

Row = dict[str, float]


def statistics(problem: Problem) -> Row:
    """Return means over the customers of one instance, for everything that the generators decide."""
    assert problem.coordinates is not None
    customers = np.arange(1, problem.customers + 1)
    nearest = [np.partition(problem.length(c, customers), 1)[1] for c in customers]
    row = {
        "demand": float(np.mean(problem.demand[1:])),
        "capacity": problem.capacity,
        "distance to the depot": float(np.mean(problem.length(0, customers))),
        "distance to the nearest": float(np.mean(nearest)),
    }
    if problem.windows is not None:
        ready, due = problem.windows[1:].T
        row["window width"] = float(np.mean(due - ready))
        row["windows of full width"] = float(np.mean(due - ready > np.max(due - ready) - 1e-6))
        row["ready time"] = float(np.mean(ready))
    if problem.prize is not None:
        row["prize"] = float(np.mean(problem.prize[1:]))
        row["correlation of prize and demand"] = float(np.corrcoef(problem.prize[1:], problem.demand[1:])[0, 1])
    return row


def averages(problems: Sequence[Problem]) -> dict[str, tuple[float, float]]:
    """Return the mean over the instances and its standard error, for every statistic."""
    rows = [statistics(problem) for problem in problems]
    columns = {key: np.array([row[key] for row in rows]) for key in rows[0]}
    return {key: (float(c.mean()), float(c.std(ddof=1) / len(c) ** 0.5)) for key, c in columns.items()}


def main(files: list[str]) -> None:
    """Print a Markdown table with one row per set and quantity."""
    print("| set | of | mean of | given | generated |\n| --- | ---: | --- | ---: | ---: |")
    for file in files:
        given = read_set(file)
        name, n = variant_of(given[0]).name, given[0].customers
        ours = averages(generate(name, n, count=256))
        for quantity, (mean, error) in averages(given).items():
            columns = [Path(file).stem, f"{len(given)}", quantity, f"{mean:.4f} ± {error:.4f}"]
            print(f"| {' | '.join(columns)} | {ours[quantity][0]:.4f} ± {ours[quantity][1]:.4f} |")


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except NdsError as error:
        sys.exit(str(error))
