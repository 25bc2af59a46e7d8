"""Reading the user's YAML: safe, strict, and with one-line errors that name file and key."""

import functools
import re
from collections.abc import Hashable
from pathlib import Path
from typing import Any, ClassVar

import yaml

from scalesweep.core.errors import UserError
from scalesweep.core.paths import SCHEMAS

MAX_BYTES = 4_000_000
MAX_NODES = 2_000_000  # after aliases are expanded: a bomb of a few lines reaches billions
# Control characters, halves of surrogate pairs, and what is no character at all.
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff\ufffe\uffff]")

_Base = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Loader(_Base):  # type: ignore[misc, valid-type]
    """YAML 1.2 scalars (``off`` is a string, ``1e-3`` a number, ``1:30`` a string), no
    repeated keys, bounded size."""

    yaml_implicit_resolvers: ClassVar[dict[str, list[tuple[str, re.Pattern[str]]]]] = {}

    def construct_scalar(self, node: Any) -> Any:
        value = super().construct_scalar(node)
        if isinstance(value, str) and (found := _UNPRINTABLE.search(value)):
            # YAML lets them in only by an escape; no path, command or page may hold them.
            raise yaml.constructor.ConstructorError(
                None, None, f"a character that is not printable: {found[0]!a}", node.start_mark
            )
        return value

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[Any] = set()
        for key_node, _ in node.value:
            if key_node.tag == "tag:yaml.org,2002:merge":
                continue
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, Hashable) or key in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"duplicate key '{key}'", key_node.start_mark
                )
            seen.add(key)
        mapping: dict[Hashable, Any] = super().construct_mapping(node, deep=deep)
        return mapping


for _tag, _pattern, _first in (
    ("bool", r"^(?:true|True|TRUE|false|False|FALSE)$", "tTfF"),
    ("int", r"^[-+]?(?:0|[1-9][0-9_]*)$", "-+0123456789"),
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


def _expanded_size(node: Any, known: dict[int, int]) -> int:
    """Nodes of a YAML tree with every alias counted as often as it is used."""
    if id(node) in known:
        return known[id(node)]
    known[id(node)] = MAX_NODES  # a node inside itself: as good as endless
    size = 1
    if isinstance(node, yaml.MappingNode):
        size += sum(_expanded_size(part, known) for pair in node.value for part in pair)
    elif isinstance(node, yaml.SequenceNode):
        size += sum(_expanded_size(part, known) for part in node.value)
    known[id(node)] = size
    return size


def load_yaml(path: Path) -> Any:
    """Content of a YAML file as plain Python values.

    Raises UserError if the file is missing, too large, not YAML, repeats a key, or expands
    through aliases beyond any honest size.
    """
    try:
        if path.stat().st_size > MAX_BYTES:
            raise UserError(f"{path}: larger than {MAX_BYTES // 1_000_000} MB")
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise UserError(f"{path}: no such file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: cannot be read ({error})") from None
    loader = _Loader(text)
    try:
        node = loader.get_single_node()
        if node is None:
            return None
        if _expanded_size(node, {}) >= MAX_NODES:
            raise UserError(f"{path}: aliases expand to more than {MAX_NODES} values")
        return loader.construct_document(node)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f":{mark.line + 1}" if mark else ""
        what = getattr(error, "problem", None) or getattr(error, "reason", None) or error
        raise UserError(f"{path}{line}: not valid YAML: {what}") from None
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path}: not valid YAML: {error}") from None
    finally:
        loader.dispose()


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


def _explain(error: Any) -> str:  # noqa: PLR0911 (one return per kind of error)
    """One plain sentence for a jsonschema error."""
    if error.validator == "additionalProperties":
        allowed = sorted(error.schema.get("properties", {}))
        unknown = sorted(set(error.instance) - set(allowed), key=str)
        return f"unknown key {', '.join(map(repr, unknown))}; allowed: {', '.join(allowed)}"
    if error.validator == "propertyNames":
        return f"{error.instance!r} is not a name: letters, digits, '_' and '-' only"
    if error.validator == "required":
        return str(error.message)
    if error.validator == "enum":
        return f"{error.instance!r} is not one of {', '.join(map(str, error.validator_value))}"
    if error.validator == "pattern":
        hint = error.schema.get("description", f"pattern {error.validator_value}")
        return f"{error.instance!r} is not allowed: {hint}"
    if error.validator in ("anyOf", "oneOf", "type"):
        hint = error.schema.get("description")
        kinds = error.validator_value if error.validator == "type" else None
        wanted = hint or (" or ".join(kinds) if isinstance(kinds, list) else kinds)
        return f"{short(error.instance)} is not {wanted or 'allowed here'}"
    return str(error.message)


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
        raise UserError(f"{path}: {where + ': ' if where else ''}{_explain(error)}")
