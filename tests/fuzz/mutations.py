"""Random damage to files and command lines, the same for the same random numbers."""

from __future__ import annotations

import io
import json
import zipfile
from random import Random
from typing import Any

import numpy as np

NUMBERS = (
    "nan", "inf", "-inf", "1e308", "-1e308", "1e999", "1e150", "1e-320", "-1", "0", "-0", "0.5", "1e9", "2147483648",
    "9223372036854775808", "99999999999999999999", "9" * 5000, "0x10", "1_0", "１２", "1e5", "4", "7.25", "+3", "1.",
)  # fmt: skip
SENSIBLE = (
    "0",
    "1",
    "2",
    "3",
    "17",
    "0.1",
    "1e-9",
    "1e-300",
    "1e9",
    "1e15",
    "1e100",
    "123456789",
    "33.333",
    "-5",
    "2e149",
)
WORDS = (
    "", "x", ":", "EOF", "-1", "#", "\x1b[2J", "\u202e", "é", "\ufeff", "\x00", "\x85", "a" * 300, " " * 60_000,
    "Route", "null", "true", "[", "{", "'", '"', "../..", "/dev/zero", "%s", "{0}", "$(id)",
)  # fmt: skip
LINES = (
    "MAXDISTANCE : 3", "FLEETSIZE : 2", "SERVICETIME : 5", "OPENVRP : 1", "VEHICULES : 2", "AUTHOR : me", "EOF",
    "DISTANCE : 30", "SERVICE_TIME : 4", "VEHICLES : 2", "VEHICLES : 0", "CAPACITY : 5", "DIMENSION : 100000",
    "NODE_COORD_SECTION", "DEMAND_SECTION", "TIME_WINDOW_SECTION", "EDGE_WEIGHT_SECTION", "DEPOT_SECTION",
    "EDGE_WEIGHT_TYPE : EXPLICIT", "EDGE_WEIGHT_FORMAT : LOWER_ROW", "TYPE : VRPTW", "Route #1: 1 2", "Cost 5",
    "[train]", "[[data]]", "extends = 'a.toml'", "Route" + " " * 60_000, "a" + " " * 60_000 + "$:", "1 1 1", "-1",
)  # fmt: skip
VALUES: tuple[Any, ...] = (
    None, True, False, -1, 0, 1, 2, 0.5, -0.0, 1e308, float("nan"), float("inf"), 2**31, 2**63, 2**70, 10**400, "", "x",
    "\x1b[2J", "é\ud800", "x" * 100_000, [], {}, [1], ["cvrp"], {"a": 1}, [[[[1]]]], {"gpu": 3}, "cvrp", "float16",
)  # fmt: skip


def damage_text(random: Random, data: bytes) -> bytes:
    """Change lines and words of a text, one to three times."""
    lines = data.decode("utf-8", "surrogateescape").split("\n")
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        at, how = random.randrange(len(lines)), random.randrange(9)
        words = lines[at].split(" ")
        if how <= 2:
            words[random.randrange(len(words))] = random.choice(NUMBERS)
            lines[at] = " ".join(words)
        elif how == 3:
            words[random.randrange(len(words))] = random.choice(WORDS)
            lines[at] = " ".join(words)
        elif how == 4:
            lines.insert(at, random.choice(LINES))
        elif how == 5 and len(lines) > 1:
            del lines[at]
        elif how == 6:
            lines[at:at] = [lines[at]] * random.choice((1, 2, 1000))
        elif how == 7:
            other = random.randrange(len(lines))
            lines[at], lines[other] = lines[other], lines[at]
        else:
            words.insert(random.randrange(len(words) + 1), random.choice(NUMBERS[:-10]))
            lines[at] = " ".join(words)
    return "\n".join(lines).encode("utf-8", "surrogateescape")


def damage_numbers(random: Random, data: bytes) -> bytes:
    """Change some numbers of a text to others that may make sense."""
    lines = data.decode().split("\n")
    for _ in range(random.choice((1, 2, 5))):
        at = random.randrange(len(lines))
        words = lines[at].split(" ")
        places = [i for i, word in enumerate(words) if word.strip("-").replace(".", "", 1).isdecimal()]
        if places:
            words[random.choice(places[-2:])] = random.choice(SENSIBLE)
            lines[at] = " ".join(words)
    return "\n".join(lines).encode()


def damage_bytes(random: Random, data: bytes) -> bytes:
    """Change bytes, wherever they are."""
    if not data:
        return b"\xff"
    changed, at = bytearray(data), random.randrange(len(data))
    how, length = random.randrange(6), random.choice((1, 2, 4, 8, 64))
    if how == 0:
        for _ in range(length):
            changed[random.randrange(len(changed))] ^= 1 << random.randrange(8)
    elif how == 1:
        changed[at : at + length] = random.choice((b"\0", b"\xff", b"\x80", b"9")) * length
    elif how == 2:
        del changed[at:]
    elif how == 3:
        del changed[at : at + length]
    elif how == 4:
        changed[at:at] = random.randbytes(length)
    else:
        changed += changed[at:]
    return bytes(changed)


def damage_value(random: Random, value: Any) -> Any:
    """Return a tree of JSON values in which a random node is replaced, removed or renamed."""
    if isinstance(value, dict | list) and value and random.random() < 0.85:
        key = random.choice(list(value)) if isinstance(value, dict) else random.randrange(len(value))
        changed = value.copy()
        how = random.random()
        if how < 0.1:
            del changed[key]
        elif how < 0.15 and isinstance(changed, dict):
            changed[random.choice(WORDS)] = changed.pop(key)
        else:
            changed[key] = damage_value(random, value[key])
        return changed
    if random.random() < 0.05:
        deep: Any = 1
        for _ in range(random.choice((30, 100, 900))):
            deep = [deep] if random.random() < 0.5 else {"a": deep}
        return deep
    return random.choice(VALUES)


def damage_json(random: Random, data: bytes) -> bytes:
    """Change a value of a JSON text, or the text."""
    if random.random() < 0.25:
        return random.choice((damage_text, damage_bytes))(random, data)
    return to_json(damage_value(random, json.loads(data)))


def to_json(value: Any) -> bytes:
    """Return JSON in one line; lone surrogates and infinite numbers pass."""
    return json.dumps(value).encode()


def damage_rows(random: Random, data: bytes) -> bytes:
    """Change a row of JSON lines, or the text."""
    if random.random() < 0.2:
        return random.choice((damage_text, damage_bytes))(random, data)
    lines = data.splitlines()
    at = random.randrange(len(lines))
    lines[at] = to_json(damage_value(random, json.loads(lines[at])))
    return b"\n".join(lines) + b"\n"


def damage_npz(random: Random, data: bytes) -> bytes:
    """Change an array of a set, a member of the archive, or its bytes."""
    if random.random() < 0.25:
        return damage_bytes(random, data)
    with np.load(io.BytesIO(data)) as archive:
        members = [(name, npy(archive[name])) for name in archive.files]
        at = random.randrange(len(members))
        name, how = members[at][0], random.randrange(8)
        array = archive[name]
    if how == 0:
        del members[at]
    elif how == 1:
        members.append((name, npy(array)))
    elif how == 2:
        members.append((random.choice(WORDS[:9]), npy(array)))
    elif how == 3:
        members[at] = name, random.choice((b"", b"text", damage_bytes(random, members[at][1])))
    elif how == 4:
        kind = random.choice(("f2", "f4", "i1", "u8", ">f8", "g", "c16", "?", "U3", "S2", "M8[s]", "i4,f8"))
        members[at] = name, npy(array.astype(np.float64).astype(kind) if kind != "i4,f8" else np.zeros(2, kind))
    elif how == 5:
        shapes = [array.T, array[..., None], array[:1], array[:0], array.ravel(), np.zeros((2, 0, 2)), array[..., :1]]
        members[at] = name, npy(random.choice(shapes))
    elif how == 6:
        changed = array.astype(np.float64)
        with np.errstate(all="ignore"):
            changed.flat[random.randrange(changed.size)] = float(random.choice(NUMBERS[:16]))
        members[at] = name, npy(changed)
    else:
        shape = random.choice(("(1000000000000,)", "(-1, 2)", "(2, 99999999999)", "((((", "'x'", "(2.5,)", "()"))
        header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}".encode()
        members[at] = name, b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + bytes(48)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", random.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))) as file:
        for member, content in members:
            file.writestr(f"{member}.npy", content)
    return buffer.getvalue()


def npy(array: Any) -> bytes:
    """Return an array as the bytes of an `.npy` file."""
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


def damage_safetensors(random: Random, data: bytes) -> bytes:
    """Change the header of a safetensors file, or its bytes."""
    if random.random() < 0.4:
        return damage_bytes(random, data)
    size = int.from_bytes(data[:8], "little")
    header = to_json(damage_value(random, json.loads(data[8 : 8 + size])))
    length = random.choice((len(header), len(header), len(header), 0, 2**63, len(header) + 1))
    return length.to_bytes(8, "little") + header + data[8 + size :]
