"""The outcomes of a set: written, printed and counted as they come, in any order."""

from collections.abc import Sequence
from statistics import fmean
from typing import Any

import typer

from ndsvrp.cli.formatting import cost_of, plain_number, say
from ndsvrp.cli.outputs import Folder, failed_row, summary_row
from ndsvrp.errors import NoSolutionError
from ndsvrp.problem import Problem
from ndsvrp.search.result import Result
from ndsvrp.text import amount, number


class SetOutput:
    """Writes the files of a set after every outcome, and prints a line for it."""

    def __init__(
        self, folder: Folder, problems: Sequence[Problem], seed: int, *, quiet: bool = False, piped: bool = False
    ) -> None:
        self._folder, self._problems, self._seed = folder, problems, seed
        self._quiet, self._piped = quiet, piped
        self._results: dict[int, Result] = {}  #: partial ones, too
        self._rows: dict[int, dict[str, Any]] = {}
        self._failure: NoSolutionError | None = None

    def add(self, index: int, outcome: Result | NoSolutionError) -> None:
        """Write and print an outcome."""
        folder = self._folder
        named = folder.names[index] if folder.names else index
        if isinstance(outcome, NoSolutionError):
            message = f"{self._problems[index].name}: {outcome}"
            self._failure = self._failure or NoSolutionError(message, outcome.unserved)
            self._rows[index] = failed_row(named, len(outcome.unserved), self._seed)
            if outcome.result is not None:
                self._results[index] = outcome.result
            cost, brief = "none", str(outcome)
        else:
            self._results[index] = outcome
            self._rows[index] = summary_row(named, outcome)
            cost, brief = plain_number(outcome.cost), _brief(outcome)
        folder.write(index, self._results, self._rows)
        say(cost if self._quiet else f"{folder.name(index)}  {brief}", error=self._piped)

    def finish(self, exit_code: int) -> None:
        """Print what is left; exit with the code of an interrupt, or raise the first failure."""
        self._folder.finish(self._results)
        results = [result for result in self._results.values() if result.report.feasible]
        if results and not self._quiet:
            mean = number(fmean(result.cost for result in results))
            say(f"mean cost {mean} of {amount(len(results), 'instance')}", error=self._piped)
        if self._folder.folder is not None and not self._quiet:
            say(f"wrote {self._folder.folder}", error=self._piped)
        if len(self._rows) < len(self._problems) or any(result.stopped == "interrupted" for result in results):
            raise typer.Exit(exit_code)
        if self._failure is not None:
            raise self._failure


def _brief(result: Result) -> str:
    words = [f"cost {cost_of(result.cost, result.problem.metric)}", amount(len(result.solution.routes), "route")]
    if result.problem.has_prizes:
        words.append(f"{len(result.report.unserved):,} unserved")
    words += [f"{result.seconds:.1f} s", amount(result.iterations, "iteration")]
    return "  ".join(words) + ("  interrupted" if result.stopped == "interrupted" else "")
