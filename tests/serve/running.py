"""The service with its application, in this process; searches run in processes of their own."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from starlette.testclient import TestClient

from ndsvrp.serve.api import make_app
from ndsvrp.serve.config import ServeConfig
from ndsvrp.serve.server import Server, address_of, listen
from ndsvrp.serve.service import Service
from ndsvrp.serve.store import Store

LIB = Path(__file__).parents[1] / "data/lib"
HEADERS = {"host": "localhost"}


class Client(TestClient):
    """A client of a service that runs as long as the client does."""

    def submit(self, body: bytes, **options: Any) -> Any:
        return self.post("/api/jobs", content=body, params=options)

    def events(self, identifier: str) -> list[tuple[str, Any]]:
        """All events of a job, until it has ended."""
        found = []
        with self.stream("GET", f"/api/jobs/{identifier}/events") as answer:
            assert answer.headers["content-type"].startswith("text/event-stream")
            kind = ""
            for line in answer.iter_lines():
                if line.startswith("event: "):
                    kind = line.removeprefix("event: ")
                elif line.startswith("data: "):
                    found.append((kind, json.loads(line.removeprefix("data: "))))
        return found

    def ended(self, identifier: str) -> dict[str, Any]:
        """The job, when it has ended."""
        kind, job = self.events(identifier)[-1]
        assert kind == "end"
        return dict(job)


def open_client(database: Path, **settings: Any) -> Client:
    config = ServeConfig(database=str(database), **{"workers": 2, "threads": 1, "device": "cpu", **settings})
    return Client(make_app(Service(config, Store(config.database_file))), headers=HEADERS)


@contextmanager
def serving(database: Path, **settings: Any) -> Iterator[str]:
    """Serve over a socket, in a thread; gives the address."""
    config = ServeConfig(port=0, database=str(database), workers=1, threads=1, device="cpu", **settings)
    server, opened = Server(Service(config, Store(config.database_file))), listen(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [opened]})
    thread.start()
    try:
        yield address_of(opened, config)
    finally:
        server.should_exit = True
        thread.join()
