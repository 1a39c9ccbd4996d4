"""The keyword arguments that editors and type checkers know are those that a search has."""

import inspect
from dataclasses import fields
from typing import Any, get_type_hints

import ndsvrp
from ndsvrp.search.options import Options, SolveOptions
from ndsvrp.search.planning import CALL, Request
from ndsvrp.search.settings import Settings


def test_options_are_the_fields_of_request_and_settings() -> None:
    of_request, of_settings = get_type_hints(Request), get_type_hints(Settings)
    expected = {f.name: of_settings[f.name] for f in fields(Settings)}
    expected |= {f.name: of_request[f.name] for f in fields(Request) if f.name != "settings"}
    assert get_type_hints(Options) == expected


def test_solve_options_are_the_arguments_of_solve() -> None:
    hints = get_type_hints(ndsvrp.solve)
    own = {
        name: hints[name]
        for name in inspect.signature(ndsvrp.solve).parameters
        if name not in ("problem", "unnamed", "options")
    }
    assert get_type_hints(SolveOptions) == {**get_type_hints(Options), **own}
    assert set(own) == set(CALL)


def test_public_names_can_be_imported() -> None:
    """Also those that are imported when they are asked for."""
    given: dict[str, Any] = {name: getattr(ndsvrp, name) for name in ndsvrp.__all__}
    assert given["plot_trace"].__module__ == "ndsvrp.plot.trace"
    problem = ndsvrp.generate("cvrp", 10, seed=1)[0]
    result = ndsvrp.solve(problem, iterations=1)
    assert isinstance(result.schedule[0], ndsvrp.RouteSchedule)
    assert isinstance(result.schedule[0].stops[0], ndsvrp.StopTimes)
    assert isinstance(result.trace[0], ndsvrp.TracePoint)
