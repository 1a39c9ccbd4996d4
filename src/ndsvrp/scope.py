"""What the program does not solve, by the words that files and calls use for it."""

from collections.abc import Callable, Collection, Iterable
from difflib import get_close_matches
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

_HERE = {
    "tw_early": "window takes the earliest and the latest start",
    "tw_late": "window takes the earliest and the latest start",
    "service_duration": "service takes it",
    "required": "a prize makes a customer optional",
    "num_available": "vehicles takes it",
    "shift_duration": "max_duration takes it",
    "fixed_cost": "vehicle_cost takes it",
    **dict.fromkeys(("vehicle_type", "vehicle_types"), "not supported: vehicles that differ"),
    "unit_distance_cost": "not supported: costs per distance",
    "unit_duration_cost": "not supported: costs per duration",
    "round_func": "metric takes it",
    **dict.fromkeys(("time_window", "time_windows"), "windows takes it, or window of a customer"),
    **dict.fromkeys(("service_time", "service_times"), "service takes it"),
    **dict.fromkeys(("coords", "locations"), "coordinates takes it"),
    "latitude": "lat takes it",
    "longitude": "lon takes it",
    "distance_matrix": "distance takes it",
    **dict.fromkeys(("time_matrix", "duration_matrix"), "duration takes it"),
    **dict.fromkeys(("num_vehicles", "vehicle_count"), "vehicles takes it"),
    "vehicle_capacity": "capacity takes it",
    **dict.fromkeys(("max_runtime", "time_limit", "timeout"), "time takes it, in seconds"),
    **dict.fromkeys(("max_iterations", "num_iterations"), "iterations takes it"),
    "initial_solution": "init takes it",
    "display": "callback gets the progress, and the logger 'ndsvrp'",
}
"""By the keywords of PyVRP, OR-Tools and others that have another name here, or none."""


CLOSE = 0.75  # similarity of two names, one of which may be mistyped


def unsupported(name: str) -> str | None:
    """Return what a name stands for that is not supported: `pickups and deliveries`; None if no word is known."""
    words = name.upper().split("_")
    return next((meaning for word, meaning in _MEANINGS.items() if word in words), None)


def refuse_keyword(call: str, name: str, known: Iterable[str]) -> NoReturn:
    """Raise for a keyword that a call does not have, with those that it has."""
    known = list(known)
    meaning = unsupported("_".join(word for word in name.split("_") if word not in "_".join(known).split("_")))
    hint = keyword_hint(name, known) or (f"not supported: {meaning}; " if meaning else "")
    raise NdsError(f"{call}: unknown '{name}' ({hint}known: {', '.join(known)})")


def keyword_hint(name: str, known: Collection[str]) -> str:
    """Return what to write in place of a keyword, to stand before the known ones; empty if that cannot be told."""
    other = next((other for other in (f"{name}s", name.removesuffix("s")) if other in known), None)
    hint = _HERE.get(name, "") if other is None else f"{other} takes it"
    if hint.startswith("not supported") or any(word in known for word in hint.split()):
        return f"{hint}; "
    close = [] if unsupported(name) else get_close_matches(name, known, 1, CLOSE)
    return f"did you mean {close[0]}? " if close else ""


def refuse_unnamed(call: str, values: tuple[Any, ...]) -> None:
    """Raise for options without a name, such as the stop criterion of PyVRP."""
    if values:
        raise NdsError(f"{call} takes options by name, such as time=10; got {type(values[0]).__name__} without one")


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
