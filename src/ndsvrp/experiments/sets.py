"""The instances of the experiments, as `.npz` sets in a folder that all experiments share.

Sets of the paper are made with the random numbers of its generators; sets of other sizes by our generators.
"""

from collections.abc import Callable
from pathlib import Path

from ndsvrp.bench.instances import Case, find_cases
from ndsvrp.data.make import make, problems
from ndsvrp.data.sets import SETS
from ndsvrp.errors import InstanceError
from ndsvrp.experiments.context import Context
from ndsvrp.experiments.scales import MIDDLE
from ndsvrp.generate import Clustered, Uniform, generate
from ndsvrp.generate.instances import Recipe
from ndsvrp.io import write_set
from ndsvrp.io.files import exists
from ndsvrp.problem import Problem
from ndsvrp.variants import VARIANTS

TEST, VALIDATION = 2001, 2002  #: seeds of generated sets; those of the paper are 1234 and 1233

DISTRIBUTIONS: dict[str, tuple[str, tuple[float, float]]] = {
    "uniform-low": ("uniform", (5, 8)), "uniform-high": ("uniform", (12, 16)),
    "clustered-low": ("clustered", (5, 8)), "clustered-high": ("clustered", (12, 16)),
}  # fmt: skip
"""Layout, and the customers that a vehicle holds on average, of the paper's table on generalization."""


def test_cases(context: Context, problem: str, size: int, count: int | None = None) -> list[Case]:
    """Return the first test instances of a size of the paper, as many as the scale has by default."""
    customers, whole = context.scale.customers[size], context.scale.tests[size]
    return _cases(context, f"{problem}{customers}", problem, customers, whole, TEST)[: count or whole]


def validation_cases(context: Context, problem: str) -> list[Case]:
    """Return the validation instances of the ablations."""
    customers, count = context.scale.customers[MIDDLE], context.scale.validation
    return _cases(context, f"{problem}{customers}-validation", problem, customers, count, VALIDATION)


def distribution_cases(context: Context, name: str) -> list[Case]:
    """Return CVRP instances of one of the distributions, with the depot anywhere."""
    layout, per_route = DISTRIBUTIONS[name]
    customers, count = context.scale.customers[MIDDLE], context.scale.distribution_tests
    recipe = Recipe(
        VARIANTS["cvrp"], layout, customers, Uniform(), Clustered(depot="random"), customers_per_route=per_route
    )
    return _stored(context, f"cvrp{customers}-{name}", count, lambda: recipe.problems(TEST, 0, count))


def _cases(context: Context, name: str, problem: str, customers: int, count: int, seed: int) -> list[Case]:
    if name not in SETS:
        return _stored(context, name, count, lambda: generate(problem, customers, count=count, seed=seed))
    row = SETS[name]
    count = min(count, row.instances)
    return _stored(context, name, count, lambda: problems(name, make(row, count)))


def _stored(context: Context, name: str, count: int, drawn: Callable[[], list[Problem]]) -> list[Case]:
    file: Path = context.out / "sets" / f"{name}.npz"
    if not exists(file):
        file.parent.mkdir(parents=True, exist_ok=True)
        write_set(file, drawn())
    cases = find_cases(file)
    if len(cases) != count:
        scale = context.scale.name
        raise InstanceError(
            f"has {len(cases)} instances, the scale {scale} {count}: choose another --out", file=str(file)
        )
    return cases
