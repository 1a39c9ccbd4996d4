"""What the program does not solve, by the words that files and calls use for it."""

from collections.abc import Callable, Iterable
from functools import wraps
from inspect import signature
from typing import Any, NoReturn, TypeVar

from ndsvrp.errors import NdsError

_Init = TypeVar("_Init", bound=Callable[..., None])

_MEANINGS = {
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


def checks_keywords(init: _Init) -> _Init:
    """Make a constructor name unknown keywords first, and then missing ones; Python would name the missing alone."""
    known = {name: each for name, each in signature(init).parameters.items() if name not in ("self", "unknown")}
    required = [name for name, each in known.items() if each.default is each.empty]

    @wraps(init)
    def checked(self: Any, *others: Any, **given: Any) -> None:
        call = type(self).__name__
        for name in given:
            if name not in known:
                refuse_keyword(call, name, known)
        if others:
            raise NdsError(f"{call} takes keywords only ({', '.join(known)})")
        if missing := [name for name in required if name not in given]:
            raise NdsError(f"{call}: missing {' and '.join(missing)} (known: {', '.join(known)})")
        init(self, **given)

    return checked  # type: ignore[return-value]
