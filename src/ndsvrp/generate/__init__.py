"""Generate random instances from a seed: uniform and clustered customers, time windows, prizes.

Code belongs here if it turns random numbers into instances, for files, tests and training alike. The generators are
functions over batches of arrays, in numpy or in torch, with counter-based random numbers (`instances.py`). `generate`
calls them in numpy and does not import torch. `docs/instances.md` states the recipe of every part.
"""

from inspect import signature
from typing import Never, get_args

from ndsvrp.errors import NdsError
from ndsvrp.generate.config import TEST_SEEDS, Clustered, Layout, Prizes, Uniform, Windows, choose
from ndsvrp.generate.instances import Recipe
from ndsvrp.generate.layouts import uniform_capacity
from ndsvrp.problem import Problem
from ndsvrp.records import require_whole
from ndsvrp.scope import refuse_keyword
from ndsvrp.variants import VARIANTS

__all__ = ["TEST_SEEDS", "Clustered", "Layout", "Prizes", "Uniform", "Windows", "generate", "uniform_capacity"]


def generate(
    variant: str,
    n: int,
    *,
    count: int = 1,
    seed: int = 0,
    first: int = 0,
    layout: str | None = None,
    capacity: float | None = None,
    uniform: Uniform | None = None,
    clustered: Clustered | None = None,
    windows: Windows | None = None,
    prizes: Prizes | None = None,
    **unknown: Never,
) -> list[Problem]:
    """Return instances `first` … `first + count - 1` of the set with this seed, each with n customers.

    Instance i depends on (seed, i) alone, so a longer set begins with the shorter one. Variants of one layout share
    coordinates, demands and capacities. `layout` defaults to that of the variant, `capacity` to that of the layout.
    The last four arguments hold the settings of each part. Settings for a part that the instances do not have are
    refused.
    """
    for name in unknown:
        refuse_keyword("generate", name, (known for known in signature(generate).parameters if known != "unknown"))
    for name, value, least in (("n", n, 1), ("count", count, 0), ("seed", seed, 0), ("first", first, 0)):
        require_whole(name, value)
        if value < least:
            raise NdsError(f"{name} must be at least {least}, got {value}")
    choose("variant", variant, VARIANTS)
    row = VARIANTS[variant]
    layout = row.layout if layout is None else layout
    choose("layout", layout, get_args(Layout))
    kinds = {"uniform": Uniform, "clustered": Clustered, "windows": Windows, "prizes": Prizes}
    given = dict(zip(kinds, (uniform, clustered, windows, prizes), strict=True))
    for part, settings in given.items():
        if not isinstance(settings, kinds[part] | None):
            how = f"from ndsvrp.generate import {kinds[part].__name__}"
            raise NdsError(f"{part} must be a {kinds[part].__name__}, got {type(settings).__name__} ({how})")
    recipe = Recipe(
        row, layout, n, uniform or Uniform(), clustered or Clustered(), windows or Windows(), prizes or Prizes()
    )
    for part, settings in given.items():
        if settings is not None and part not in recipe.parts | {layout}:
            raise NdsError(f"settings for '{part}' were given, which a {layout} {variant} does not have")
    return recipe.problems(seed, first, count, capacity)
