"""The forms in which a result can be fetched."""

import json
from collections.abc import Callable
from typing import NamedTuple

from ndsvrp.check import check
from ndsvrp.io.result import plain
from ndsvrp.io.sol import solution_bytes
from ndsvrp.io.stop_table import to_csv
from ndsvrp.problem import Problem
from ndsvrp.search.result import Result, TracePoint
from ndsvrp.serve.timeline import incumbent_view
from ndsvrp.solution import Solution


class Form(NamedTuple):
    """A form of results."""

    media_type: str
    write: Callable[[Result], bytes]
    is_stored: bool = True  #: with the result; others are made when they are asked for
    applies: Callable[[Problem], bool] = lambda problem: True


FORMS = {
    "sol": Form("text/plain; charset=utf-8", lambda result: solution_bytes(result.solution, result.cost)),
    "json": Form("application/json", lambda result: result.to_json().encode()),
    "html": Form("text/html; charset=utf-8", lambda result: result.to_html().encode(), is_stored=False),
    "csv": Form("text/csv; charset=utf-8", to_csv, is_stored=False),
    "geojson": Form(
        "application/geo+json",
        lambda result: json.dumps(result.to_geojson()).encode(),
        is_stored=False,
        applies=lambda problem: problem.geographic,
    ),
}
"""By the ending of a file; a new form is one more entry."""


def forms_of(problem: Problem) -> list[str]:
    """Return the forms of results of a problem."""
    return [name for name, form in FORMS.items() if form.applies(problem)]


def contents_of(result: Result) -> dict[str, bytes]:
    """Return a result in every form that is stored."""
    return {name: form.write(result) for name, form in FORMS.items() if form.is_stored}


def view_of(result: Result) -> bytes:
    """Return a result as the page draws it, JSON."""
    view = incumbent_view(result.problem, result.solution, result.report)
    return json.dumps(plain(view), separators=(",", ":")).encode()


def result_of(problem: Problem, stored: bytes) -> Result:
    """Return the result that was stored as JSON, checked again."""
    told = json.loads(stored)
    solution = Solution(told["routes"])
    return Result(
        problem, solution, check(problem, solution), told["seed"], told["stopped"], told["seconds"], told["iterations"],
        told["reconstructions"], told["settings"], tuple(TracePoint(**point) for point in told["trace"]),
        told["preparation"],
    )  # fmt: skip
