"""The command `nds`. Exit codes: 0 success, 2 bad input, 3 no feasible solution, 130 and 143 interrupted.

Code belongs here if it parses options, prints, or shows progress. A command calls the public Python API and decides
nothing about a search.
"""

import sys
import warnings
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from ndsvrp import __version__
from ndsvrp.cli import bench, convert, data, experiment, generate, inspect, models, serve, settings, solve, train
from ndsvrp.cli.formatting import say
from ndsvrp.cli.interrupt import exit_on_sigterm
from ndsvrp.cli.streams import unfailing_streams
from ndsvrp.errors import NdsError, NdsWarning, NoSolutionError

LONGEST = 2000  # characters of a message
_UsageError: Any = typer.BadParameter.__base__  # typer has no public name for it


class Commands(TyperGroup):
    """Prints errors of this package as one line with an exit code. Other exceptions are bugs, with a traceback."""

    def main(self, args: Sequence[str] | None = None, *rest: Any, **extra: Any) -> Any:
        """Run a command line and exit."""
        with unfailing_streams(), warnings.catch_warnings():
            warnings.simplefilter("default", NdsWarning)  # each once per set, not per instance
            warnings.showwarning = _show_warning
            code = self._run(args, *rest, **extra | {"standalone_mode": False})
        sys.exit(code)

    def _run(self, *args: Any, **extra: Any) -> int:
        try:
            code = super().main(*args, **extra)
            return code if isinstance(code, int) else 0
        except NoSolutionError as error:
            return _complain(_name_unserved(error), 3)
        except NdsError as error:
            return _complain(str(error), 2)
        except MemoryError as error:
            return _complain(f"not enough memory ({error})" if str(error) else "not enough memory", 2)
        except _UsageError as error:
            message = str(error.format_message())
            if not message.strip() or "\n" in message.strip():  # no arguments: the help
                print(message)  # with the colours of typer
                return 2
            command = error.ctx.command_path if error.ctx is not None else "nds"
            return _complain(f"{message.rstrip('.')} (see '{command} --help')", 2)
        except typer.Abort:  # Ctrl-C outside of a search
            return 130


def _complain(message: str, code: int) -> int:
    message = " ".join(message.split("\n"))
    say(f"nds: {message if len(message) <= LONGEST else message[:LONGEST] + ' …'}", error=True)
    return code


def _name_unserved(error: NoSolutionError) -> str:
    if not error.unserved:
        return str(error)
    name_of = str if error.result is None else error.result.problem.name_of
    return f"{error}: {', '.join(map(name_of, error.unserved))}"


_show_other_warning = warnings.showwarning


def _show_warning(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
    if issubclass(category, NdsWarning):
        _complain(f"warning: {message}", 0)
    else:
        _show_other_warning(message, category, *where, **more)


def _print_version(asked: bool) -> None:
    if asked:
        say(f"nds {__version__}")
        raise typer.Exit


app = typer.Typer(
    cls=Commands, no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)  # fmt: skip


@app.callback()
def _nds(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Solve vehicle routing problems by ruin and recreate, with rules or a learned policy."""


app.command("solve")(solve.solve_command)
app.command("check")(inspect.check_command)
app.command("info")(inspect.info_command)
app.command("convert")(convert.convert_command)
app.command("schema")(convert.schema_command)
app.command("generate")(generate.generate_command)
app.command("serve")(serve.serve_command)
app.command("models")(models.models_command)
app.command("settings")(settings.settings_command)
app.command("train")(train.train_command)
app.command("experiment")(experiment.experiment_command)
app.add_typer(data.app, name="data")
app.add_typer(bench.app, name="bench")


def main() -> None:
    """Run the command, for `nds` and `python -m ndsvrp`."""
    exit_on_sigterm()
    app(prog_name="nds")
