"""Prizes: a customer may stay unserved, which costs its prize. A customer with prize 0 is required."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ndsvrp.constraints.base import Constraint, Facts, Field, Input, per_node, refuse, zero_at_depot
from ndsvrp.constraints.fleet import FLEET
from ndsvrp.metric import Floats
from ndsvrp.text import spread, summary

if TYPE_CHECKING:
    from ndsvrp.engine.ticks import Ticks
    from ndsvrp.problem import Problem

REQUIRED = 1 << 29  # kRequired of the core: the prize of a required customer
DEAR = 64.0  # times the longest leg: a larger prize only says "serve if at all possible"
DEAR_BITS = 22  # kDearBits of the core


def _required(prize: Any) -> Any:
    required = prize == 0
    required[..., 0] = False
    return required


class Prizes(Constraint):
    """Optional customers."""

    name = "prizes"
    fields = (Field("prize", 1, unit="length", section="PRIZE"),)
    inputs = (
        Input("has_prizes", lambda xp, data: xp.ones_like(data.demand)),
        Input("prize", lambda xp, data: data.prize / per_node(data.side()), by_side=True),
        Input("required", lambda xp, data: _required(data.prize)),
    )
    generator = "prizes"

    def check(self, problem: Problem) -> None:
        if (prize := problem.prize) is not None:
            zero_at_depot("prize", prize)
            refuse("prize", prize < 0, lambda i: f"{prize[i]:g} is negative")

    def sort_keys(self, problem: Problem) -> list[tuple[int, Floats]]:
        assert problem.prize is not None
        return [(2, np.where(problem.required, -np.inf, -problem.prize))]

    def lost(self, problem: Problem, unserved: npt.NDArray[np.int64]) -> float:
        return 0.0 if problem.prize is None else float(np.sum(problem.prize[unserved]))

    def largest_length(self, ticks: Ticks) -> Any:
        if ticks.codes_prizes:
            return 0.0
        xp, longest = ticks.xp, ticks.longest
        largest = xp.amax(ticks.problem.prize, axis=-1, keepdims=True)
        return xp.where(longest > 0, xp.minimum(largest, DEAR * longest), largest)

    def native(self, ticks: Ticks) -> dict[str, Any]:
        """Return prizes. Without prizes but with a limited fleet, all customers are required.

        A prize above all costs of service may be cut if its customer is served anyhow. Where customers compete for
        vehicles, prizes are compared with each other, and large ones become codes.
        """
        xp, problem, most = ticks.xp, ticks.problem, ticks.most
        if not (self.present(problem) or FLEET.present(problem)):
            return {"prize": None}
        prize = xp.zeros_like(problem.demand) if problem.prize is None else problem.prize
        cut = ticks.lengths(xp.minimum(prize, most))
        cut = xp.where((prize > 0) & (cut == 0), xp.ones_like(cut), cut)  # some is more than none
        if ticks.is_scarce or ticks.codes_prizes:
            codes = _dear(np.minimum(prize * ticks.per_unit, ticks.largest_cost / len(prize)))
            cut = np.where(prize > most, codes, cut).astype(np.int32)
        return {"prize": xp.where(_required(prize), xp.full_like(cut, REQUIRED), cut)}

    def facts(self, problems: Sequence[Problem]) -> Facts:
        prizes = [problem.prize[1:] for problem in problems if problem.prize is not None]
        if not prizes:
            return []
        optional = [prize[prize > 0] for prize in prizes]
        counts = spread(len(prize) for prize in optional)
        facts = [("optional", f"{counts} of {spread(map(len, prizes))} customers")]
        if sum(map(len, optional)):
            facts.append(("prize", f"{summary(optional)}, in all {spread(float(np.sum(prize)) for prize in optional)}"))
        return facts


def _dear(ticks: Floats) -> Floats:
    """Return codes of prizes above 2^28 ticks, as rules.hpp reads them: an exponent, and 22 bits of the mantissa."""
    mantissa, exponent = np.frexp(np.maximum(ticks, 2.0**28))
    bits = np.floor((2 * mantissa - 1) * 2.0**DEAR_BITS)
    return np.asarray(2.0**28 + (exponent - 1 - DEAR_BITS) * 2.0**DEAR_BITS + bits)


PRIZES = Prizes()
