"""JSON schemas of the files that the program writes and reads: `result`, `problem`."""

from importlib.resources import files

NAMES = ("problem", "result")


def schema_text(name: str) -> str:
    """Return the text of a schema (JSON Schema, draft 2020-12)."""
    return files(__package__).joinpath(f"{name}.schema.json").read_text(encoding="utf-8")
