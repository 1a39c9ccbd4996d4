"""Hostile files: refused in one line, in time and memory that are bounded by their size."""

from __future__ import annotations

import io
import json
import os
import time
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest

from ndsvrp import Problem, check
from ndsvrp.errors import InstanceError, NdsError
from ndsvrp.io import npz, read, read_set, read_solution, write_solution
from ndsvrp.io.files import check_writable, read_bytes, write_atomic
from ndsvrp.io.tables import read_json, read_toml
from ndsvrp.io.vrp import HEADERS
from ndsvrp.policy.model_file import read_model_file, read_tensors
from ndsvrp.solution import Solution
from ndsvrp.train.config import read_config

DATA = Path(__file__).parents[1] / "data"
SET = DATA / "sets/cvrp100.npz"


def message(call, *arguments, error=NdsError):
    with pytest.raises(error) as caught:
        call(*arguments)
    assert "\n" not in str(caught.value)
    return str(caught.value)


READERS = {
    "a.vrp": read, "a.npz": read, "a.sol": read_solution, "a.toml": read_config, "a.json": read_model_file,
    "a.safetensors": lambda path: read_tensors(path, ""),
}  # fmt: skip


@pytest.mark.parametrize("name", READERS)
def test_only_regular_files_are_read(tmp_path, name):
    path = tmp_path / name
    os.mkfifo(path)
    assert message(READERS[name], path) == f"{path}: is not a regular file"
    path.unlink()
    path.symlink_to("/dev/zero")
    assert message(READERS[name], path) == f"{path}: is not a regular file"
    path.unlink()
    path.write_bytes(b"")
    os.truncate(path, 2**40)
    assert message(READERS[name], path).startswith(f"{path}: is 1,048,576 MiB large, more than the ")
    path.unlink()
    assert message(READERS[name], path) == f"{path}: no such file"
    strange = os.fsdecode(os.fsencode(tmp_path / "\udcff") + name.encode())
    assert message(READERS[name], Path(strange)).endswith(": the name of the file is not UTF-8 text")
    assert "cannot be read (File name too long)" in message(READERS[name], tmp_path / ("x" * 300 + name))


@pytest.mark.parametrize("name", READERS)
def test_links_in_a_circle(tmp_path, name):
    path = tmp_path / name
    path.symlink_to(path)
    assert message(READERS[name], path) == f"{path}: cannot be read (Too many levels of symbolic links)"


def test_extended_configuration_goes_through_the_guard(tmp_path):
    os.mkfifo(tmp_path / "pipe.toml")
    (tmp_path / "a.toml").write_text('extends = "pipe.toml"\n')
    assert message(read_config, tmp_path / "a.toml") == f"{tmp_path}/pipe.toml: is not a regular file"
    (tmp_path / "a.toml").write_text('extends = "/dev/zero"\n')
    assert message(read_config, tmp_path / "a.toml") == "/dev/zero: is not a regular file"


def test_file_that_grows_while_it_is_read(tmp_path, monkeypatch):
    path = tmp_path / "a.vrp"
    path.write_bytes(b"x" * 100)
    monkeypatch.setattr("ndsvrp.io.files.stat.S_ISREG", lambda mode: os.truncate(path, 2**20) is None)
    assert read_bytes(path) == b"x" * 100


@pytest.mark.slow
@pytest.mark.parametrize("layout", ["FULL_MATRIX", "LOWER_ROW", "UPPER_DIAG_ROW"])
def test_weights_are_counted_before_memory_is_taken(tmp_path, layout):
    n = 20_000
    lines = ["TYPE : CVRP", f"DIMENSION : {n}", "CAPACITY : 9", "EDGE_WEIGHT_TYPE : EXPLICIT"]
    lines += [f"EDGE_WEIGHT_FORMAT : {layout}", "EDGE_WEIGHT_SECTION", "1 2 3", "DEMAND_SECTION"]
    lines += [f"{i} {int(i > 1)}" for i in range(1, n + 1)]
    path = tmp_path / "a.vrp"
    path.write_text("\n".join([*lines, "DEPOT_SECTION", "1", "-1", "EOF"]))
    tracemalloc.start()
    assert f"3 values, a {layout} of {n} nodes has " in message(read, path)
    assert tracemalloc.get_traced_memory()[1] < 50 * 2**20
    tracemalloc.stop()


@pytest.mark.parametrize(
    "line",
    ["Route" + " " * 60_000 + "x", "a" + " " * 60_000 + "\t-", "Cost" + " " * 60_000, "Route #1" + " " * 60_000,
     "_" + "a" * 60_000, "Route #" + "1" * 60_000, "a" * 60_000 + "-"],
    ids=lambda line: f"{line[:8]}-{line[-1]}",
)  # fmt: skip
def test_long_lines_take_linear_time(tmp_path, line):
    path = tmp_path / "a.sol"
    path.write_text("\n".join([line] * 20))
    began = time.process_time()
    assert message(read_solution, path).startswith(f"{path}:")
    path = tmp_path / "a.vrp"
    path.write_text("\n".join([line, f"{line}:", f"{line}$:"] * 20))
    assert message(read, path).startswith(f"{path}:")
    assert time.process_time() - began < 5  # about 0.1 s; 26 s for each line by backtracking


def test_sol_lines_are_read_as_before(tmp_path):
    path = tmp_path / "a.sol"
    path.write_text("route 1: 3\nROUTE#2:4\nRoute  #  3 : 5\n# x\nCost 7\n")
    assert read_solution(path) == (Solution([[3], [4], [5]]), 7.0)


def test_violations_are_cut():
    problem = read(DATA / "small/toy.vrp")
    report = check(problem, Solution([[1] * 500_000, *[[]] * 1000, [99] * 1000]))
    assert len(report.violations) == 101
    assert (report.violations[-1].kind, str(report.violations[-1])) == ("more", "… and more")
    assert not report.feasible
    few = check(problem, Solution([[1, 1], [], [99], [2], [3], [4]]))
    assert [violation.kind for violation in few.violations] == ["twice", "empty", "unknown"]


# --- .npz ------------------------------------------------------------------------------------------------


def npy(array):
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


@pytest.fixture
def archive(tmp_path):
    """Write a set whose members are those of a good one, with changes."""

    def write(**changes):
        with np.load(SET) as good:
            members = {f"{name}.npy": npy(good[name]) for name in good.files}
        path = tmp_path / "set.npz"
        with zipfile.ZipFile(path, "w") as file:
            for name, content in (members | changes).items():
                file.writestr(name, content)
        return path

    return write


def test_member_that_is_no_array(archive):
    path = archive(**{"demand.npy": b"not an array"})
    assert message(read_set, path).startswith(f"{path}: cannot be read (")
    path = archive(**{"notes.txt": b"hello"})
    assert message(read_set, path).startswith(f"{path}: cannot be read (")


def test_damaged_member(archive):
    path = archive()
    data = bytearray(path.read_bytes())
    data[300:310] = bytes(10)
    path.write_bytes(data)
    assert message(read_set, path) == f"{path}: is not an .npz archive, or a damaged one"


def test_encrypted_member(archive):
    path = archive()
    data = bytearray(path.read_bytes())
    for mark, flags in ((b"PK\3\4", 6), (b"PK\1\2", 8)):
        data[data.index(mark) + flags] |= 1
    path.write_bytes(data)
    assert "encrypted" in message(read_set, path)


def test_duplicate_member(archive):
    path = archive()
    with pytest.warns(UserWarning, match="Duplicate name"), zipfile.ZipFile(path, "a") as file:
        file.writestr("demand.npy", npy(np.zeros((2, 100))))
    assert message(read_set, path) == f"{path}: demand: given twice"


@pytest.mark.parametrize("shape", ["(10**15,)", "(1000000000000, 2)", "(-5,)", "((((", "(2, 100)" + " " * 60_000])
def test_absurd_header(archive, shape):
    shape = shape.replace("10**15", str(10**15))
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}".encode()
    content = b"\x93NUMPY\x02\x00" + len(header).to_bytes(4, "little") + header + bytes(80)
    path = archive(**{"demand.npy": content})
    assert message(read_set, path).startswith(f"{path}: cannot be read (")


@pytest.mark.parametrize(
    "header, shape",
    [
        ("{'descr': '<f8', 'fortran_order': False, 'shape': (2, 100), }", (2, 100)),
        ("{'descr': '<f4', 'fortran_order': True, 'shape': (200,), }", (200,)),
        ("{'descr': '<i4', 'fortran_order': False, 'shape': (), }", ()),
        ("{'descr': '|u1', 'fortran_order': False, 'shape': (0, 3), }", (0, 3)),
        ("{'descr':'>f8','fortran_order':False,'shape':(2,100)}", None),
        ("{'descr': '<f8', 'fortran_order': False, 'shape': (5), }", None),
        ("{'descr': '<f8', 'fortran_order': False, 'shape': (05,), }", None),
        ("{'descr': '<f1', 'fortran_order': False, 'shape': (5,), }", None),
        ("{'descr': '|O', 'fortran_order': False, 'shape': (5,), }", None),
        ("{'descr': '<f8', 'fortran_order': False, 'shape': (2, 100), 'more': 1, }", None),
    ],
)
def test_usual_headers_are_read_as_numpy_reads_them(header, shape):
    """None: left to numpy, which reads or refuses it."""
    text = header.encode() + b"   \n"
    content = b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text
    usual = npz._usual_header(content)
    assert (usual and usual[0]) == shape
    assert usual is None or usual == npz._header(content)
    assert npz._usual_header(content[:8] + b"\xff\x00" + content[10:]) is None  # the length is another one


def test_name_of_a_member_is_printable(archive):
    path = archive(**{"\x1b[31m.npy": npy(np.zeros(2))})
    assert message(read_set, path).startswith(f"{path}: \\x1b[31m: unknown array")


def test_sets_are_opened_lazily(tmp_path, monkeypatch):
    monkeypatch.setattr("ndsvrp.io.npz.CHECKED", 2)
    xy, demand = np.zeros((5, 1, 2)), np.ones((5, 1))
    demand[3] = -1
    path = tmp_path / "set.npz"
    np.savez(path, depot_xy=np.ones((5, 2)), node_xy=xy, demand=demand, capacity=np.arange(1, 6))
    problems = read_set(path)
    assert len(problems) == 5
    assert [problem.capacity for problem in problems[:3]] == [1, 2, 3]
    assert problems[-1].name == "set-0004"
    assert message(lambda: problems[3]) == f"{path}[3]: demand: -1 is negative (customer 1)"
    with pytest.raises(IndexError):
        problems[5]


def test_large_set_opens_fast(tmp_path):
    count = 300_000
    path = tmp_path / "set.npz"
    np.savez(path, depot_xy=np.ones((count, 2)), node_xy=np.zeros((count, 1, 2)), demand=np.ones((count, 1)),
             capacity=np.ones(count))  # fmt: skip
    began = time.process_time()
    assert read_set(path)[-1].name == "set-299999"
    assert time.process_time() - began < 5  # about 0.1 s; 15 s if all are built


@pytest.mark.parametrize("value", [1e308, -1e308, np.longdouble("1e400")])
@pytest.mark.filterwarnings("error")
def test_numbers_that_overflow_are_refused(value):
    far = np.array([[0, 0], [value, 1], [2, value]], np.longdouble)
    with pytest.raises(InstanceError, match=r"too large|not a finite number"):
        Problem(demand=[0, 1, 1], capacity=2, coordinates=far)
    with pytest.raises(InstanceError, match=r"capacity: 1e\+308 is too large"):
        Problem(demand=[0, 1, 1], capacity=1e308, coordinates=np.eye(3)[:, :2])


# --- JSON and TOML ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "reason"),
    [("9" * 5000, "is not JSON ("), ("[" * 100_000, "is not JSON ("), ('{"a":' * 40 + "1" + "}" * 40, "nests tables"),
     ("[" + "9" * 400 + "]", "holds a whole number of 1329 bits"), ("{", "is not JSON (")],
    ids=["digits", "brackets", "tables", "number", "cut"],
)  # fmt: skip
def test_json(tmp_path, text, reason):
    path = tmp_path / "a.json"
    path.write_text(text)
    assert message(read_json, path).startswith(f"{path}: {reason}")


@pytest.mark.parametrize(
    ("text", "reason"),
    [("a = " + "9" * 5000, "is not TOML ("), ("a = " + "[" * 20_000, "is not TOML ("),
     ("a = 0x" + "f" * 9000, "holds a whole number of "), (".".join("a" * 100) + " = 1", "nests tables"),
     ("a = 2020-99-99", "is not TOML ("), ("#" * 2**17, "is 128 KiB large")],
    ids=["digits", "brackets", "hex", "tables", "date", "size"],
)  # fmt: skip
def test_toml(tmp_path, text, reason):
    path = tmp_path / "a.toml"
    path.write_text(text)
    assert message(read_toml, path).startswith(f"{path}: {reason}")
    assert message(read_config, path).startswith(f"{path}: {reason}")


# --- writing ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o664])
def test_mode_of_a_replaced_file_is_kept(tmp_path, mode):
    path = tmp_path / "a.sol"
    path.write_text("old")
    path.chmod(mode)
    write_solution(path, Solution([[1]]), 2)
    assert path.read_text() == "Route #1: 1\nCost: 2\n"
    assert path.stat().st_mode & 0o777 == mode


@pytest.mark.parametrize("mask", [0o022, 0o077])
def test_mode_of_a_new_file_follows_the_umask(tmp_path, mask):
    before = os.umask(mask)
    try:
        write_atomic(tmp_path / "a", b"x")
    finally:
        os.umask(before)
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o666 & ~mask


def test_name_of_any_length_is_written_or_refused_before(tmp_path):
    longest = tmp_path / ("x" * 255)
    check_writable(longest)
    write_atomic(longest, b"x")
    assert message(check_writable, tmp_path / ("x" * 256)).endswith(": cannot be written (File name too long)")
    strange = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.sol"))
    assert message(check_writable, strange).endswith(": the name of the file is not UTF-8 text")


def test_harmless_fields_are_not_those_that_are_read():
    from ndsvrp.io.unsupported import REMARKS

    assert not REMARKS & HEADERS


def test_result_with_a_name_that_no_file_can_state(tmp_path):
    import ndsvrp

    problem = read(DATA / "small/toy.vrp").replace(name="\udcff\x1b")
    ndsvrp.solve(problem, iterations=1).save(tmp_path / "a.json")
    assert json.loads((tmp_path / "a.json").read_bytes())["problem"]["name"] == "\udcff\x1b"
