"""JSON and TOML from files that may be damaged or hostile: plain tables, or an error in one line."""

import json
import tomllib
from collections.abc import Callable
from typing import Any

from ndsvrp.errors import InstanceError
from ndsvrp.io.files import MAX_BYTES, MAX_SETTINGS, PathLike, read_text
from ndsvrp.io.tokens import shown

DEEPEST = 32  # tables within tables; those of this package have up to six
LARGEST = 2**63


def read_json(path: PathLike) -> Any:
    """Return the value in a JSON file."""
    return _parsed(_loads, "JSON", read_text(path, MAX_BYTES), str(path))


def read_toml(path: PathLike) -> dict[str, Any]:
    """Return the tables of a TOML file."""
    tables: dict[str, Any] = _parsed(tomllib.loads, "TOML", read_text(path, MAX_SETTINGS, may_be_empty=True), str(path))
    return tables


def parse_json(text: str, file: str | None = None) -> Any:
    """Return the value of a JSON text, or raise InstanceError."""
    return _parsed(_loads, "JSON", text, file)


def parse_toml(text: str) -> dict[str, Any]:
    """Return the tables of a TOML text, or raise InstanceError."""
    tables: dict[str, Any] = _parsed(tomllib.loads, "TOML", text, None)
    return tables


def _loads(text: str) -> Any:
    return json.loads(text, object_pairs_hook=_table)


def _table(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a table; refuse keys that are given twice, of which `json` would keep the last without a word."""
    table: dict[str, Any] = {}
    for key, value in pairs:
        if key in table:
            raise InstanceError(f"{shown(key)} is given twice in one table")
        table[key] = value
    return table


def _parsed(parse: Callable[[str], Any], form: str, text: str, file: str | None) -> Any:
    try:
        value = parse(text)
    except InstanceError as error:
        raise error if file is None else error.located(file) from None
    except (ValueError, RecursionError) as error:  # ValueError: also numbers of thousands of digits
        raise InstanceError(f"is not {form} ({error})", file=file) from None
    _check(value, file)
    return value


def _check(value: Any, file: str | None) -> None:
    """Refuse what later code could not print or walk through: deep nesting, and numbers that no field may have."""
    level = [value]
    for _ in range(DEEPEST):
        below: list[Any] = []
        for entry in level:
            kind = type(entry)  # exact types are enough, and fast: tables have many numbers
            if kind is int and not -LARGEST <= entry < LARGEST:
                raise InstanceError(f"holds a whole number of {entry.bit_length()} bits, more than 64", file=file)
            if kind is list or kind is dict:
                below.extend(entry.values() if kind is dict else entry)
        if not below:
            return
        level = below
    raise InstanceError(f"nests tables more than {DEEPEST} deep", file=file)
