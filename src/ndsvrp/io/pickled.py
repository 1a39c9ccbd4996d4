"""Pickles of plain data, read without running anything in them.

`pickle.load` calls whatever functions a file names. This reader knows the instructions that plain data need, and does
what they say by itself: lists, tuples, dicts with names, numbers, strings, and numpy arrays of numbers. A file that
names anything else is refused. Nothing is imported or called on behalf of a file.
"""

import math
import re
import struct
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from ndsvrp.errors import InstanceError
from ndsvrp.io.files import PathLike, read_bytes
from ndsvrp.text import printable

MOST_INSTRUCTIONS = 24_000_000  # 10,000 instances of 100 customers have 7 million
MOST_CONTAINERS = 3_000_000  # lists, tuples and dicts; the same set has 1 million
MOST_MARKS = 64  # open lists within each other; such sets have 4
LONGEST_LINE = 400  # bytes of a number or name written as text
LONGEST_INTEGER = 8  # bytes

ARRAY = ("numpy", "ndarray")
DTYPE = ("numpy", "dtype")
RECONSTRUCT = tuple((f"numpy.{core}.multiarray", "_reconstruct") for core in ("core", "_core"))
FROM_BUFFER = tuple((f"numpy.{core}.numeric", "_frombuffer") for core in ("core", "_core"))
SCALAR = tuple((f"numpy.{core}.multiarray", "scalar") for core in ("core", "_core"))
ENCODE, BYTES = ("_codecs", "encode"), ("__builtin__", "bytes")  # how Python 3 writes bytes, and none, for Python 2
KNOWN = {ARRAY, DTYPE, ENCODE, BYTES, *RECONSTRUCT, *FROM_BUFFER, *SCALAR}

_ALLOWED = "only lists, tuples, dicts, numbers, strings and arrays of numbers are read"


def read_pickle(path: PathLike) -> Any:
    """Return the data of a pickle. Instructions, containers and nesting are limited."""
    data = read_bytes(path)
    if data.startswith(b"PK"):
        raise InstanceError("is an archive, not a pickle; a file of torch.save ends in .pt", file=str(path))
    try:
        return _Machine(data).run()
    except InstanceError as error:
        raise error.located(str(path)) from None
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, struct.error):
        raise InstanceError("is not a pickle, or a damaged one", file=str(path)) from None


class _Name(tuple[str, str]):
    """A function or class that a file names. It is never looked up."""

    __slots__ = ()


class _Unfinished:
    """An array or number type whose values follow in a later instruction."""

    def __init__(self, code: str | None = None) -> None:
        self.code = code  #: of a number type
        self.keys: list[int] = []  #: under which it is remembered


def _refuse(what: str) -> NoReturn:
    raise InstanceError(f"{what}; {_ALLOWED}")


class _Machine:
    """The stack machine of the pickle format, for plain data."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0
        self.stack: list[Any] = []
        self.marks: list[list[Any]] = []  #: stacks below the open marks
        self.memory: dict[int, Any] = {}
        self.containers = 0

    def run(self) -> Any:
        """Follow the instructions up to STOP. Return what is on the stack then."""
        for _ in range(MOST_INSTRUCTIONS):
            code = self.data[self.at]
            self.at += 1
            if code == _STOP:
                (result,) = self.stack
                if self.marks or isinstance(result, _Unfinished | _Name):
                    raise ValueError("unfinished")
                return result
            act = _ACTS.get(code)
            if act is None:
                _refuse(f"holds the pickle instruction {_instruction(code)}")
            act(self)
        raise InstanceError(f"has more than {MOST_INSTRUCTIONS:,} pickle instructions, too large")

    def take(self, count: int) -> bytes:
        """Return the next bytes."""
        end = self.at + count
        if end > len(self.data):
            raise InstanceError("is cut off: a value is longer than the rest of the file")
        taken, self.at = self.data[self.at : end], end
        return taken

    def whole(self, count: int) -> int:
        """Return the next bytes as a number."""
        return int.from_bytes(self.take(count), "little")

    def line(self) -> str:
        """Return the rest of a line."""
        end = self.data.find(b"\n", self.at, self.at + LONGEST_LINE)
        if end < 0:
            raise ValueError("a line without an end")
        text = self.data[self.at : end].decode("raw_unicode_escape")
        self.at = end + 1
        return text

    def push(self, value: Any) -> None:
        """Put a value on the stack."""
        self.stack.append(value)

    def contain(self, value: Any) -> None:
        """Put a new list, tuple or dict on the stack."""
        self.containers += 1
        if self.containers > MOST_CONTAINERS:
            raise InstanceError(f"has more than {MOST_CONTAINERS:,} lists, tuples and dicts, too large")
        self.stack.append(value)

    def mark(self) -> None:
        """Begin a list of values."""
        if len(self.marks) == MOST_MARKS:
            raise InstanceError(f"is nested more than {MOST_MARKS} deep")
        self.marks.append(self.stack)
        self.stack = []

    def marked(self) -> list[Any]:
        """End a list of values, and return them."""
        values, self.stack = self.stack, self.marks.pop()
        return values

    def last(self, count: int) -> tuple[Any, ...]:
        """Take the last `count` values from the stack."""
        if count > len(self.stack):
            raise ValueError("too few values")
        values = tuple(self.stack[len(self.stack) - count :])
        del self.stack[len(self.stack) - count :]
        return values

    def drop(self) -> None:
        """Take the last value from the stack."""
        self.stack.pop()

    def remember(self, key: int) -> None:
        """Remember the last value."""
        value = self.stack[-1]
        if isinstance(value, _Unfinished):
            value.keys.append(key)
        self.memory[key] = value

    def append(self, values: list[Any]) -> None:
        """Append to the list on the stack."""
        target = self.stack[-1]
        if type(target) is not list:
            raise TypeError("not a list")
        target.extend(values)

    def set_items(self, values: list[Any]) -> None:
        """Add keys and values to the dict on the stack."""
        target = self.stack[-1]
        if type(target) is not dict or len(values) % 2:
            raise TypeError("not a dict")
        for key, value in zip(values[::2], values[1::2], strict=True):
            if type(key) is not str:  # other keys can be chosen to collide
                _refuse(f"holds a dict with a key of type {_kind(key)}")
            target[key] = value

    def make_dict(self) -> None:
        """Put a dict of the marked keys and values on the stack."""
        values = self.marked()
        self.contain({})
        self.set_items(values)

    def name(self, module: str, name: str) -> None:
        """Put a name on the stack if it is one of those that arrays need."""
        if (module, name) not in KNOWN:
            _refuse(f"names {printable(f'{module}.{name}')[:LONGEST_LINE]}, which could run code")
        self.push(_Name((module, name)))

    def stack_name(self) -> None:
        """Do the same with a module and a name from the stack."""
        module, name = self.last(2)
        if type(module) is not str or type(name) is not str:
            raise TypeError("not a name")
        self.name(module, name)

    def reduce(self) -> None:
        """Do what a known function would return for its arguments."""
        function, arguments = self.last(2)
        if not isinstance(function, _Name) or type(arguments) is not tuple:
            raise TypeError("not a function")
        if function == DTYPE:
            self.push(_Unfinished(_code(arguments[0])))
        elif function in RECONSTRUCT and arguments[0] == ARRAY:
            self.push(_Unfinished())
        elif function in FROM_BUFFER:
            content, dtype, shape, order = arguments
            self.push(_array(content, dtype, shape, order == "F"))
        elif function in SCALAR:
            dtype, content = arguments
            self.push(_array(content, dtype, (), False).item())
        elif function == ENCODE and arguments[1] == "latin1":
            self.push(arguments[0].encode("latin1"))
        elif function == BYTES and not arguments:
            self.push(b"")
        else:
            raise ValueError("unknown arguments")

    def build(self) -> None:
        """Finish an array or a number type."""
        unfinished, state = self.last(2)
        if not isinstance(unfinished, _Unfinished) or type(state) is not tuple:
            raise TypeError("nothing to finish")
        finished: Any
        if unfinished.code is not None:
            if state[1] not in ("<", ">", "|", "=") or any(part is not None for part in state[2:5]):
                raise ValueError("a number type with parts")
            finished = np.dtype(state[1].replace("|", "=") + unfinished.code)
        else:
            shape, dtype, is_fortran, content = state[-4:]
            finished = _array(content, dtype, shape, bool(is_fortran))
        self.push(finished)
        for key in unfinished.keys:
            self.memory[key] = finished


def _code(code: Any) -> str:
    """Return the code of a number type, such as `f8`."""
    if type(code) is not str or not re.fullmatch("f[248]|[iu][1248]", code):
        _refuse(f"holds an array of type '{printable(str(code))[:20] if type(code) is str else _kind(code)}'")
    return code


def _array(content: Any, dtype: Any, shape: Any, is_fortran: bool) -> npt.NDArray[Any]:
    """Return an array, after its shape was compared with its bytes."""
    if type(content) is list:
        _refuse("holds an array of objects")
    content = content.encode("latin1") if type(content) is str else content
    if type(content) is not bytes or not isinstance(dtype, np.dtype) or type(shape) is not tuple or len(shape) > 8:
        raise TypeError("not an array")
    if any(type(size) is not int or size < 0 for size in shape):
        raise TypeError("not a shape")
    if math.prod(shape) * dtype.itemsize != len(content):
        raise InstanceError(f"holds an array of shape {shape} and type {dtype} in {len(content):,} bytes")
    return np.frombuffer(content, dtype).reshape(shape, order="F" if is_fortran else "C")


def _integer(content: bytes) -> int:
    if len(content) > LONGEST_INTEGER:
        _refuse(f"holds an integer of {len(content):,} bytes")
    return int.from_bytes(content, "little", signed=True)


def _integer_line(line: str) -> int | bool:
    if line in ("00", "01"):
        return line == "01"
    value = int(line.removesuffix("L"))
    if abs(value) >= 2**63:
        _refuse(f"holds an integer of {len(line)} digits")
    return value


def _kind(value: Any) -> str:
    """Return the name of the type of a value."""
    return "a function" if isinstance(value, _Name) else type(value).__name__


def _instruction(code: int) -> str:
    import pickletools

    return next((known.name for known in pickletools.opcodes if ord(known.code) == code), f"0x{code:02x}")


def _float(content: bytes) -> float:
    value: float = struct.unpack(">d", content)[0]
    return value


Act = Callable[[_Machine], None]
_STOP = ord(".")
_ACTS: dict[int, Act] = {
    ord(code): act
    for code, act in {
        # structure of the file
        "\x80": lambda m: None if m.whole(1) <= 5 else _refuse("is a pickle of an unknown protocol"),
        "\x95": lambda m: None if m.whole(8) <= len(m.data) else _refuse("announces more than it holds"),
        "(": _Machine.mark,
        "0": _Machine.drop,
        # numbers
        "G": lambda m: m.push(_float(m.take(8))),
        "F": lambda m: m.push(float(m.line())),
        "K": lambda m: m.push(m.whole(1)),
        "M": lambda m: m.push(m.whole(2)),
        "J": lambda m: m.push(_integer(m.take(4))),
        "I": lambda m: m.push(_integer_line(m.line())),
        "L": lambda m: m.push(_integer_line(m.line())),
        "\x8a": lambda m: m.push(_integer(m.take(m.whole(1)))),
        "\x8b": lambda m: m.push(_integer(m.take(m.whole(4)))),
        "N": lambda m: m.push(None),
        "\x88": lambda m: m.push(True),
        "\x89": lambda m: m.push(False),
        # text and bytes
        "V": lambda m: m.push(m.line()),
        "X": lambda m: m.push(m.take(m.whole(4)).decode()),
        "\x8c": lambda m: m.push(m.take(m.whole(1)).decode()),
        "\x8d": lambda m: m.push(m.take(m.whole(8)).decode()),
        "T": lambda m: m.push(m.take(m.whole(4)).decode("latin1")),
        "U": lambda m: m.push(m.take(m.whole(1)).decode("latin1")),
        "B": lambda m: m.push(m.take(m.whole(4))),
        "C": lambda m: m.push(m.take(m.whole(1))),
        "\x8e": lambda m: m.push(m.take(m.whole(8))),
        "\x96": lambda m: m.push(m.take(m.whole(8))),
        # lists, tuples, dicts
        "]": lambda m: m.contain([]),
        "l": lambda m: m.contain(m.marked()),
        "a": lambda m: m.append(list(m.last(1))),
        "e": lambda m: m.append(m.marked()),
        ")": lambda m: m.contain(()),
        "t": lambda m: m.contain(tuple(m.marked())),
        "\x85": lambda m: m.contain(m.last(1)),
        "\x86": lambda m: m.contain(m.last(2)),
        "\x87": lambda m: m.contain(m.last(3)),
        "}": lambda m: m.contain({}),
        "d": _Machine.make_dict,
        "s": lambda m: m.set_items(list(m.last(2))),
        "u": lambda m: m.set_items(m.marked()),
        # values used again
        "p": lambda m: m.remember(int(m.line())),
        "q": lambda m: m.remember(m.whole(1)),
        "r": lambda m: m.remember(m.whole(4)),
        "\x94": lambda m: m.remember(len(m.memory)),
        "g": lambda m: m.push(m.memory[int(m.line())]),
        "h": lambda m: m.push(m.memory[m.whole(1)]),
        "j": lambda m: m.push(m.memory[m.whole(4)]),
        # arrays
        "c": lambda m: m.name(m.line(), m.line()),
        "\x93": _Machine.stack_name,
        "R": _Machine.reduce,
        "b": _Machine.build,
    }.items()
}
