"""Names in VRPLIB files that state a constraint this program does not know: such a file is refused."""

from __future__ import annotations

_MEANINGS = {
    "DISTANCE": "a limit on the length of a route",
    "DURATION": "a limit on the duration of a route",
    "BACKHAUL": "backhauls",
    "LINEHAUL": "backhauls",
    "PICKUP": "pickups and deliveries",
    "DELIVERY": "pickups and deliveries",
    "RELEASE": "release times",
    "MUTUALLY": "customers that exclude one another",
    "VEHICLES": "vehicles that differ",
    "VEHICLE": "vehicles that differ",
    "SALESMEN": "a number of routes",
    "DEPOTS": "more than one depot",
    "RELOAD": "reloading",
}

#: words in a name that make it a constraint, or a part of the objective, rather than a remark
_WORDS = {
    *_MEANINGS, "ALLOWED", "BREAK", "CAPACITIES", "CAPACITY", "CLUSTER", "CLUSTERS", "COMPATIBILITY", "COST", "COSTS",
    "CTSP", "DEADLINE", "DEMAND", "DEMANDS", "DEPOT", "DRAFT", "DURATIONS", "EDGES", "END", "FIXED", "FLEET", "GROUP",
    "GROUPS", "GVRP", "INCOMPATIBILITY", "LENGTH", "LIMIT", "MAX", "MAXIMUM", "MIN", "MINIMUM", "MTSP", "OPEN",
    "OPTIONAL", "PENALTY", "PRECEDENCE", "PRIZE", "PROFIT", "RANGE", "REQUIRED", "RISK", "ROUTE", "ROUTES", "SCALE",
    "SERVICE", "SET", "SETS", "SHIFT", "SKILL", "SKILLS", "SPEED", "SPLIT", "START", "TIME", "TIMES", "TOUR",
    "TRAILER", "TRUCKS", "WAITING", "WEIGHT", "WINDOW", "WINDOWS",
}  # fmt: skip


def refusal(name: str) -> str | None:
    """Why a field or section of this name cannot be left aside; None if it is but a remark."""
    words = name.split("_")
    for word, meaning in _MEANINGS.items():
        if word in words:
            return f"states a constraint that is not supported ({meaning})"
    if any(word in _WORDS for word in words):
        return "may state a constraint, and is not known"
    return None
