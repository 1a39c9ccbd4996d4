"""A solver for the tests that kills the process which started it, once."""

import os
import signal
import time
from pathlib import Path

from bench.fakes import Star
from ndsvrp.bench.solvers import Answer
from ndsvrp.problem import Problem
from ndsvrp.solution import Solution


class Fatal(Star):
    """One route per customer."""

    def __call__(self, problem: Problem, seconds: float, seed: int) -> Answer:
        began, mark = time.time(), Path(os.environ["FATAL"], "pid")
        if not mark.exists():
            mark.write_text(str(os.getpid()))
            os.kill(os.getppid(), signal.SIGKILL)
            time.sleep(60)  # ends with its parent
        time.sleep(0.1)
        settings = {"cores": sorted(os.sched_getaffinity(0)), "began": began, "ended": time.time()}
        return Answer(Solution([[customer] for customer in range(1, problem.customers + 1)]), 0.1, settings)


FATAL = Fatal()
