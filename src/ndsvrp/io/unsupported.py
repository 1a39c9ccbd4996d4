"""Unknown names in VRPLIB files: remarks are ignored, anything else is refused, because it may state a constraint.

Names that a constraint record reads never get here.
"""

from ndsvrp.constraints import MAX_DISTANCE, MAX_DURATION
from ndsvrp.scope import unsupported

#: fields about the file, not about the problem
REMARKS = {
    "AUTHOR", "AUTHORS", "BEST_KNOWN", "BEST_KNOWN_SOLUTION", "BKS", "CONTACT", "CREATED", "CREATOR", "DATE",
    "DESCRIPTION", "DOI", "EMAIL", "GENERATOR", "LICENSE", "NOTE", "NOTES", "OPTIMAL", "OPTIMAL_COST",
    "OPTIMAL_VALUE", "REFERENCE", "REMARK", "REMARKS", "SOURCE", "URL", "VERSION",
}  # fmt: skip

#: words of other names for the limits on routes, and what states these limits
LIMITS = {
    "DISTANCE": f"a limit on the distance of a route is {MAX_DISTANCE.fields[0].header}, or --max-distance",
    "DURATION": f"a limit on the duration of a route is {MAX_DURATION.fields[0].other_header}, or --max-duration",
}


def refusal(name: str, title: str) -> str:
    """Return why a field or section cannot be ignored; `title` is its name in the file."""
    hint = f"--ignore-field {title} ignores it"
    if meaning := unsupported(name):
        return f"states a constraint that is not supported ({meaning}; {hint})"
    words = name.split("_")
    if limit := next((limit for word, limit in LIMITS.items() if "MAX" in words and word in words), None):
        return f"unknown ({limit}; {hint})"
    return f"unknown, it may state a constraint ({hint})"
