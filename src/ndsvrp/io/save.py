"""Write a result in the format of the file's ending."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ndsvrp.io.files import PathLike, write_atomic
from ndsvrp.io.geojson import to_geojson
from ndsvrp.io.result import json_bytes, write_result
from ndsvrp.io.sol import write_solution
from ndsvrp.io.stop_table import to_csv

if TYPE_CHECKING:
    from ndsvrp.search.result import Result


def save(path: PathLike, result: Result) -> None:
    """Write `.json`, `.geojson`, `.csv` or `.html`; any other ending is a solution, as `.sol`."""
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
