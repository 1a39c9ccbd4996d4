"""Cores that a benchmark run has for itself, among processes that know nothing of each other."""

import os
import random
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress

from ndsvrp.errors import EngineError, InstanceError

PAUSE = 0.2  # seconds between attempts, about


def usable() -> list[int]:
    """Return the cores of this process, the last ones first: interrupts tend to go to the first."""
    if not hasattr(os, "sched_setaffinity"):
        raise EngineError("benchmarks need a system that can bind a process to a core (Linux)")
    return sorted(os.sched_getaffinity(0), reverse=True)


@contextmanager
def leased(count: int) -> Iterator[list[int]]:
    """Wait until no process has leased `count` of the cores of this machine, and lease them.

    The lease is the name of a socket. The system frees it when the process ends, however it ends, and it is no file.
    """
    available = usable()
    if count > len(available):
        raise InstanceError(f"{count} is not within 1-{len(available)}, the cores of a node", field="cores")
    while True:
        with ExitStack() as leases:
            taken: list[int] = []
            for core in available:
                lease = leases.enter_context(socket.socket(socket.AF_UNIX))
                with suppress(OSError):  # another process has it
                    lease.bind(f"\0ndsvrp-core-{core}")
                    taken.append(core)
                if len(taken) == count:
                    yield taken
                    return
        time.sleep(PAUSE * (0.5 + random.random()))  # all or none, at random times: two never wait for each other
