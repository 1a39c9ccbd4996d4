"""Write a result in the format of the file's ending."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ndsvrp.errors import InstanceError
from ndsvrp.io.files import PathLike, write_atomic
from ndsvrp.io.geojson import to_geojson
from ndsvrp.io.result import json_bytes, write_result
from ndsvrp.io.sol import write_solution
from ndsvrp.io.stop_table import to_csv

if TYPE_CHECKING:
    from ndsvrp.search.result import Result

PICTURES = (".png", ".svg", ".pdf")  # endings of what `ndsvrp.plot` writes
FILES = (".sol", ".json", ".geojson", ".csv", ".html", ".htm")  # endings of what `save` writes


def check_ending(path: PathLike) -> None:
    """Raise for the ending of a picture, which would hold the text of a solution."""
    if (suffix := Path(path).suffix.lower()) in PICTURES:
        what = f"'{suffix}' is a picture: --plot, or result.plot in Python"
        raise InstanceError(f"{what}; a result is .sol, .json, .geojson, .csv or .html", file=str(path))


def save(path: PathLike, result: Result) -> None:
    """Write `.json`, `.geojson`, `.csv` or `.html`; any other ending but those of pictures is a solution, as `.sol`."""
    check_ending(path)
    suffix = Path(path).suffix.lower()
    if suffix == ".json":
        write_result(path, result)
    elif suffix == ".geojson":
        write_atomic(path, json_bytes(to_geojson(result)))
    elif suffix == ".csv":
        write_atomic(path, to_csv(result))
    elif suffix in (".html", ".htm"):
        result.to_html(Path(path))
    else:
        write_solution(path, result.solution, result.cost)
