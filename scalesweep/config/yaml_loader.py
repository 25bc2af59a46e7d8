"""Reading the user's YAML: safe, strict, and with one-line errors that name file and line."""

import math
import re
from collections.abc import Hashable
from pathlib import Path
from typing import Any, ClassVar

import yaml

from scalesweep.core.errors import UserError

_TAG = re.compile(r"for the tag '(?:tag:yaml.org,2002:|!)([^']*)'")
_BASES = {"0o": 8, "0x": 16}
_Base = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Loader(_Base):  # type: ignore[misc, valid-type]
    """YAML 1.2 scalars (``off`` is a string, ``1e-3`` a number, ``1:30`` a string), no
    repeated keys."""

    yaml_implicit_resolvers: ClassVar[dict[str, list[tuple[str, re.Pattern[str]]]]] = {}

    def construct_yaml_float(self, node: Any) -> float:
        number: float = super().construct_yaml_float(node)
        if not math.isfinite(number):
            _refuse(f"{node.value} is not a finite number", node)
        return number

    def construct_yaml_int(self, node: Any) -> int:
        base = _BASES.get(node.value.lstrip("+-")[:2], 10)
        number = int(node.value.replace("_", ""), base)
        if abs(number) >= 2**63:
            _refuse(f"{node.value} is more than 64 bits (quote it if it is text)", node)
        return number

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[Any] = set()
        for key_node, _ in node.value:
            if key_node.tag == "tag:yaml.org,2002:merge":
                continue
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, Hashable):
                _refuse(f"not one value as a key: '{key}'", key_node)
            if key in seen:
                _refuse(f"duplicate key '{key}'", key_node)
            seen.add(key)
        mapping: dict[Hashable, Any] = super().construct_mapping(node, deep=deep)
        return mapping


def _refuse(text: str, node: Any) -> None:
    raise yaml.constructor.ConstructorError(None, None, text, node.start_mark)


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


def load_yaml(path: Path) -> Any:
    """Content of a YAML file as plain Python values; raises UserError if there is none."""
    try:
        return yaml.load(path.read_text("utf-8-sig"), _Loader)
    except FileNotFoundError:
        raise UserError(f"{path}: no such file") from None
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UserError(f"{path}: is not UTF-8; save the file as UTF-8") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f":{mark.line + 1}" if mark else ""
        raise UserError(f"{path}{line}: not valid YAML: {_problem(error)}") from None
    except (RecursionError, ValueError) as error:
        raise UserError(f"{path}: not valid YAML: {error}") from None


def _problem(error: yaml.YAMLError) -> str:
    """What is wrong, in a user's words."""
    what = str(getattr(error, "problem", None) or getattr(error, "reason", None) or error)
    if match := _TAG.search(what):
        return f"the tag !!{match[1]} is not allowed; write a plain value"
    if "tab character" in what or "'\\t'" in what:
        return "a tab in the indentation; use spaces"
    return what
