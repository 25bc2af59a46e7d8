"""Write the schemas of plan, order, native and record from their types (--check: only compare).

An object of the files is a TypedDict: its docstring is the object's description, text in an
``Annotated`` that of a field, and a ``rule`` of ``scalesweep.core.fields`` its keywords.
"""

import sys
import types
import typing
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from scalesweep.compute import native_format
from scalesweep.compute.job_spec import Order
from scalesweep.core import record_format
from scalesweep.core.paths import SCHEMAS
from scalesweep.core.plan_format import Plan

# Type, title and description of each file.
FILES: dict[str, tuple[Any, str, str]] = {
    "plan": (
        Plan, "results/plan.json",
        "Every run of a campaign with its state, for programs. Written and read by "
        "scalesweep.core.plan_format.",
    ),
    "order": (
        Order, "results/runs/<site>/<run_id>/order.json",
        "What the launcher needs to know of a run. Written and read by "
        "scalesweep.compute.job_spec, which compares the digest and looks for the required keys "
        "with the standard library only.",
    ),
    "native": (
        native_format.Native, "native.json",
        "What a benchmark program of our own leaves in its attempt's folder. Read by "
        "scalesweep.compute.program_output, which checks it with the standard library only, "
        "because it runs on compute nodes; scalesweep.compute.native_format has its types.",
    ),
    "record": (
        record_format.Record, "results/runs/<site>/<run_id>/record.json",
        "What a finished run leaves. Written by scalesweep.core.record.write_record, which checks "
        "the same keys and types with the standard library only, because it runs on compute "
        "nodes. This is schema 3; records of schema 1 hold what they say of each rank in rows, "
        "and become columns when they are read (scalesweep.core.rank_columns).",
    ),
}  # fmt: skip
# Objects that may have more keys: programs write what they like there, of later versions too.
OPEN = {
    native_format.Native, native_format.MetricValue, native_format.Work, native_format.Resources,
    native_format.Environment, record_format.RecordPoint, record_format.RecordMetric,
    record_format.RecordWork, record_format.RecordResources, record_format.RecordEnvironment,
    record_format.Git, record_format.SamplesFile,
}  # fmt: skip
PLAIN = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}
# What an order has in its file only: the seal is taken off when it is read.
SEAL = {
    "digest": {"type": "string", "description": "blake2b of the text before it, closed by a brace"}
}


def schema_of(name: str) -> dict[str, Any]:
    """The JSON Schema of a file."""
    kind, title, description = FILES[name]
    shared: dict[str, Any] = {}
    own = object_of(kind, shared)
    if kind is Order:
        own["properties"] |= SEAL
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": title}
    schema = {**head, **own, "description": description}
    return schema | ({"$defs": dict(sorted(shared.items()))} if shared else {})


def object_of(kind: Any, shared: dict[str, Any]) -> dict[str, Any]:
    """The schema of a TypedDict; objects in it are put into ``shared`` by their names."""
    hints = typing.get_type_hints(kind, include_extras=True)
    fields = {key: field_of(hint, shared) for key, hint in hints.items()}
    fields = {key: field for key, field in fields.items() if not field.get("not_in_file")}
    needed = [key for key in fields if key in kind.__required_keys__]
    return {
        "type": "object",
        "description": " ".join((kind.__doc__ or "").split()),
        **({} if kind in OPEN else {"additionalProperties": False}),
        **({"required": needed} if needed else {}),
        "properties": fields,
    }


def field_of(hint: Any, shared: dict[str, Any]) -> dict[str, Any]:
    """The schema of a value of this type."""
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Annotated, typing.NotRequired):
        field = field_of(parts[0], shared)
        for more in parts[1:]:
            field |= {"description": more} if isinstance(more, str) else keywords_of(more)
        return field
    if origin in (typing.Union, types.UnionType):
        return union_of([field_of(part, shared) for part in parts])
    if typing.is_typeddict(origin or hint):
        name = (origin or hint).__name__
        if name not in shared:
            shared[name] = {}  # an object may hold others of its kind
            shared[name] = object_of(origin or hint, shared)
        field = {"$ref": f"#/$defs/{name}"}
        # Of a generic object: what its values are.
        values = [field_of(part, shared) for part in parts]
        return field | ({"properties": {"values": {"items": values[0]}}} if values else {})
    if origin is not None:
        return container_of(origin, [field_of(part, shared) for part in parts])
    return {"type": PLAIN[hint]} if hint in PLAIN else {}


def container_of(origin: type, parts: list[dict[str, Any]]) -> dict[str, Any]:
    """The schema of a tuple, a map or a list, by those of what it holds."""
    if origin is tuple:
        return {
            "type": "array", "prefixItems": parts, "minItems": len(parts), "maxItems": len(parts)
        }  # fmt: skip
    if issubclass(origin, typing.Mapping):
        return {"type": "object"} | ({"additionalProperties": parts[1]} if parts[1] else {})
    return {"type": "array"} | ({"items": parts[0]} if parts[0] else {})


def union_of(fields: list[dict[str, Any]]) -> dict[str, Any]:
    """The schema of what is one of these; of a plain value and null in short."""
    value, *rest = fields
    if rest == [{"type": "null"}] and "type" in value and "enum" not in value:
        return value | {"type": [value["type"], "null"]}
    return {"anyOf": fields}


def keywords_of(rule: frozenset[tuple[str, Any]]) -> dict[str, Any]:
    """Keywords of JSON Schema as a map."""
    return {
        key: keywords_of(value) if isinstance(value, frozenset)
        else list(value) if isinstance(value, tuple)
        else value
        for key, value in sorted(rule)
    }  # fmt: skip


def text_of(name: str) -> str:
    """A schema as the text of its file."""
    text = yaml.safe_dump(schema_of(name), sort_keys=False, width=110, default_flow_style=None)
    return f"# tools/schemas.py writes this file.\n{text}"


def main(check: bool) -> str | None:
    """Write the schemas, or with ``check`` say which is not as it would be written."""
    for name in FILES:
        path = SCHEMAS / f"{name}.yaml"
        if check and path.read_text() != text_of(name):
            return f"error: {path.relative_to(ROOT)} is stale: tools/schemas.py"
        if not check:
            path.write_text(text_of(name))
    return None


if __name__ == "__main__":
    sys.exit(main("--check" in sys.argv))
