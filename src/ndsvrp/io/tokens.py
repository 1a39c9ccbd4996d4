"""Tokens of a text file: as numbers, and as text in messages."""

import math

from ndsvrp.text import printable


def is_number(word: str) -> bool:
    """Return whether a word is a finite number."""
    try:
        return math.isfinite(float(word)) and "_" not in word
    except ValueError:
        return False


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
