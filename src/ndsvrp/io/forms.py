"""Which format an instance file has: by its ending, else by its content; what formats do not keep."""

import re
from collections.abc import Sequence
from pathlib import Path

from ndsvrp.errors import InstanceError, warn
from ndsvrp.io.files import PathLike, decode
from ndsvrp.io.solomon import is_solomon
from ndsvrp.problem import Problem

#: formats by ending; text of an unknown ending is recognised by its content
ENDINGS = {
    ".vrp": "vrp", ".txt": "solomon", ".npz": "npz", ".csv": "csv", ".tsv": "csv", ".json": "json",
}  # fmt: skip
ACCEPTED = (
    "VRPLIB (.vrp), Solomon or Gehring–Homberger text (.txt), a table of stops (.csv), a problem as JSON (.json), "
    "a set (.npz)"
)
WORKBOOKS = (".xlsx", ".xlsm", ".ods")  # archives, as sets are
_VRPLIB = re.compile(r"^\s*(NAME|TYPE|DIMENSION|CAPACITY|COMMENT|EDGE_WEIGHT_TYPE)\s*:|_SECTION", re.MULTILINE | re.I)
_START = 4096  # characters that tell


def form_of(path: PathLike, data: bytes) -> str:
    """Return vrp, solomon, npz, csv or json. Raise for anything else, with what is accepted."""
    from ndsvrp.io.stops import is_column  # here, because it needs matrices, which need this module

    known = ENDINGS.get(Path(path).suffix.lower())
    is_any_text = known == "solomon" and not is_solomon(data[:_START].decode(errors="ignore"))  # .txt
    if known is not None and not is_any_text:
        return known
    if data[:4] == b"PK\x03\x04":
        if Path(path).suffix.lower() in WORKBOOKS:
            raise InstanceError(f"is a workbook, save its table as .csv; accepted: {ACCEPTED}", file=str(path))
        return "npz"
    try:
        text = decode(path, data)[:_START].strip()
    except InstanceError as error:
        raise InstanceError(f"{error.message}; accepted: {ACCEPTED}", file=error.file, line=error.line) from None
    if text.startswith(("{", "[")):
        return "json"
    if is_solomon(text):
        return "solomon"
    if _VRPLIB.search(text):
        return "vrp"
    first = text.partition("\n")[0]
    cells = re.split(r"[,;\t]", first)
    if len(cells) > 1 and (any(is_column(cell) for cell in cells) if is_any_text else not first.endswith(".")):
        return "csv"
    raise InstanceError(f"is not an instance; accepted: {ACCEPTED}", file=str(path))


def warn_of_losses(path: PathLike, problems: Sequence[Problem]) -> None:
    """Warn of what only JSON and tables of stops keep of these problems."""
    if any(problem.names and problem.names[1:] != _numbers(problem) for problem in problems):
        warn(f"{path}: the names of customers are not kept; .json and .csv have them")
    if any(problem.clock_times for problem in problems):
        warn(f"{path}: times are minutes since midnight; .json and .csv keep them as clock times")


def _numbers(problem: Problem) -> tuple[str, ...]:
    return tuple(map(str, range(1, problem.customers + 1)))
