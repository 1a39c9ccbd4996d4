"""A Ray cluster on this machine, with two workers, for all tests of a module."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture(scope="module")
def ray() -> Iterator[Any]:
    """Nothing of it is left behind: no session in a shared folder, no token in the home folder."""
    ray = pytest.importorskip("ray")
    folder = tempfile.mkdtemp(prefix="ray")  # short: the paths of sockets have a limit
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_AUTH_TOKEN", os.urandom(32).hex())
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("CUDA_VISIBLE_DEVICES", "")
        patch.setenv("PYTHONPATH", os.pathsep.join(filter(None, sys.path)))  # workers find the solver of the tests
        patch.setenv("FATAL", folder)
        ray.init(
            address="local", num_cpus=2, num_gpus=0, include_dashboard=False, log_to_driver=False,
            logging_level="error", object_store_memory=80 * 2**20, _temp_dir=folder, _node_ip_address="127.0.0.1",
        )  # fmt: skip
        try:
            yield ray
        finally:
            ray.shutdown()
            shutil.rmtree(folder, ignore_errors=True)
