"""Run the command in this process, or in a new one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import typer.main
from typer.testing import CliRunner

from ndsvrp.cli import app

DATA = Path(__file__).parents[1] / "data"


@pytest.fixture
def data():
    return DATA


@pytest.fixture(scope="session", autouse=True)
def _command():
    """Build the command once: typer would do it for every command line, which takes longer than most of them."""
    command = typer.main.get_command(app)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("typer.testing._get_command", lambda _: command)
        yield


@pytest.fixture
def nds():
    """Run a command line here; the answer has exit_code, stdout and stderr."""

    def run(*args, code=0):
        answer = CliRunner().invoke(app, [str(arg) for arg in args], prog_name="nds")
        if answer.exception is not None and not isinstance(answer.exception, SystemExit):
            raise answer.exception
        assert answer.exit_code == code, answer.output
        return answer

    return run


@pytest.fixture
def start_nds():
    """Start a command line in a new process that receives SIGINT as from a terminal."""
    children = []

    def start(*args):
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        child = subprocess.Popen(
            [sys.executable, "-m", "ndsvrp", *map(str, args)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        children.append(child)
        return child

    yield start
    for child in children:
        child.kill()
        child.communicate()


@pytest.fixture
def fleet(tmp_path):
    """An instance of thirty customers of demand 1 for vehicles that hold 5: six vehicles are needed."""

    def make(vehicles):
        places = [(0, 0), *((10 + 7 * i % 50, 10 + 11 * i % 60) for i in range(30))]
        lines = ["NAME : fleet", "TYPE : CVRP", "DIMENSION : 31", "CAPACITY : 5", f"VEHICLES : {vehicles}"]
        lines += ["EDGE_WEIGHT_TYPE : EUC_2D", "NODE_COORD_SECTION"]
        lines += [f"{i} {x} {y}" for i, (x, y) in enumerate(places, start=1)]
        lines += ["DEMAND_SECTION", "1 0", *(f"{i} 1" for i in range(2, 32)), "DEPOT_SECTION", "1", "-1", "EOF"]
        path = tmp_path / "fleet.vrp"
        path.write_text("\n".join(lines) + "\n")
        return path

    return make
