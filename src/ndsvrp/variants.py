"""Named combinations of features. Nothing else in the program knows these names."""

from __future__ import annotations

from dataclasses import dataclass

from ndsvrp.features import CAPACITY, FEATURES, PRIZES, TIME_WINDOWS, Feature
from ndsvrp.problem import Problem


@dataclass(frozen=True)
class Variant:
    """A feature set with the name the field gives it, and how the paper places its customers."""

    name: str
    features: frozenset[Feature]
    layout: str  #: `uniform` or `clustered`: the generator's default for customer locations


VARIANTS = {
    variant.name: variant
    for variant in (
        Variant("cvrp", frozenset({CAPACITY}), "uniform"),
        Variant("vrptw", frozenset({CAPACITY, TIME_WINDOWS}), "clustered"),
        Variant("pcvrp", frozenset({CAPACITY, PRIZES}), "clustered"),
        Variant("pcvrptw", frozenset({CAPACITY, TIME_WINDOWS, PRIZES}), "clustered"),
    )
}


def variant_of(problem: Problem) -> Variant:
    """The row whose features are exactly those of the problem."""
    features = frozenset(feature for feature in FEATURES if feature.present(problem))
    return next(variant for variant in VARIANTS.values() if variant.features == features)
