"""The process of a search, as the service sees it."""

from multiprocessing import Pipe
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("fastapi")

from ndsvrp.serve.process import SearchProcess
from ndsvrp.serve.worker import Refused


def test_an_answer_is_kept_if_the_search_ends_when_it_is_cancelled() -> None:
    ours, theirs = Pipe()
    theirs.send(Refused("no feasible solution found"))
    theirs.close()
    task: Any = SimpleNamespace(limits={"time": 1.0})
    process = SearchProcess(task, customers=1, seconds=1.0, tell=lambda news: None)
    process.stop()
    assert process._receive(ours) == Refused("no feasible solution found")
    ours.close()
