"""Tokens of a text file: as numbers, and as text in messages."""

import math

from ndsvrp.text import printable


def is_number(word: str) -> bool:
    """Return whether a word is a finite number."""
    try:
        return math.isfinite(float(word)) and "_" not in word
    except ValueError:
        return False


def decimal(word: str) -> str:
    """Return a number with a decimal comma as one with a point, any other word as it is."""
    with_point = word.replace(",", ".")
    return with_point if is_number(with_point) else word


def count(word: str) -> int | None:
    """Return a word of plain digits as a whole number; None for anything else."""
    return int(word) if word.isascii() and word.isdecimal() and len(word) <= 9 else None


def shown(text: str) -> str:
    """Return text for a one-line message: in quotes, shortened, unprintable characters escaped."""
    text = text if len(text) <= 40 else text[:40] + " …"
    return f"'{printable(text)}'"


def amount(number: int, thing: str) -> str:
    """Return `1 value`, `2 values`."""
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"
