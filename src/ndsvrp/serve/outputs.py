"""The forms in which a result can be fetched."""

import json
from collections.abc import Callable
from typing import NamedTuple

from ndsvrp.io.result import describe, json_bytes, plain
from ndsvrp.io.sol import solution_bytes
from ndsvrp.search.result import Result
from ndsvrp.serve.timeline import incumbent_view


class Form(NamedTuple):
    """A form of results."""

    media_type: str
    write: Callable[[Result], bytes]


FORMS = {
    "sol": Form("text/plain; charset=utf-8", lambda result: solution_bytes(result.solution, result.cost)),
    "json": Form("application/json", lambda result: json_bytes(describe(result), indent=1)),
}
"""By the ending of a file; a new form is one more entry."""


def contents_of(result: Result) -> dict[str, bytes]:
    """Return a result in every form."""
    return {name: form.write(result) for name, form in FORMS.items()}


def view_of(result: Result) -> bytes:
    """Return a result as the page draws it, JSON."""
    view = incumbent_view(result.problem, result.solution, result.report)
    return json.dumps(plain(view), separators=(",", ":")).encode()
