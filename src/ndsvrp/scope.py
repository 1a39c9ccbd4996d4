"""What the program does not solve, by the words that files and calls use for it."""

from collections.abc import Iterable
from typing import NoReturn

from ndsvrp.errors import NdsError

_MEANINGS = {
    "DISTANCE": "a limit on the length of a route",
    "DURATION": "a limit on the duration of a route",
    "BACKHAUL": "backhauls",
    "LINEHAUL": "backhauls",
    "PICKUP": "pickups and deliveries",
    "PICKUPS": "pickups and deliveries",
    "DELIVERY": "pickups and deliveries; what the depot delivers is the demand",
    "RELEASE": "release times",
    "MUTUALLY": "customers that exclude one another",
    "VEHICLES": "vehicles that differ",
    "VEHICLE": "vehicles that differ",
    "PROFILE": "vehicles that differ",
    "SKILLS": "vehicles that differ",
    "SALESMEN": "a number of routes",
    "DEPOT": "more than one depot",
    "DEPOTS": "more than one depot",
    "RELOAD": "reloading",
}


def unsupported(name: str) -> str | None:
    """Return what a name stands for that is not supported: `pickups and deliveries`; None if no word is known."""
    words = name.upper().split("_")
    return next((meaning for word, meaning in _MEANINGS.items() if word in words), None)


def refuse_keyword(call: str, name: str, known: Iterable[str]) -> NoReturn:
    """Raise for a keyword that a call does not have, with those that it has."""
    known = list(known)
    meaning = unsupported("_".join(word for word in name.split("_") if word not in "_".join(known).split("_")))
    hint = f"not supported: {meaning}; " if meaning else ""
    raise NdsError(f"{call}: unknown '{name}' ({hint}known: {', '.join(known)})")
