"""A small validator for the part of JSON Schema that the package's schemas use."""

from __future__ import annotations

import re
from typing import Any

TYPES: dict[str, Any] = {
    "object": dict, "array": list, "string": str, "boolean": bool, "integer": int, "number": (int, float),
    "null": type(None),
}  # fmt: skip
KNOWN = {
    "$schema", "title", "description", "type", "properties", "required", "additionalProperties", "items", "enum",
    "minimum", "exclusiveMinimum", "minItems", "maxItems", "anyOf", "minLength", "dependentRequired", "$defs", "$ref",
    "pattern",
}  # fmt: skip


def faults(value: Any, schema: dict[str, Any], path: str = "$", root: dict[str, Any] | None = None) -> list[str]:
    """Return where a value breaks a schema."""
    root = root or schema
    assert set(schema) <= KNOWN, set(schema) - KNOWN
    if "$ref" in schema:
        return faults(value, root["$defs"][schema["$ref"].removeprefix("#/$defs/")], path, root)
    found = []
    kinds = [schema["type"]] if isinstance(schema.get("type"), str) else schema.get("type", [])
    if kinds and not any(
        isinstance(value, TYPES[kind]) and not (isinstance(value, bool) and kind != "boolean") for kind in kinds
    ):
        return [f"{path}: {value!r} is not of type {kinds}"]
    if "enum" in schema and value not in schema["enum"]:
        found.append(f"{path}: {value!r} is none of {schema['enum']}")
    if "anyOf" in schema and all(faults(value, option, path, root) for option in schema["anyOf"]):
        found.append(f"{path}: {value!r} fits no option")
    if isinstance(value, int | float) and not isinstance(value, bool):
        above = value > schema.get("exclusiveMinimum", value - 1)
        found += [] if above and value >= schema.get("minimum", value) else [f"{path}: {value!r} is too small"]
    if isinstance(value, list):
        if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)):
            found.append(f"{path}: {len(value)} items")
        for i, entry in enumerate(value):
            found += faults(entry, schema.get("items", {}), f"{path}[{i}]", root)
    if isinstance(value, str) and len(value) < schema.get("minLength", 0):
        found.append(f"{path}: too short")
    if isinstance(value, str) and not re.search(schema.get("pattern", ""), value):
        found.append(f"{path}: {value!r} is not like {schema['pattern']}")
    if isinstance(value, dict):
        found += [f"{path}.{name}: missing" for name in schema.get("required", []) if name not in value]
        for name, others in schema.get("dependentRequired", {}).items():
            found += [f"{path}.{other}: missing" for other in others if name in value and other not in value]
        properties, more = schema.get("properties", {}), schema.get("additionalProperties", {})
        for name, entry in value.items():
            if name in properties:
                found += faults(entry, properties[name], f"{path}.{name}", root)
            elif more is False:
                found.append(f"{path}.{name}: unknown")
            elif isinstance(more, dict):
                found += faults(entry, more, f"{path}.{name}", root)
    return found
