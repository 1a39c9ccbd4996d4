"""Griffe extension of the documentation site: a comment that begins with `#:` documents the attribute of its line."""

from typing import Any

import griffe


class FieldComments(griffe.Extension):
    """Makes such comments docstrings, which the Python reference shows."""

    def on_attribute_instance(self, *, attr: griffe.Attribute, **_: Any) -> None:
        """Give an attribute without a docstring the comment at the end of its last line."""
        comment = attr.lines[-1].partition("  #: ")[2] if attr.lines else ""
        if comment and attr.docstring is None:
            attr.docstring = griffe.Docstring(comment, lineno=attr.endlineno, parent=attr)
