"""Frozen records of settings: a sentence per field; types and ranges are checked when a record is made."""

from collections.abc import Mapping
from dataclasses import field, fields
from numbers import Integral, Real
from typing import Any, get_type_hints

from ndsvrp.errors import NdsError

Allowed = Mapping[str, tuple[Any, ...]]
"""By field: (smallest, largest) value of a number, or the allowed words."""


def documented(default: Any, text: str) -> Any:
    """Return a field with its default and the sentence that help and reference pages show."""
    return field(default=default, metadata={"doc": text})


def describe(record: Any) -> list[tuple[str, Any, str]]:
    """Return (name, default, sentence) of every field of a class that has a sentence."""
    return [(f.name, f.default, f.metadata["doc"]) for f in fields(record) if "doc" in f.metadata]


def require_record(record: Any, allowed: Allowed) -> None:
    """Raise for a field of a wrong type (int, float, bool, str), out of its range, or not one of its words.

    A list of numbers becomes a tuple. Type and range are those of its entries.
    """
    for name, kind in get_type_hints(type(record)).items():
        value = getattr(record, name)
        entries = [value]
        if kind in (tuple[int, ...], tuple[float, ...]):
            if isinstance(value, str) or not hasattr(value, "__iter__"):
                raise NdsError(f"{name} must be a list, got {value!r}")
            entries, kind = list(value), kind.__args__[0]
            object.__setattr__(record, name, tuple(value))
        for entry in entries:
            _require_type(name, entry, kind)
            if name in allowed:
                _require_allowed(name, entry, allowed[name])


def _require_type(name: str, value: Any, kind: Any) -> None:
    if kind is int:
        require_whole(name, value)
    elif kind is float:
        require_number(name, value)
    elif kind is str and not isinstance(value, str):
        raise NdsError(f"{name} must be text, got {value!r}")
    elif kind is bool and not isinstance(value, bool):
        raise NdsError(f"{name} must be True or False, got {value!r}")


def _require_allowed(name: str, value: Any, choice: tuple[Any, ...]) -> None:
    if isinstance(choice[0], str):
        if value not in choice:
            raise NdsError(f"{name} must be one of {', '.join(filter(None, choice))}, got '{value}'")
    elif not choice[0] <= value <= choice[1]:
        least, most = (str(bound) if isinstance(bound, int) else f"{bound:g}" for bound in choice)
        raise NdsError(f"{name} must be between {least} and {most}, got {value}")


def require_whole(name: str, value: Any) -> None:
    """Raise unless the value is a whole number; numpy integers are."""
    if not isinstance(value, Integral) or isinstance(value, bool):
        raise NdsError(f"{name} must be a whole number, got {value!r}")


def require_number(name: str, value: Any) -> None:
    """Raise unless the value is a number; numpy numbers are."""
    if not isinstance(value, Real) or isinstance(value, bool):
        raise NdsError(f"{name} must be a number, got {value!r}")
