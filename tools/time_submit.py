"""Measures what a submission to `nds serve` costs: CPU time of its parts, for an instance of 30 customers.

Usage: python tools/time_submit.py [--out FILE.jsonl]. Needs the extra `serve`; seconds. What is missing to the whole is
the connection, the parsing of HTTP and the changes of threads.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any

import ndsvrp
from ndsvrp.io.environment import environment
from ndsvrp.serve.api import make_app
from ndsvrp.serve.config import ServeConfig
from ndsvrp.serve.intake import GROUP
from ndsvrp.serve.jobs import Job, JobOptions
from ndsvrp.serve.service import Service
from ndsvrp.serve.store import Store

CUSTOMERS, TIMES = 30, 300


def microseconds(act: Callable[[], object], times: int = TIMES) -> float:
    """Return the CPU time of one call in microseconds."""
    act()
    began = time.process_time()
    for _ in range(times):
        act()
    return round(1e6 * (time.process_time() - began) / times, 1)


async def answer(app: Any, body: bytes) -> int:
    """Send a submission to the application, without a network. Return the status."""
    headers = [(b"host", b"localhost"), (b"content-length", str(len(body)).encode())]
    scope = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "POST", "path": "/api/jobs",
        "raw_path": b"/api/jobs", "query_string": b"name=a.npz&time=0.05&seed=3&key=mine", "root_path": "",
        "scheme": "http", "headers": headers, "server": ("127.0.0.1", 80), "client": ("127.0.0.1", 1), "state": {},
    }  # fmt: skip
    sent = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    await app(scope, receive, send)
    return int(sent[0]["status"])


def measure(folder: Path) -> dict[str, float]:
    """Return microseconds of CPU time by part."""
    ndsvrp.write_set(folder / "a.npz", ndsvrp.generate("cvrp", CUSTOMERS, seed=1))
    body, numbers = (folder / "a.npz").read_bytes(), count()
    service = Service(ServeConfig(), Store(folder / "jobs.sqlite"))

    def new(group: int = 1) -> list[Any]:
        return [service._read(body, JobOptions(name="a.npz", time=0.05, key=str(next(numbers)))) for _ in range(group)]

    jobs = [iter([new(size) for _ in range(times + 1)]) for size, times in ((1, TIMES), (GROUP, TIMES // GROUP))]
    found = {
        "read_us": microseconds(new),
        "store_us": microseconds(lambda: service.store.add_all(next(jobs[0]))),
        "store_in_group_us": microseconds(lambda: service.store.add_all(next(jobs[1])), TIMES // GROUP) / GROUP,
    }
    job = service.store.jobs(1)[0]

    async def stored(body: bytes, options: JobOptions) -> tuple[Job, bool]:
        return job, True

    service.submit = stored  # type: ignore[method-assign]
    app = make_app(service)
    with asyncio.Runner() as runner:
        assert runner.run(answer(app, body)) == 202
        found["application_us"] = microseconds(lambda: runner.run(answer(app, body)))
        runner.run(service.stop())
    return {name: round(value, 1) for name, value in found.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        parts = measure(Path(folder))
    now = datetime.now(UTC).isoformat(timespec="seconds")
    row = {"part": "costs", "customers": CUSTOMERS, **parts, "date": now, **environment()}
    print(json.dumps(row))
    if asked.out is not None:
        with asked.out.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
