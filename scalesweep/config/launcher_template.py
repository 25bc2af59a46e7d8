"""The words in front of a benchmark's command, of a site or of the benchmark itself."""

from collections.abc import Mapping
from typing import Any

from scalesweep.core.errors import UserError

# What is filled in.
LAUNCHER_PLACES = (
    *("ranks", "nodes", "ranks_per_node", "cpus_per_rank"),
    *("python", "bin", "launchers"),
)


def fill_launcher(words: tuple[str, ...], values: Mapping[str, Any], where: str) -> list[str]:
    """The words with ``values`` of ``LAUNCHER_PLACES``; raises UserError that begins with
    ``where``."""
    return [_fill(word, values, where) for word in words]


def _fill(word: str, values: Mapping[str, Any], where: str) -> str:
    try:
        return word.format_map(values)
    except (KeyError, ValueError, IndexError, AttributeError, MemoryError) as error:
        raise UserError(
            f"{where}: cannot fill {word!r} ({error}); allowed: "
            + ", ".join(f"{{{name}}}" for name in values)
        ) from None
