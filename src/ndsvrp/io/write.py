"""Write problems in the format of the file's ending."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ndsvrp.errors import InstanceError, warn
from ndsvrp.io.files import PathLike, check_name, is_standard, write_atomic
from ndsvrp.io.forms import ENDINGS, warn_of_losses
from ndsvrp.io.npz import write_set
from ndsvrp.io.problem_json import problem_table
from ndsvrp.io.result import json_bytes
from ndsvrp.io.solomon import solomon_text
from ndsvrp.io.stops import fleet_options, odd_window, stops_text
from ndsvrp.io.vrp_write import vrp_text
from ndsvrp.metric import Metric
from ndsvrp.problem import Problem, require_problem

FORMS = tuple(dict.fromkeys(ENDINGS.values()))


def require_form(path: PathLike, form: str) -> None:
    """Raise for an unknown format, and list the known ones."""
    if form not in FORMS:
        raise InstanceError(f"unknown format '{form}' (known: {', '.join(FORMS)})", file=str(path))


def form_by_ending(path: PathLike, form: str | None = None) -> str:
    """Return the format to write: the one asked for, or that of the ending.

    The ending tells a reader the format, so the two must not contradict each other. VRPLIB is recognised in `.txt`.
    """
    suffix = Path(path).suffix.lower()
    found = ENDINGS.get(suffix)
    if form is not None:
        require_form(path, form)
        if form != "npz" and found not in (None, form) and (suffix, form) != (".txt", "vrp"):  # npz: see write_set
            raise InstanceError(
                f"the format '{form}' under the ending {suffix} could not be read again", file=str(path)
            )
        return form
    if found is None:
        what = "standard output needs a format" if is_standard(path) else "the ending names no format"
        how = f"--to NAME, or form= in Python, one of {', '.join(FORMS)}; endings are {', '.join(ENDINGS)}"
        raise InstanceError(f"{what}: {how}", file=str(path))
    return found


def write(path: PathLike, problem: Problem, form: str | None = None) -> None:
    """Write a problem as `.vrp`, `.txt` (Solomon), `.csv`, `.json` or `.npz`, completely or not at all.

    `form` names the format (vrp, solomon, csv, json, npz) if the ending does not. What a format cannot hold is
    refused; names that are lost, and a fleet that is stated beside a table of stops, are warned of.
    """
    check_name(path)  # also if the two are swapped
    require_problem("write", problem)
    write_problems(path, [problem], form_by_ending(path, form))


def write_problems(path: PathLike, problems: Sequence[Problem], form: str) -> None:
    """Write problems of a set; only `npz` holds several."""
    if form == "npz":
        write_set(path, problems)
        return
    try:
        write_atomic(path, _content(path, problems[0], form))
    except InstanceError as error:
        raise error if error.file is not None else error.located(str(path)) from None
    if form not in ("json", "csv"):
        warn_of_losses(path, problems[:1])


def _content(path: PathLike, problem: Problem, form: str) -> bytes:
    if form == "json":
        return json_bytes(problem_table(problem), indent=1 if problem.customers <= 1000 else None)
    if form == "csv":
        text = stops_text(problem, "\t" if Path(path).suffix.lower() == ".tsv" else ",")
        warn(f"{path}: a table of stops does not state the fleet; read it with {fleet_options(problem)}")
        if (odd := odd_window(problem)) is not None:
            node, time = odd  # in the line of the node, below the names of the columns
            what = f"windows: {time:.12g} is not a clock time in whole seconds, so all windows are written as minutes"
            warn(f"{path}:{node + 2}: {what}; .json keeps that they are clock times")
    elif form == "solomon":
        text = solomon_text(problem)
        if problem.metric is not Metric.DIMACS:
            how = f"read it with --round {problem.metric}, or metric= in Python"
            warn(f"{path}: Solomon text is read with rounding 'dimacs'; {how}")
    else:
        text = vrp_text(problem)
    return text.encode(errors="backslashreplace")
