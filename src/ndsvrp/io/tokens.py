"""Words of a text file: as numbers, and as they are shown in messages."""

from __future__ import annotations

import math


def is_number(word: str) -> bool:
    """Whether a word reads as a finite number."""
    try:
        return math.isfinite(float(word)) and "_" not in word
    except ValueError:
        return False


def count(word: str) -> int | None:
    """A word of plain digits as a whole number; None for anything else."""
    return int(word) if word.isascii() and word.isdecimal() and len(word) <= 9 else None


def shown(text: str) -> str:
    """Text from a file in quotes, cut if it is long, unprintable characters escaped: fit for a one-line message."""
    text = text if len(text) <= 40 else text[:40] + " …"
    return "'" + "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text) + "'"


def amount(number: int, thing: str) -> str:
    """`1 value`, `2 values`."""
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"
