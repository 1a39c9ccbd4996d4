"""Names in VRPLIB files that state an unsupported constraint: such a file is refused.

Names that a constraint record reads never get here.
"""

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

#: words in a name that state a constraint or a part of the objective; all other unknown fields are remarks
_WORDS = {
    *_MEANINGS, "ALLOWED", "BREAK", "CAPACITIES", "CAPACITY", "CLUSTER", "CLUSTERS", "COMPATIBILITY", "COST", "COSTS",
    "CTSP", "DEADLINE", "DEMAND", "DEMANDS", "DEPOT", "DRAFT", "DURATIONS", "EDGES", "END", "FIXED", "FLEET", "GROUP",
    "GROUPS", "GVRP", "INCOMPATIBILITY", "LENGTH", "LIMIT", "MAX", "MAXIMUM", "MIN", "MINIMUM", "MTSP", "OPEN",
    "OPTIONAL", "PENALTY", "PRECEDENCE", "PRIZE", "PROFIT", "RANGE", "REQUIRED", "RISK", "ROUTE", "ROUTES", "SCALE",
    "SERVICE", "SET", "SETS", "SHIFT", "SKILL", "SKILLS", "SPEED", "SPLIT", "START", "TIME", "TIMES", "TOUR",
    "TRAILER", "TRUCKS", "WAITING", "WEIGHT", "WINDOW", "WINDOWS",
}  # fmt: skip


def refusal(name: str) -> str | None:
    """Return why a field or section of this name cannot be ignored; None if it is only a remark."""
    words = name.split("_")
    for word, meaning in _MEANINGS.items():
        if word in words:
            return f"states a constraint that is not supported ({meaning})"
    if any(word in _WORDS for word in words):
        return "may state a constraint, and is not known"
    return None
