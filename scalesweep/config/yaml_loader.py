"""Reading the user's YAML: safe, strict, and with one-line errors that name file and line."""

import re
from collections.abc import Hashable
from pathlib import Path
from typing import Any, ClassVar

import yaml

from scalesweep.core.errors import UserError

_Base = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Loader(_Base):  # type: ignore[misc, valid-type]
    """YAML 1.2 scalars (``off`` is a string, ``1e-3`` a number, ``1:30`` a string; what is no
    number, such as ``.nan``, is a string too), no repeated keys."""

    yaml_implicit_resolvers: ClassVar[dict[str, list[tuple[str, re.Pattern[str]]]]] = {}

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            text = str(key.value)
            if text in seen:
                problem = f"duplicate key '{text}'"
                raise yaml.constructor.ConstructorError(None, None, problem, key.start_mark)
            seen.add(text)
        mapping: dict[Hashable, Any] = super().construct_mapping(node, deep=deep)
        return mapping


for _tag, _pattern, _first in (
    ("bool", r"^(?:true|True|TRUE|false|False|FALSE)$", "tTfF"),
    ("int", r"^(?:[-+]?(?:0|[1-9][0-9_]*)|0o[0-7]+|0x[0-9a-fA-F]+)$", "-+0123456789"),
    (
        "float",
        r"^(?:[-+]?(?:[0-9][0-9_]*(?:\.[0-9_]*)?|\.[0-9_]+)(?:[eE][-+]?[0-9]+)?)$",
        "-+0123456789.",
    ),
    ("null", r"^(?:~|null|Null|NULL|)$", ["~", "n", "N", ""]),
    ("merge", r"^(?:<<)$", "<"),
):
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(_pattern), list(_first))


def load_yaml(path: Path) -> Any:
    """Content of a YAML file as plain Python values; raises UserError if there is none."""
    try:
        text = path.read_text("utf-8-sig")
        return yaml.load(text, _Loader)
    except OSError as error:
        raise UserError(f"{path}: {str(error.strerror).lower()}") from None
    except UnicodeDecodeError:
        raise UserError(f"{path}: is not UTF-8; save the file as UTF-8") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f":{mark.line + 1}" if mark else ""
        problem = getattr(error, "problem", None) or error
        if mark and "".join(text.splitlines()[mark.line :][:1]).lstrip(" ").startswith("\t"):
            problem = "a tab; indent with spaces"
        raise UserError(f"{path}{line}: not valid YAML: {problem}") from None
