"""A Ray cluster: connect to it, and run a function for many tasks on it. Only this module imports ray."""

from __future__ import annotations

import os
import pickle
import signal
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from ndsvrp.cluster.tasks import LOOK, Lost, Needs, Task, Waiting
from ndsvrp.cluster.worker import describe_node
from ndsvrp.errors import ClusterError, EngineError, NdsError, warn
from ndsvrp.extras import require
from ndsvrp.search.code_version import code_version

RETRIES = 3  # how often a task runs again whose worker was lost
SURVEY = 60.0  # seconds until nodes that did not answer are left to the tasks
GRACE = 10.0  # seconds in which interrupted tasks may return something, such as the best solution so far
REACH = 5.0  # seconds to reach an address; ray alone would try for minutes
CALLS_PER_GPU_PROCESS = 16  # ray's default is one, and opening a GPU takes longer than a short search
LOST = {
    "WorkerCrashedError": "its process died", "NodeDiedError": "its node died", "OutOfMemoryError": "out of memory",
    "ObjectLostError": "its data were lost", "OwnerDiedError": "its data were lost",
}  # fmt: skip
"""Errors of ray that say that a worker was lost, and not that the function failed."""


@contextmanager
def connect() -> Iterator[Cluster]:
    """Use the cluster that this program is connected to, else the one ray finds, else start one on this machine.

    Ray finds the cluster named by RAY_ADDRESS, and one that `ray start` started on this machine.
    """
    require("ray")
    import ray

    if ray.is_initialized():  # by the program, which may go on using it
        yield Cluster(ray)
        return
    _start(ray)
    try:
        yield Cluster(ray)
    finally:
        ray.shutdown()


def _start(ray: Any) -> None:
    address = os.environ.get("RAY_ADDRESS", "")
    _require_reachable(address)
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # a cluster started here reports to nobody
    in_main = threading.current_thread() is threading.main_thread()
    before = signal.getsignal(signal.SIGTERM)
    try:
        ray.init(include_dashboard=False, log_to_driver=False, logging_level="error")
    except Exception as error:  # of many types: addresses, versions of ray and Python, tokens
        raise ClusterError(f"ray cannot connect to {address or 'a cluster'}: {_line(error)}") from None
    finally:
        if in_main:
            signal.signal(signal.SIGTERM, before)  # ray's handler exits, and the best solutions would be lost


def _require_reachable(address: str) -> None:
    host, _, port = address.rpartition("//")[2].rpartition(":")
    if host and port.isdecimal():
        try:
            socket.create_connection((host.strip("[]"), int(port)), REACH).close()
        except (OSError, OverflowError) as error:
            raise ClusterError(f"RAY_ADDRESS: {address} does not answer ({error})") from None


class Cluster:
    """A cluster that this process is connected to."""

    def __init__(self, ray: Any) -> None:
        self._ray = ray
        self._lost = tuple(getattr(ray.exceptions, name) for name in LOST)
        self._calls: dict[Needs, Any] = {}  # ray stores each function that it is given

    def nodes(self, needs: Needs) -> list[dict[str, Any]]:
        """Return the nodes on which such a task can run."""
        wanted = {"CPU": needs.cpus, "GPU": needs.gpus}
        return [
            node
            for node in self._ray.nodes()
            if node["Alive"] and all(node["Resources"].get(kind, 0) >= count for kind, count in wanted.items())
        ]

    def has_gpu(self) -> bool:
        """Return whether a node has a GPU."""
        return bool(self.nodes(Needs(0, 1)))

    def slots(self, needs: Needs) -> int:
        """Return how many such tasks run at once if nothing else does."""
        wanted = [(kind, count) for kind, count in (("CPU", needs.cpus), ("GPU", needs.gpus)) if count]
        return sum(min(int(node["Resources"][kind] // count) for kind, count in wanted) for node in self.nodes(needs))

    def survey(self, needs: Needs) -> list[dict[str, Any]]:
        """Return versions and hardware of the nodes on which such tasks can run; refuse nodes with other code."""
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        nodes = self.nodes(needs)
        if not nodes:
            raise ClusterError(f"no node of the cluster has {needs}; a node that could be added must be started first")
        common = self._ray.put(_common(describe_node, needs.gpus > 0))
        share = {"num_cpus": 0, "num_gpus": 0.01 if needs.gpus else 0, "max_retries": 0}
        there = [NodeAffinitySchedulingStrategy(node["NodeID"], soft=False) for node in nodes]
        remote = self._ray.remote(_remote_call())
        asked = [remote.options(**share, scheduling_strategy=each).remote(common, _pickled(None)) for each in there]
        answers, busy = self._ray.wait(asked, num_returns=len(asked), timeout=SURVEY)
        for each in busy:
            self._ray.cancel(each, force=True)
        found = []
        for each in answers:
            with suppress(*self._lost):  # of nodes that ended meanwhile
                found.append(_value(self._ray.get(each)))
        return [place for place in found if not isinstance(place, Lost)]  # nodes whose device does not work

    def run(
        self,
        function: Callable[[Any, Any], Any],
        shared: Any,
        tasks: Sequence[Task],
        interrupted: Callable[[], bool] = bool,
        grace: float = GRACE,
    ) -> Generator[tuple[int, Any], None, None]:
        """Yield position and result of every task, as they end, of `function(shared, content)` on the workers.

        A task whose worker was lost runs again, up to three times; then its result is `Lost`. KeyboardInterrupt ends
        all tasks; so does `interrupted`, which is asked after each result. What tasks return within `grace` seconds
        all the same is yielded. Then KeyboardInterrupt is raised.
        """
        common = self._ray.put(_common(function, shared))
        waiting, running, lost = Waiting(tasks), dict[Any, int](), Counter[int]()
        try:
            while waiting or running:
                for i in waiting.due(self._look):
                    running[self._send(common, tasks[i])] = i
                for ref in self._ray.wait(list(running), num_returns=1, timeout=LOOK)[0]:
                    i = running.pop(ref)
                    try:
                        found = _value(self._ray.get(ref))
                    except self._lost as error:
                        lost[i] += 1
                        reason = LOST.get(type(error).__name__, "its data were lost")
                        if lost[i] <= RETRIES:
                            warn(f"{tasks[i].name}: {reason}; it runs again ({lost[i]} of {RETRIES})")
                            waiting.ended(i, again=True)
                            continue
                        found = Lost(f"lost {lost[i]} times on the cluster, the last time because {reason}")
                    waiting.ended(i)
                    yield i, found
                    if interrupted():
                        raise KeyboardInterrupt
        except KeyboardInterrupt:
            yield from self._interrupt(running, grace)
            raise
        finally:
            for ref in running:
                self._ray.cancel(ref, force=True)

    def _look(self, needs: Needs) -> int:
        slots = self.slots(needs)
        if not slots:
            warn(f"no node of the cluster has {needs} now: waiting for one")
        return slots

    def _send(self, common: Any, task: Task) -> Any:
        needs = task.needs
        if needs not in self._calls:
            more = {"max_calls": CALLS_PER_GPU_PROCESS} if needs.gpus else {}
            options = {"num_cpus": needs.cpus, "num_gpus": needs.gpus, "max_retries": 0, **more}
            self._calls[needs] = self._ray.remote(**options)(_remote_call())
        return self._calls[needs].remote(common, _pickled(task.content()))

    def _interrupt(self, running: dict[Any, int], grace: float) -> Iterator[tuple[int, Any]]:
        """Interrupt the tasks, and yield what they return in time."""
        for ref in running if grace > 0 else ():
            self._ray.cancel(ref)
        until = time.monotonic() + grace
        while running and (left := until - time.monotonic()) > 0:
            for ref in self._ray.wait(list(running), num_returns=1, timeout=left)[0]:
                i = running.pop(ref)
                try:
                    found = _value(self._ray.get(ref))
                except Exception:  # cancelled before it began, or anything else that does not matter any more
                    continue
                yield i, found


def _remote_call() -> Callable[[bytes, bytes], Any]:
    """Return the function that ray sends to the workers."""

    def call(common: bytes, content: bytes) -> Any:  # in a function: sent by value, it also runs without this package
        import platform

        try:
            from ndsvrp.cluster.worker import answer
        except ImportError as error:
            return platform.node(), ("refused", f"ndsvrp cannot be imported there ({error})", [])
        return platform.node(), answer(common, content)

    return call


def _common(function: Callable[[Any, Any], Any], shared: Any) -> bytes:
    return pickle.dumps((code_version(), _pickled((function, shared))))


def _pickled(content: Any) -> bytes:
    from ray import cloudpickle

    try:
        packed: bytes = cloudpickle.dumps(content)
    except Exception as error:  # of any type: objects decide
        raise ClusterError(f"this cannot be sent to a cluster: {_line(error)}") from None
    return packed


def _value(answer: tuple[str, tuple[str, Any, list[str]]]) -> Any:
    node, (kind, found, warned) = answer
    for message in warned:
        warn(message)
    if kind == "refused":
        raise ClusterError(f"node {node}: {found}")
    if isinstance(found, EngineError):  # of a device or memory: other nodes go on
        return Lost(f"refused by node {node}: {found}")
    if kind == "error":
        assert isinstance(found, NdsError)
        raise found
    return found


def _line(error: BaseException) -> str:
    """Return what an error says, in one line of at most 300 characters."""
    return " ".join(str(error).split())[:300] or type(error).__name__
