"""Pickles are read without running anything in them: what plain data need works, everything else is refused."""

from __future__ import annotations

import os
import pickle
import struct
import time
import tracemalloc
from collections import OrderedDict
from pathlib import Path

import numpy as np
import pytest

from ndsvrp.errors import InstanceError
from ndsvrp.io import pickled
from ndsvrp.io.pickled import read_pickle

PROTOCOLS = range(pickle.HIGHEST_PROTOCOL + 1)


@pytest.fixture
def load(tmp_path: Path):
    def load(content: bytes):
        path = tmp_path / "set.pkl"
        path.write_bytes(content)
        return read_pickle(path)

    return load


@pytest.fixture
def refuse(load):
    """Return why a file is refused: in one line, with the file, in little time and memory."""

    def refuse(content: bytes) -> str:
        tracemalloc.start()
        start = time.perf_counter()
        try:
            with pytest.raises(InstanceError) as caught:
                load(content)
            assert tracemalloc.get_traced_memory()[1] < 64 * 2**20
        finally:
            tracemalloc.stop()
        assert time.perf_counter() - start < 20
        text = str(caught.value)
        assert "set.pkl: " in text and "\n" not in text and len(text) < 800
        return text.partition("set.pkl: ")[2]

    return refuse


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_plain_data(load, protocol: int) -> None:
    shared = [0.1, -0.0, 1e-320]
    data = [
        ([0.25, 1.0], shared, (1, 255, 256, 70_000, -1, 2**31, -(2**62)), 50.0),
        {"näme": None, "flags": [True, False], "none": (), "one": (1,), "again": shared, "empty": {}},
    ]
    found = load(pickle.dumps(data, protocol))
    assert found == data
    assert [type(x) for x in found[0][2]] == [int] * 7
    assert found[1]["again"] is found[0][1]


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("kind", ["f8", "f4", ">f8", "i8", "i4", "u1", "<u2"])
def test_arrays(load, protocol: int, kind: str) -> None:
    array = np.arange(6).reshape(2, 3).astype(kind)
    data = [array, {"turned": array.T, "again": array}, array[0, 1], np.zeros((0, 2), kind), np.array(3, kind)]
    found = load(pickle.dumps(data, protocol))
    for one, other in ((found[0], array), (found[1]["turned"], array.T), (found[3], data[3]), (found[4], data[4])):
        assert one.dtype == other.dtype and np.array_equal(one, other)
    assert found[2] == array[0, 1] and found[1]["again"] is found[0]


class Call:
    """Pickled as a call of a function."""

    def __init__(self, function, *arguments) -> None:
        self.call = function, arguments

    def __reduce__(self):
        return self.call


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(
    ("function", "arguments", "name"),
    [
        (os.system, ("touch ran",), "posix.system"),
        (eval, ("open('ran', 'w')",), "eval"),
        (exec, ("open('ran', 'w')",), "exec"),
        (open, ("ran", "w"), "open"),
        (getattr, ([], "append"), "getattr"),
        (np.load, ("ran",), "load"),
        (np.lib.format.open_memmap, ("ran", "w+"), "open_memmap"),
    ],
)
def test_calls_are_refused_by_name(refuse, tmp_path, monkeypatch, protocol, function, arguments, name) -> None:
    monkeypatch.chdir(tmp_path)
    text = refuse(pickle.dumps([1, Call(function, *arguments)], protocol))
    assert text.startswith("names ") and name in text and "could run code" in text
    assert not Path("ran").exists()


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (OrderedDict(a=1), "names collections.OrderedDict"),
        ({1, 2}, "EMPTY_SET"),
        (np.array([[1], None], object), "type 'O8'"),
        (np.array(["a"]), "type 'U1'"),
        (np.array([True]), "type 'b1'"),
        (np.array([(1, 2.0)], "i4,f8"), "type 'V12'"),
        ({1: 2}, "key of type int"),
        ({(1, 2): 2}, "key of type tuple"),
        (10**400, "integer of 167 bytes"),
        (Path("a"), "PosixPath"),
        (1 + 2j, "complex"),
    ],
)
def test_other_types_are_refused_by_name(refuse, value, reason: str) -> None:
    assert reason in refuse(pickle.dumps([value], 4))


def binary(count: int) -> bytes:
    return struct.pack("<I", count)


BOMBS = {
    "deep list": (b"(" * 100 + b"l" * 100 + b".", "nested more than 64"),
    "deep marks": (b"\x80\x04" + b"](" * 1_000_000, "nested more than 64"),
    "huge memo": (b"\x80\x02]r\xff\xff\xff\x7f(K\x01e.", None),
    "long text": (b"\x80\x04\x8d" + struct.pack("<Q", 2**62) + b"a.", "cut off"),
    "long bytes": (b"\x80\x05\x96" + struct.pack("<Q", 2**40) + b"a.", "cut off"),
    "long integer": (b"\x80\x02\x8b" + binary(2**31 - 1) + b"\x01.", "cut off"),
    "many digits": (b"I" + b"9" * 300 + b"\n.", "integer of 300 digits"),
    "too many digits": (b"I" + b"9" * 100_000 + b"\n.", "damaged"),
    "frame": (b"\x80\x04\x95" + struct.pack("<Q", 2**60) + b"].", "announces more"),
    "protocol": (b"\x80\x63].", "unknown protocol"),
    "extension": (b"\x80\x02\x82\x01.", "EXT1"),
    "persistent": (b"Pname\n.", "PERSID"),
    "instance": (b"(iposix\nsystem\n.", "INST"),
    "new object": (b"\x80\x02]]\x81.", "NEWOBJ"),
    "unknown": (b"\xfe.", "0xfe"),
}


@pytest.mark.parametrize("name", BOMBS)
def test_bombs(load, refuse, name: str) -> None:
    content, reason = BOMBS[name]
    if reason is None:
        assert load(content) == [1]
    else:
        assert reason in refuse(content)


def test_counts_are_limited(refuse, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pickled, "MOST_CONTAINERS", 1000)
    monkeypatch.setattr(pickled, "MOST_INSTRUCTIONS", 5000)
    assert "more than 1,000 lists" in refuse(b"\x80\x04" + b"]" * 2000 + b".")
    assert "more than 5,000 pickle instructions" in refuse(b"\x80\x04]\x94(" + b"h\x00" * 6000 + b"e.")


def test_array_headers_are_compared_with_their_bytes(refuse) -> None:
    array = pickle.dumps(np.zeros((3, 2)), 2)
    assert "shape (255, 2) and type float64 in 48 bytes" in refuse(array.replace(b"K\x03K\x02\x86", b"K\xffK\x02\x86"))
    huge = pickle.dumps([np.zeros((3, 2))], 2).replace(
        b"K\x03K\x02\x86", b"\x8a\x07\xff\xff\xff\xff\xff\xff\x7fK\x02\x86"
    )
    assert "in 48 bytes" in refuse(huge)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_truncated(refuse, protocol: int) -> None:
    content = pickle.dumps([([0.5, 0.25], [[0.1, 0.2]], [3], 50.0)], protocol)
    for end in range(1, len(content)):
        assert refuse(content[:end])


@pytest.mark.slow
def test_damaged_bytes_never_raise_anything_else(load) -> None:
    content = pickle.dumps([([0.5, 0.25], np.arange(4.0), {"a": [3]}, np.float32(50))], 4)
    for at in range(len(content)):
        for byte in (0, 0x28, 0x2E, 0x52, 0x62, 0x65, 0x68, 0x80, 0x93, 0xFF):
            try:
                load(content[:at] + bytes([byte]) + content[at + 1 :])
            except InstanceError as error:
                assert "\n" not in str(error)


@pytest.mark.parametrize("content", [b"hello", b"\x00" * 40, b".", b"a.", b"(.", b"].]", b"0.", b"NN.", b"R.", b"Nb."])
def test_no_pickle(load, content: bytes) -> None:
    if content == b"].]":  # what follows STOP is not read, as by pickle
        assert load(content) == []
        return
    with pytest.raises(InstanceError, match=r"not a pickle|holds the pickle instruction"):
        load(content)


def test_an_archive_is_no_pickle(refuse) -> None:
    assert "ends in .pt" in refuse(b"PK\x03\x04rest")
