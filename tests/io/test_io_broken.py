"""Every broken file gives its one-line message: file, line and field."""

from __future__ import annotations

import os
import re
import warnings
from pathlib import Path

import numpy as np
import pytest

from ndsvrp.errors import InstanceError
from ndsvrp.io import read, read_set, read_solution

DATA = Path(__file__).parents[1] / "data"
BROKEN = DATA / "broken"
MESSAGES = {
    re.match(r"[\w-]+\.\w+", line)[0]: line for line in (DATA / "broken-messages.txt").read_text("utf-8").splitlines()
}


def test_every_broken_file_has_its_message():
    assert sorted(MESSAGES) == sorted(file.name for file in BROKEN.iterdir())


@pytest.mark.parametrize("name", MESSAGES)
def test_message(name, monkeypatch):
    monkeypatch.chdir(BROKEN)
    reader = {".sol": read_solution, ".npz": read_set}.get(Path(name).suffix, read)
    with warnings.catch_warnings(), pytest.raises(InstanceError) as caught:
        warnings.simplefilter("error")
        reader(name)
    assert str(caught.value) == MESSAGES[name]
    assert "\n" not in str(caught.value)


def test_parts_of_a_message_can_be_asked_for():
    with pytest.raises(InstanceError) as caught:
        read(BROKEN / "solomon-window-closed.txt")
    error = caught.value
    assert (error.file, error.line) == (str(BROKEN / "solomon-window-closed.txt"), 12)
    assert (error.field, error.node) == ("windows", 2)
    assert error.message == "due date 20 is before ready time 35 (customer 2)"


def message(call, *arguments):
    with pytest.raises(InstanceError) as caught:
        call(*arguments)
    return str(caught.value)


@pytest.mark.parametrize("name", ["a.vrp", "a.npz", "a.txt"])
@pytest.mark.parametrize("call", [read, read_set, read_solution])
def test_missing_file_and_directory(tmp_path, name, call):
    path = tmp_path / name
    assert message(call, path) == f"{path}: no such file"
    path.mkdir()
    assert message(call, path) == f"{path}: is a directory, not a file"


@pytest.mark.parametrize("name", ["huge.vrp", "huge.npz", "huge.sol"])
def test_huge_file_is_refused_before_it_is_read(tmp_path, name):
    path = tmp_path / name
    with path.open("wb") as file:
        file.truncate(2**40)  # sparse: takes no room, but reading it would not end
    call = read_solution if name.endswith("sol") else read
    assert message(call, path) == f"{path}: is 1,048,576 MiB large, more than the 256 MiB read"


def test_archive_that_unpacks_to_much_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("ndsvrp.io.npz.MAX_UNPACKED", 2**20)
    path = tmp_path / "bomb.npz"
    np.savez_compressed(path, demand=np.zeros(2**18))
    assert path.stat().st_size < 2**14
    assert message(read, path) == f"{path}: unpacks to 2 MiB, too large"


def test_pipe_is_refused(tmp_path):
    path = tmp_path / "pipe.vrp"
    os.mkfifo(path)
    assert message(read, path) == f"{path}: is not a regular file"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_unreadable_file(tmp_path):
    path = tmp_path / "secret.vrp"
    path.write_text("NAME : secret\n")
    path.chmod(0)
    assert message(read, path) == f"{path}: cannot be read (Permission denied)"


def test_path_with_a_nul():
    assert message(read, "a\0b.vrp").endswith("b.vrp: cannot be read (embedded null byte)")


@pytest.mark.parametrize("source", ["small/toy.vrp", "small/toytw.vrp", "small/toymatrix.vrp", "small/toy.txt"])
def test_file_cut_anywhere_is_read_or_refused_in_one_line(tmp_path, source):
    whole = (DATA / source).read_bytes()
    path = tmp_path / Path(source).name
    read_whole = 0
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        try:
            read(path)
            read_whole += 1
        except InstanceError as error:
            assert str(error).startswith(str(path)) and "\n" not in str(error)
    # What can be missing unseen: the end marks of a VRPLIB file (`-1`, `EOF`), and the last customers of a Solomon
    # table, which does not say how many there are.
    assert read_whole == (7 if source.endswith(".vrp") else 13)
