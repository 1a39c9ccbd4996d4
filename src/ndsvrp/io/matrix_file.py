"""Matrices of distances or durations in files of their own: `.npy`, or `.csv` with or without names."""

import csv
import io
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import numpy as np

from ndsvrp.errors import InstanceError
from ndsvrp.io.files import PathLike, read_bytes, read_text
from ndsvrp.io.npz import parse_array
from ndsvrp.io.tokens import amount, decimal, is_number, shown
from ndsvrp.metric import Floats


def read_matrix_file(path: PathLike, names: tuple[str, ...]) -> Floats:
    """Return (n, n) numbers from row to column, for nodes of these names, the depot first.

    A CSV file may begin with a row of names; then each row begins with its name, and nodes may be in any order.
    Lines may end with a separator.
    """
    suffix = Path(path).suffix.lower()
    try:
        if suffix == ".npy":
            return _numpy(read_bytes(path), len(names))
        if suffix in (".csv", ".tsv", ".txt"):
            return _text(read_text(path), names)
    except InstanceError as error:
        raise error.located(str(path)) from None
    raise InstanceError(f"a matrix is a .csv or .npy file, not '{suffix}'", file=str(path))


def _numpy(data: bytes, nodes: int) -> Floats:
    try:
        array = parse_array(data)
    except InstanceError:
        raise
    except Exception as error:  # numpy raises anything for a damaged file
        raise InstanceError(f"is not an .npy file, or a damaged one ({str(error).partition(chr(10))[0]})") from None
    if array.dtype.kind not in "iuf" or array.shape != (nodes, nodes):
        what = f"holds {array.dtype} of shape {array.shape}, expected numbers of shape {(nodes, nodes)}"
        raise InstanceError(what)
    matrix = array.astype(np.float64)
    if len(wrong := np.argwhere(~(np.isfinite(matrix) & (matrix >= 0)))):
        row, column = wrong[0]
        what = "is negative" if np.isfinite(matrix[row, column]) else "is not a finite number"
        raise InstanceError(f"{matrix[row, column]:g} from node {row} to node {column} {what}")
    return matrix


def _text(text: str, names: tuple[str, ...]) -> Floats:
    nodes, rows = len(names), _rows(text, len(names))
    columns: list[int] | None = None
    first = next(rows)
    if len(first[0]) == nodes + 1 or not is_number(first[1][-1]):  # names may be numbers
        columns = _positions(first[0][1:], names, first[2])
    else:
        rows = chain([first], rows)
    # Counted before memory is taken: a file has at least a character per number.
    if text.count("\n") + 1 < nodes:
        raise InstanceError(f"{amount(text.count(chr(10)) + 1, 'line')}, expected {nodes} rows, the depot first")
    matrix, order = np.empty((nodes, nodes)), list[int]()
    found = 0
    for words, numbers, line in rows:
        if columns is not None:
            order += _positions(words[:1], names, line)
            numbers = numbers[1:]
        if found == nodes:
            raise InstanceError(f"more than {amount(nodes, 'row')}", line=line)
        if len(numbers) != nodes:
            what = f"{amount(len(numbers), 'value')}, expected {nodes}: one per node, the depot first"
            raise InstanceError(what, line=line)
        matrix[found] = _numbers(numbers, line)
        found += 1
    if found != nodes:
        raise InstanceError(f"{amount(found, 'row')}, expected {nodes}: one per node, the depot first")
    if columns is None:
        return matrix
    if len(set(order)) != nodes or len(set(columns)) != nodes:
        raise InstanceError("a name is given twice, or one is missing")
    return np.ascontiguousarray(matrix[np.argsort(order)][:, np.argsort(columns)])


def _rows(text: str, nodes: int) -> Iterator[tuple[list[str], list[str], int]]:
    """Yield the words of each line that is not blank, as they are and with decimal points, and the line's number.

    Lines are measured before they are split.
    """
    delimiter = ""
    for number, line in enumerate(io.StringIO(text), start=1):
        if not line.strip():
            continue
        delimiter = delimiter or _delimiter(line)
        if line.count(delimiter) > 2 * nodes + 100:  # names in quotes may have some
            what = f"{line.count(delimiter) + 1:,} values, expected {nodes}: one per node, the depot first"
            raise InstanceError(what, line=number)
        try:
            words = [word.strip() for word in next(csv.reader([line], delimiter=delimiter))]
        except csv.Error as error:
            raise InstanceError(f"is not CSV ({error})", line=number) from None
        if len(words) > 1 and not words[-1]:  # no value may be missing: the line ends with a separator
            words.pop()
        if len(words) == 1 and nodes > 1 and len(words[0].split()) > 1:
            raise InstanceError("values are separated by spaces: use commas, semicolons or tabs", line=number)
        yield words, words if delimiter == "," else [decimal(word) for word in words], number


def _delimiter(line: str) -> str:
    """Return what separates the values of a line. Beside semicolons and tabs, commas are those of numbers."""
    outside = "".join(line.split('"')[::2])  # of quotes
    return next((mark for mark in ";\t" if mark in outside), ",")


def _positions(words: list[str], names: tuple[str, ...], line: int) -> list[int]:
    known = {name: i for i, name in enumerate(names)}
    if unknown := [word for word in words if word not in known]:
        word = next((word for word in unknown if not is_number(decimal(word))), unknown[0])
        kind = "not" if is_number(decimal(word)) else "neither a number nor"
        raise InstanceError(f"{shown(word)} is {kind} the name of a stop", line=line)
    return [known[word] for word in words]


def _numbers(words: list[str], line: int) -> list[float]:
    for word in words:
        if not is_number(word):
            raise InstanceError(f"{shown(word)} is not a number", line=line)
        if float(word) < 0:
            raise InstanceError(f"{shown(word)} is negative", line=line)
    return [float(word) for word in words]
