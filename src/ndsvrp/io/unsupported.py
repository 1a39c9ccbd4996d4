"""Unknown names in VRPLIB files: remarks are ignored, anything else is refused, because it may state a constraint.

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

#: fields about the file, not about the problem
REMARKS = {
    "AUTHOR", "AUTHORS", "BEST_KNOWN", "BEST_KNOWN_SOLUTION", "BKS", "CONTACT", "CREATED", "CREATOR", "DATE",
    "DESCRIPTION", "DOI", "EMAIL", "GENERATOR", "LICENSE", "NOTE", "NOTES", "OPTIMAL", "OPTIMAL_COST",
    "OPTIMAL_VALUE", "REFERENCE", "REMARK", "REMARKS", "SOURCE", "URL", "VERSION",
}  # fmt: skip


def refusal(name: str, title: str) -> str:
    """Return why a field or section cannot be ignored; `title` is its name in the file."""
    hint = f"--ignore-field {title} ignores it"
    for word, meaning in _MEANINGS.items():
        if word in name.split("_"):
            return f"states a constraint that is not supported ({meaning}; {hint})"
    return f"unknown, it may state a constraint ({hint})"
