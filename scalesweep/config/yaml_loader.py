"""Reading the user's YAML: safe, strict, and with one-line errors that name file and key."""

import codecs
import math
import re
from collections.abc import Hashable
from pathlib import Path
from typing import Any, ClassVar

import yaml

from scalesweep.core.errors import UserError

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
