"""Reading the user's YAML: safe, strict, and with one-line errors that name file and key."""

import codecs
import functools
import math
import re
from collections.abc import Hashable
from pathlib import Path
from typing import Any, ClassVar

import yaml

from scalesweep.core.errors import UserError, choices, did_you_mean
from scalesweep.core.paths import SCHEMAS

MAX_BYTES = 4_000_000
MAX_DIGITS = 18  # of a whole number: more does not fit into 64 bits
MAX_NODES = 2_000_000  # after aliases are expanded: a bomb of a few lines reaches billions
# Control characters, halves of surrogate pairs, and what is no character at all.
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff\ufffe\uffff]")

_TAG = re.compile(r"for the tag '(?:tag:yaml.org,2002:|!)([^']*)'")

_BASES = {"0o": 8, "0x": 16}

_Base = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Loader(_Base):  # type: ignore[misc, valid-type]
    """YAML 1.2 scalars (``off`` is a string, ``1e-3`` a number, ``1:30`` a string), no
    repeated keys, bounded size."""

    yaml_implicit_resolvers: ClassVar[dict[str, list[tuple[str, re.Pattern[str]]]]] = {}

    def construct_scalar(self, node: Any) -> Any:
        value = super().construct_scalar(node)
        if isinstance(value, str) and (match := _UNPRINTABLE.search(value)):
            # YAML lets them in only by an escape; no path, command or page may hold them.
            raise yaml.constructor.ConstructorError(
                None, None, f"a character that is not printable: {match[0]!a}", node.start_mark
            )
        return value

    def construct_yaml_float(self, node: Any) -> float:
        number: float = super().construct_yaml_float(node)
        if not math.isfinite(number):
            raise yaml.constructor.ConstructorError(
                None, None, f"{node.value} is not a finite number", node.start_mark
            )
        return number

    def construct_yaml_int(self, node: Any) -> int:
        digits = sum(map(str.isdigit, node.value))
        if digits > MAX_DIGITS:
            raise yaml.constructor.ConstructorError(
                None,
                None,
                f"a whole number of {digits} digits; at most {MAX_DIGITS} (quote it if it is text)",
                node.start_mark,
            )
        if base := _BASES.get(node.value.lstrip("+-")[:2]):
            number = int(node.value.replace("_", ""), base)
            if abs(number) >= 10**MAX_DIGITS:
                raise yaml.constructor.ConstructorError(
                    None, None, f"{node.value} has more than {MAX_DIGITS} digits", node.start_mark
                )
            return number
        whole: int = super().construct_yaml_int(node)
        return whole

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[Any] = set()
        for key_node, _ in node.value:
            if key_node.tag == "tag:yaml.org,2002:merge":
                continue
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, Hashable) or key in seen:
                what = "duplicate key" if isinstance(key, Hashable) else "not one value as a key:"
                raise yaml.constructor.ConstructorError(
                    None, None, f"{what} '{key}'", key_node.start_mark
                )
            seen.add(key)
        mapping: dict[Hashable, Any] = super().construct_mapping(node, deep=deep)
        return mapping


for _tag, _pattern, _first in (
    ("bool", r"^(?:true|True|TRUE|false|False|FALSE)$", "tTfF"),
    ("int", r"^(?:[-+]?(?:0|[1-9][0-9_]*)|0o[0-7]+|0x[0-9a-fA-F]+)$", "-+0123456789"),
    (
        "float",
        r"^(?:[-+]?(?:[0-9][0-9_]*(?:\.[0-9_]*)?|\.[0-9_]+)(?:[eE][-+]?[0-9]+)?"
        r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$",
        "-+0123456789.",
    ),
    ("null", r"^(?:~|null|Null|NULL|)$", ["~", "n", "N", ""]),
    ("merge", r"^(?:<<)$", "<"),
):
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(_pattern), list(_first))


for _tag in ("float", "int"):
    _Loader.add_constructor(f"tag:yaml.org,2002:{_tag}", getattr(_Loader, f"construct_yaml_{_tag}"))


def _parts(node: Any) -> list[Any]:
    if isinstance(node, yaml.MappingNode):
        return [part for pair in node.value for part in pair]
    return list(node.value) if isinstance(node, yaml.SequenceNode) else []


def _inside_itself(node: Any) -> Any | None:
    """A node of a YAML tree that is part of itself; None if there is none."""
    around: set[int] = set()
    known: set[int] = set()
    stack = [(node, iter(_parts(node)))]
    around.add(id(node))
    while stack:
        here, parts = stack[-1]
        part = next(parts, None)
        if part is None:
            stack.pop()
            around.discard(id(here))
            known.add(id(here))
        elif id(part) in around:
            return part
        elif id(part) not in known and not isinstance(part, yaml.ScalarNode):
            stack.append((part, iter(_parts(part))))
            around.add(id(part))
    return None


def _expanded_size(node: Any, known: dict[int, int]) -> int:
    """Nodes of a YAML tree with every alias counted as often as it is used."""
    if id(node) in known:
        return known[id(node)]
    size = known[id(node)] = 1 + sum(_expanded_size(part, known) for part in _parts(node))
    return size


def load_yaml(path: Path) -> Any:
    """Content of a YAML file as plain Python values.

    Raises UserError if the file is missing, too large, not YAML, repeats a key, or expands
    through aliases beyond any honest size.
    """
    loader = _Loader(_read_text(path))
    try:
        node = loader.get_single_node()
        if node is None:
            return None
        if inside := _inside_itself(node):
            line = inside.start_mark.line + 1
            raise UserError(f"{path}:{line}: not valid YAML: an anchor (&) that contains itself")
        if _expanded_size(node, {}) >= MAX_NODES:
            raise UserError(f"{path}: aliases expand to more than {MAX_NODES} values")
        return loader.construct_document(node)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f":{mark.line + 1}" if mark else ""
        raise UserError(f"{path}{line}: not valid YAML: {_problem(error)}") from None
    except RecursionError:
        raise UserError(f"{path}: not valid YAML: nested too deeply") from None
    except ValueError as error:
        raise UserError(f"{path}: not valid YAML: {error}") from None
    finally:
        loader.dispose()


def _read_text(path: Path) -> str:
    """The file as text, without a byte order mark; raises UserError."""
    content = b""
    try:
        if not path.is_file() and path.exists():
            raise UserError(f"{path}: not a regular file")
        if path.stat().st_size > MAX_BYTES:
            raise UserError(f"{path}: larger than {MAX_BYTES // 1_000_000} MB")
        content = path.read_bytes()
        return content.decode("utf-8-sig")
    except FileNotFoundError:
        raise UserError(f"{path}: no such file") from None
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        utf16 = content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
        line = content.count(b"\n", 0, error.start) + 1
        what = "cannot be read: it is UTF-16" if utf16 else f"line {line} is not UTF-8"
        raise UserError(f"{path}: {what}; save the file as UTF-8") from None


def _problem(error: yaml.YAMLError) -> str:
    """What is wrong, in a user's words."""
    what = str(getattr(error, "problem", None) or getattr(error, "reason", None) or error)
    if match := _TAG.search(what):
        return f"the tag !!{match[1]} is not allowed; write a plain value"
    if "tab character" in what or "'\\t'" in what:
        return "a tab in the indentation; use spaces"
    return what


@functools.cache
def _validator(schema: str) -> Any:
    # Imported on use: jobs parse the Snakefile without validating anything.
    import jsonschema

    content = _whole(load_yaml(SCHEMAS / f"{schema}.yaml"))
    return jsonschema.validators.validator_for(content)(content)


def _whole(schema: Any) -> Any:
    """A schema whose patterns end where the text does: Python's ``$`` lets a line feed follow."""
    if isinstance(schema, list):
        return [_whole(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: f"{part[:-1]}\\Z" if key == "pattern" and str(part).endswith("$") else _whole(part)
        for key, part in schema.items()
    }


_KINDS = {
    "object": "a mapping (key: value)",
    "array": "a list",
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "null": "empty",
}
_BOUNDS = {
    "minimum": "{} or more",
    "exclusiveMinimum": "more than {}",
    "maximum": "{} or less",
    "exclusiveMaximum": "less than {}",
    "minItems": "a list of {} or more",
    "maxItems": "a list of {} or less",
    "minProperties": "a mapping of {} key(s) or more",
    "minLength": "text of {} character(s) or more",
    "maxLength": "text of {} character(s) or less",
}


def _explain(error: Any) -> str:  # noqa: PLR0911 (one return per kind of error)
    """One plain sentence for a jsonschema error."""
    rule, given = error.validator, error.instance
    if rule == "additionalProperties":
        allowed = sorted(error.schema.get("properties", {}))
        unknown = sorted(set(given) - set(allowed), key=str)
        return f"unknown key {', '.join(map(repr, unknown))}; {choices(unknown[0], allowed)}"
    if rule == "propertyNames":
        return f"{given!r} is not a name: letters, digits, '_' and '-' only"
    if rule == "required":
        missing = [key for key in error.validator_value if key not in given]
        return f"the key {missing[0]!r} is missing"
    if rule == "enum":
        allowed = [str(value) for value in error.validator_value]
        hint = f"; {did_you_mean(given, allowed)}".rstrip("; ")
        return f"{short(given)} is not one of {', '.join(allowed)}{hint}"
    if rule == "pattern":
        hint = error.schema.get("description", f"pattern {error.validator_value}")
        return f"{short(given)} is not allowed: {hint}"
    if rule in _BOUNDS:
        return f"{short(given)} is not {_BOUNDS[rule].format(error.validator_value)}"
    if rule in ("anyOf", "oneOf", "type"):
        return _explain_type(error)
    return str(error.message)


def _explain_type(error: Any) -> str:
    """What was given, and what is wanted instead."""
    given = error.instance
    kinds = error.validator_value if error.validator == "type" else []
    kinds = kinds if isinstance(kinds, list) else [kinds]
    wanted = error.schema.get("description") or " or ".join(_KINDS[kind] for kind in kinds)
    wanted = wanted or "allowed here"
    if given is None:
        return f"is empty; write {wanted}" if wanted != "allowed here" else "is empty"
    if kinds == ["string"] and isinstance(given, bool | int | float):
        text = str(given).lower() if isinstance(given, bool) else str(given)
        return f'{text} is not text; write "{text}" in quotes'
    return f"{short(given)} is not {wanted}"


def short(value: Any) -> str:
    """A value for a message: its ``repr``, cut at 60 characters."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def check_schema(value: Any, schema: str, path: Path) -> None:
    """Raise UserError naming file, key and what is allowed unless ``value`` fits the schema.

    ``schema`` names a file in workflow/schemas without its ending.
    """
    errors = sorted(_validator(schema).iter_errors(value), key=lambda e: len(e.absolute_path))
    if errors:
        error = errors[0]
        where = ".".join(str(part) for part in error.absolute_path)
        text = _explain(error)
        if where:
            raise UserError(f"{path}: {where}{' ' if text.startswith('is ') else ': '}{text}")
        if value is None:
            raise UserError(
                f"{path}: the file is empty; write a {schema} file (docs/reference/{schema}.md)"
            )
        raise UserError(f"{path}: {text}")
