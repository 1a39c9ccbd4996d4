"""Write a result in the format of the file's ending."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ndsvrp.errors import InstanceError
from ndsvrp.io.files import PathLike, check_name, write_atomic
from ndsvrp.io.geojson import to_geojson
from ndsvrp.io.result import json_bytes, write_result
from ndsvrp.io.sol import write_solution
from ndsvrp.io.stop_table import to_csv

if TYPE_CHECKING:
    from ndsvrp.search.result import Result

PICTURES = (".png", ".svg", ".pdf")  # endings of what `ndsvrp.plot` writes
PAGES = (".html", ".htm")
FILES = (".sol", ".json", ".geojson", ".csv", *PAGES)  # endings of what `save` writes
OTHERS = {
    **dict.fromkeys(PICTURES, "a picture: --plot, or result.plot in Python"),
    ".vrp": "an instance",
    ".tsv": "an instance",
    ".npz": "a set of instances",
    ".xlsx": "a workbook; spreadsheet programs open .csv",
}
"""Endings that would be wrong for the text of a solution, and what they stand for."""


def check_ending(path: PathLike) -> None:
    """Raise for an ending of something else, which would hold the text of a solution."""
    check_name(path)
    if (what := OTHERS.get(suffix := Path(path).suffix.lower())) is not None:
        raise InstanceError(f"'{suffix}' is {what}; a result is .sol, .json, .geojson, .csv or .html", file=str(path))


def check_page(path: PathLike) -> None:
    """Raise for an ending of something else than a page."""
    check_name(path)
    _refuse_others(path, PAGES, "a page is written as .html")


def check_json(path: PathLike) -> None:
    """Raise for an ending of something else than JSON."""
    _refuse_others(path, (".json",), "JSON is written as .json")


def _refuse_others(path: PathLike, own: tuple[str, ...], how: str) -> None:
    """Raise for a known ending that is not one of these."""
    suffix = Path(path).suffix.lower()
    if suffix in {*FILES, *OTHERS}.difference(own):
        raise InstanceError(f"{how}, not as '{suffix}'", file=str(path))


def save(path: PathLike, result: Result) -> None:
    """Write `.json`, `.geojson`, `.csv` or `.html`; any other ending is a solution, as `.sol`, unless in `OTHERS`."""
    check_ending(path)
    suffix = Path(path).suffix.lower()
    if suffix == ".json":
        write_result(path, result)
    elif suffix == ".geojson":
        write_atomic(path, json_bytes(to_geojson(result)))
    elif suffix == ".csv":
        write_atomic(path, to_csv(result))
    elif suffix in PAGES:
        result.to_html(Path(path))
    else:
        write_solution(path, result.solution, result.cost)
