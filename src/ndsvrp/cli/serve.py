"""The command `nds serve`, and the page of `nds solve --watch`."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

from ndsvrp.cli.formatting import say
from ndsvrp.cli.interrupt import Interrupts
from ndsvrp.cli.options import option
from ndsvrp.errors import NdsError
from ndsvrp.extras import require
from ndsvrp.problem import Problem
from ndsvrp.records import describe
from ndsvrp.search.stopping import Limits
from ndsvrp.serve.config import ServeConfig

if TYPE_CHECKING:
    from ndsvrp.serve.watch import Watched

_HELP = {name: sentence for name, _, sentence in describe(ServeConfig)}
_DEFAULT = ServeConfig()
_LIMITS = "Limits"


def _field(name: str, metavar: str, panel: str | None = None, **more: Any) -> Any:
    """Return the option for a field of `ServeConfig`, which has the help."""
    return option(metavar, _HELP[name], panel=panel, **more)


def serve_command(
    host: Annotated[str, _field("host", "ADDRESS")] = _DEFAULT.host,
    port: Annotated[int, _field("port", "N")] = _DEFAULT.port,
    token: Annotated[str, _field("token", "TEXT", envvar="NDS_TOKEN", show_envvar=True)] = _DEFAULT.token,
    database: Annotated[str, _field("database", "FILE")] = _DEFAULT.database,
    workers: Annotated[int, _field("workers", "N")] = _DEFAULT.workers,
    threads: Annotated[int, _field("threads", "N")] = _DEFAULT.threads,
    device: Annotated[str, _field("device", "NAME")] = _DEFAULT.device,
    max_customers: Annotated[int, _field("max_customers", "N", _LIMITS)] = _DEFAULT.max_customers,
    max_seconds: Annotated[float, _field("max_seconds", "S", _LIMITS)] = _DEFAULT.max_seconds,
    max_mib: Annotated[float, _field("max_mib", "MIB", _LIMITS)] = _DEFAULT.max_mib,
    max_queue: Annotated[int, _field("max_queue", "N", _LIMITS)] = _DEFAULT.max_queue,
    keep: Annotated[int, _field("keep", "N", _LIMITS)] = _DEFAULT.keep,
    body_seconds: Annotated[float, _field("body_seconds", "S", _LIMITS)] = _DEFAULT.body_seconds,
    connections: Annotated[int, _field("connections", "N", _LIMITS)] = _DEFAULT.connections,
) -> None:
    """Serve searches as jobs over HTTP, with a page that shows routes and cost live.

    Jobs and results are kept in a database: after a restart, waiting and running jobs begin again. Ctrl-C ends the
    service. docs/service.md describes requests and answers.
    """
    config = ServeConfig(
        host=host, port=port, token=token, database=database, workers=workers, threads=threads, device=device,
        max_customers=max_customers, max_seconds=max_seconds, max_mib=max_mib, max_queue=max_queue, keep=keep,
        body_seconds=body_seconds, connections=connections,
    )  # fmt: skip
    require("serve")
    from ndsvrp.serve.server import serve

    serve(config, _tell)


def _tell(address: str) -> None:
    say(f"serving on {address}")


@contextmanager
def page_of(problem: Problem, file: str, limits: Limits, seed: int, *, wanted: bool) -> "Iterator[Watched | None]":
    """Serve the page of one search and print its address; yield None if no page is wanted."""
    if not wanted:
        yield None
        return
    require("serve")
    from ndsvrp.serve.watch import Watched

    with Watched(problem, file, limits, seed) as page:
        if not sys.stderr.isatty():
            say("the page ends with the search: there is no terminal to end it on", error=True)
        say(f"watch the search on {page.address}", error=True)
        try:
            yield page
        except NdsError as error:
            page.fail(str(error))
            raise


def keep_open(page: "Watched | None", interrupts: Interrupts) -> None:
    """Leave the page open until Ctrl-C, if there is a terminal to press it on."""
    if page is None or not sys.stderr.isatty():
        return
    say(f"the page stays on {page.address} until Ctrl-C", error=True)
    while not interrupts.asked:
        time.sleep(0.1)
