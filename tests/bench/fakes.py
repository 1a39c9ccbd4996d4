"""Solvers for the tests, loaded by worker processes as `fakes:NAME`."""

import os
import signal
import subprocess
import sys
import time

from ndsvrp.bench.solvers import Answer
from ndsvrp.problem import Problem
from ndsvrp.solution import Solution


class Star:
    """One route per customer."""

    release = "1"

    def version(self) -> str:
        return self.release

    def refuses(self, problem: Problem) -> str | None:
        return None

    def __call__(self, problem: Problem, seconds: float, seed: int) -> Answer:
        print("chatter on the output stream")
        routes = [[customer] for customer in range(1, problem.customers + 1)]
        settings = {"cores": sorted(os.sched_getaffinity(0)), "omp": os.environ["OMP_NUM_THREADS"], "inf": float("inf")}
        return Answer(Solution(routes), 0.25, settings)


class Forgetful(Star):
    """Leaves the last customer out."""

    def __call__(self, problem: Problem, seconds: float, seed: int) -> Answer:
        return Answer(Solution([[customer] for customer in range(1, problem.customers)]), 0.5)


class Raising(Star):
    def __call__(self, problem: Problem, seconds: float, seed: int) -> Answer:
        raise RuntimeError("lost the map")


class Crashing(Star):
    def __call__(self, problem: Problem, seconds: float, seed: int) -> Answer:
        os.kill(os.getpid(), signal.SIGSEGV)
        raise AssertionError


class Sleeping(Star):
    def __call__(self, problem: Problem, seconds: float, seed: int) -> Answer:
        time.sleep(60)
        raise AssertionError


class Choosy(Star):
    def refuses(self, problem: Problem) -> str | None:
        return "not on a Sunday"


STAR, FORGETFUL, RAISING, CRASHING, SLEEPING, CHOOSY = (
    Star(), Forgetful(), Raising(), Crashing(), Sleeping(), Choosy(),
)  # fmt: skip


class Seeded(Star):
    """Finds one route for an odd seed and two for an even one."""

    def __call__(self, problem: Problem, seconds: float, seed: int) -> Answer:
        routes = [[1, 2]] if seed % 2 else [[1], [2]]
        return Answer(Solution(routes), 0.1 * seed, {}, [(0.01 * seed, 99.0), (0.1 * seed, 50.0 - seed)])


class Starting(Star):
    """Runs a program that does not end."""

    def __call__(self, problem: Problem, seconds: float, seed: int) -> Answer:
        code = "import os, pathlib, time; pathlib.Path('pid').write_text(str(os.getpid())); time.sleep(60)"
        subprocess.run([sys.executable, "-c", code], check=True)
        raise AssertionError


class Working(Star):
    """Runs a program that computes for a tenth of a second."""

    def __call__(self, problem: Problem, seconds: float, seed: int) -> Answer:
        code = "import time\nwhile time.process_time() < 0.15: pass"
        subprocess.run([sys.executable, "-c", code], check=True)
        return Answer(Solution([[1, 2]]), 0.1)


SEEDED, STARTING, WORKING = Seeded(), Starting(), Working()
