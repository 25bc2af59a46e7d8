"""What programs print when they fail (failure_texts.yaml).

``TEXTS``: by name the lines of a single rank, the cause that they name (None: none but that it
failed) and a part of what is told.
"""

from pathlib import Path
from typing import Any, NamedTuple

import yaml

from scalesweep.core.causes import Cause

_READ = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text())


class Failure(NamedTuple):
    """A text, its cause, and what is told of it."""

    text: str
    cause: Cause | None
    told: str


def raised(final: str, cause: Cause | None, told: str = "") -> Failure:
    """An exception with its last line, which is told."""
    return Failure(
        _READ["parts"]["START"] + final + "\n", cause, told or final.partition("\n")[0][:60]
    )


def _failure(stated: dict[str, Any]) -> Failure:
    text = stated.get("raised") or stated["text"]
    for name, part in _READ["parts"].items():
        text = text.replace(f"@{name}@", part)
    cause = None if stated["cause"] is None else Cause(stated["cause"])
    if "raised" in stated:
        return raised(text, cause, stated.get("told", ""))
    return Failure(text, cause, stated["told"])


TEXTS = {name: _failure(stated) for name, stated in _READ["texts"].items()}
BENIGN = tuple(_READ["benign"])
