"""The HTML page of a result: one file with map, routes, times and convergence, and no reference to another.

The pictures are SVG made of text, except for the curve, which is that of `ndsvrp.plot`. A page of 10,000 customers has
a few MB.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ndsvrp.io.files import write_atomic
from ndsvrp.io.save import check_page
from ndsvrp.report.page import result_page

if TYPE_CHECKING:
    from ndsvrp.search.result import Result

__all__ = ["result_page", "write_page"]


def write_page(result: Result, file: str | Path | None = None) -> str:
    """Return the page, and write it if a file is given."""
    if file is not None:
        check_page(file)
    text = result_page(result)
    if file is not None:
        write_atomic(file, text.encode(errors="backslashreplace"))
    return text
