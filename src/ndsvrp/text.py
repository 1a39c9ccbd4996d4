"""Numbers as text for people."""

from collections.abc import Iterable

import numpy as np

from ndsvrp.metric import Floats


def number(value: float) -> str:
    """Return a number with up to four decimals, as many as needed."""
    text = f"{value:,.4f}".rstrip("0").rstrip(".")
    return text if value == 0 or text.strip("-0.") else f"{value:.3g}"


def compared(one: float, other: float) -> tuple[str, str]:
    """Return two numbers as text with six digits, or as many as it takes to tell them apart; large ones in full."""
    brief, full = (f"{one:g}", f"{other:g}"), (number(one), number(other))
    if brief[0] != brief[1] and "e+" not in brief[0] + brief[1]:
        return brief
    return full if full[0] != full[1] else (repr(float(one)), repr(float(other)))


def amount(count: int, thing: str) -> str:
    """Return `1 route`, `2 routes`."""
    return f"{count:,} {thing}{'' if count == 1 else 's'}"


def printable(text: str) -> str:
    """Return text for a terminal: characters that are not printable, which may control it, are escaped."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def spread(values: Iterable[float]) -> str:
    """Return one number if all values are equal, else the smallest and the largest."""
    values = list(values)
    low, high = min(values), max(values)
    return number(low) if low == high else f"{number(low)} … {number(high)}"


def summary(arrays: Iterable[Floats]) -> str:
    """Return the smallest and the largest of all values, and their mean."""
    values = np.concatenate(list(arrays))
    text = spread([float(values.min()), float(values.max())])
    return text if values.min() == values.max() else f"{text}, mean {number(float(values.mean()))}"
