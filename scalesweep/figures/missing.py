"""Figures that could not be drawn, and what is said in their place."""

import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from scalesweep.core.errors import UserError
from scalesweep.core.formatting import counted, listed


@dataclass(frozen=True)
class Failed:
    """Takes the place of a figure; ``reason`` completes a sentence on it, without a stop."""

    reason: str


def tried(draw: Callable[[Any, Any], Any], work: Any, item: Any) -> Any:
    """``draw(work, item)``, or ``Failed`` if it raises anything but UserError or OSError."""
    try:
        return draw(work, item)
    except (UserError, OSError):
        raise
    except Exception as error:
        traceback.print_exc(file=sys.stderr)
        lines = str(error).splitlines() or [""]
        return Failed(f"{type(error).__name__}: {lines[0]}".removesuffix(": "))


def missing_entry(experiment: str, name: str, reason: str) -> dict[str, Any]:
    """The entry of the index in place of a figure that could not be drawn."""
    words = f"Not drawn: {reason}. The tables have its numbers."
    return {
        "experiment": experiment,
        "name": name,
        "title": f"{experiment}: {name.replace('_', ' ')}",
        "caption": words,
        "alt": words,
        "shows": {},
        "files": {},
        "missing": reason,
    }


def missing_words(entries: Sequence[Mapping[str, Any]]) -> str:
    """Which figures could not be drawn, and why, in one line; empty where all were."""
    missing = [entry for entry in entries if "missing" in entry]
    named = [f"{entry['experiment']}/{entry['name']} ({entry['missing']})" for entry in missing]
    return f"{counted(len(missing), 'figure')} not drawn: {listed(named, 3)}" if missing else ""
