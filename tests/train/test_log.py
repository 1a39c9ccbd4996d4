"""The log of a training run."""

import json
from pathlib import Path

import pytest

from ndsvrp.train.log import LOG, Log


@pytest.mark.parametrize("left", ["", '{"kind": "run"}\n', '{"kind": "run"}\n{"kind": "ba'])
def test_a_row_after_a_killed_run_has_its_own_line(tmp_path: Path, left: str) -> None:
    (tmp_path / LOG).write_text(left)
    log = Log(tmp_path)
    log.write("run", {"resumed": True})
    log.close()
    *before, last = (tmp_path / LOG).read_text().splitlines()
    assert json.loads(last) == {"kind": "run", "resumed": True}
    assert before == left.splitlines()
