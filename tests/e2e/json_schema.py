"""Checks a JSON value against a JSON Schema that uses the keywords below and no others."""

import json
import re

_TYPES = {
    "object": lambda v: isinstance(v, dict),
    "array": lambda v: isinstance(v, list),
    "string": lambda v: isinstance(v, str),
    "boolean": lambda v: isinstance(v, bool),
    "null": lambda v: v is None,
    "integer": lambda v: isinstance(v, int) and not isinstance(v, bool),
    "number": lambda v: isinstance(v, (int, float)) and not isinstance(v, bool),
}
_KNOWN = {
    "$schema", "$id", "title", "description", "type", "enum", "const", "pattern", "minimum",
    "maximum", "properties", "required", "additionalProperties", "items", "maxItems",
}


def problems(schema, value, where="$"):
    """Every violation as 'path: what', in the order of the schema; empty if the value is valid."""
    unknown = set(schema) - _KNOWN
    if unknown:
        raise ValueError(f"{where}: the checker does not know {sorted(unknown)}")
    found = list(_scalar_problems(schema, value, where))
    if isinstance(value, dict):
        found += _object_problems(schema, value, where)
    if isinstance(value, list):
        if len(value) > schema.get("maxItems", len(value)):
            found.append(f"{where}: {len(value)} items")
        for index, item in enumerate(value):
            found += problems(schema.get("items", {}), item, f"{where}[{index}]")
    return found


def _scalar_problems(schema, value, where):
    types = schema.get("type", [])
    types = [types] if isinstance(types, str) else types
    if types and not any(_TYPES[t](value) for t in types):
        yield f"{where}: {value!r} is not {' or '.join(types)}"
    if "enum" in schema and value not in schema["enum"]:
        yield f"{where}: {value!r} is none of {schema['enum']}"
    if "const" in schema and value != schema["const"]:
        yield f"{where}: {value!r} is not {schema['const']!r}"
    if isinstance(value, str) and not re.search(schema.get("pattern", ""), value):
        yield f"{where}: {value!r} does not match {schema['pattern']}"
    if _TYPES["number"](value):
        if value < schema.get("minimum", value) or value > schema.get("maximum", value):
            yield f"{where}: {value!r} is out of range"


def _object_problems(schema, value, where):
    found = [f"{where}: no {name}" for name in schema.get("required", []) if name not in value]
    properties = schema.get("properties", {})
    rest = schema.get("additionalProperties", {})
    for name, member in value.items():
        below = properties.get(name, rest)
        if below is False:
            found.append(f"{where}: unexpected {name}")
        else:
            found += problems(below, member, f"{where}.{name}")
    return found


def load(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)
