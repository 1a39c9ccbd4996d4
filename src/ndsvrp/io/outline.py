"""The outline of a VRPLIB file: header fields and sections with their lines, values not parsed yet.

    NAME : toy                  a field: a name, a colon, the rest of the line
    NODE_COORD_SECTION          a section: its name alone on a line, then rows of words
    1 0 0
    EOF                         the rest is ignored

Blank lines and lines that start with # are ignored.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from ndsvrp.errors import InstanceError
from ndsvrp.io.tokens import shown

_SECTION = re.compile(r"([A-Za-z]\w{0,50})_SECTION\s*:?", re.ASCII | re.IGNORECASE)
_NAME = re.compile(r"[A-Za-z][\w -]{0,50}", re.ASCII)


class Field(NamedTuple):
    """A header field."""

    value: str
    line: int


class Row(NamedTuple):
    """A line of a section."""

    words: list[str]
    line: int


@dataclass
class Section:
    """A section. `name` is without _SECTION."""

    name: str
    line: int
    rows: list[Row] = field(default_factory=list)

    @property
    def title(self) -> str:
        """The name as in the file."""
        return f"{self.name}_SECTION"

    def fault(self, message: str, line: int | None = None) -> InstanceError:
        """Return an error in this section."""
        return InstanceError(message, field=self.title, line=self.line if line is None else line)

    def words(self) -> Iterator[tuple[str, int]]:
        """Return all words in reading order, each with its line."""
        return ((word, row.line) for row in self.rows for word in row.words)


@dataclass
class Outline:
    """A file. Names are upper case."""

    fields: dict[str, Field] = field(default_factory=dict)
    sections: dict[str, Section] = field(default_factory=dict)
    last_line: int = 0  #: that was read

    def no_section(self, name: str) -> InstanceError:
        """Return the error for a missing section."""
        return InstanceError("missing, the file ends here", field=f"{name}_SECTION", line=self.last_line)

    def no_field(self, name: str) -> InstanceError:
        """Return the error for a missing field."""
        end = min((section.line for section in self.sections.values()), default=self.last_line)
        return InstanceError("missing, the head ends here", field=name, line=end)


_Entry = TypeVar("_Entry", Field, Section)


def outline(text: str) -> Outline:
    """Return the fields and sections of a file."""
    found = Outline()
    section: Section | None = None
    for number, raw in enumerate(text.split("\n"), start=1):
        line = raw.strip()
        head, colon, value = line.partition(":")
        if not line or line.startswith("#"):
            continue
        found.last_line = number
        if line.rstrip(" :").upper() == "EOF":
            break
        if match := _SECTION.fullmatch(line):
            section = Section(match[1].upper(), number)
            _add(found.sections, section.name, section, section.title, number)
        elif colon and _NAME.fullmatch(head := head.rstrip()):
            section = None
            name = plain_name(head)
            if name != "COMMENT":
                _add(found.fields, name, Field(value.strip(), number), name, number)
        elif section is not None:
            section.rows.append(Row(line.split(), number))
        else:
            what = f"{shown(line)} is neither a field (NAME : value) nor part of a section"
            raise InstanceError(what, line=number)
    for name in found.sections.keys() & found.fields.keys():
        line_ = found.sections[name].line
        raise InstanceError(
            f"given as a field, too (line {found.fields[name].line})", field=f"{name}_SECTION", line=line_
        )
    return found


def plain_name(name: str) -> str:
    """Return the name of a field as `Outline` has it."""
    return re.sub(r"[ -]+", "_", name.strip().upper())


def _add(entries: dict[str, _Entry], name: str, entry: _Entry, title: str, line: int) -> None:
    if name in entries:
        raise InstanceError(f"given twice (first on line {entries[name].line})", field=title, line=line)
    entries[name] = entry
