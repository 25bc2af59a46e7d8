"""What a benchmark program of our own leaves, read and checked.

Standard library only, for the launcher.
"""

import json
from pathlib import Path
from typing import Any

from scalesweep.core.host import host_facts
from scalesweep.core.record import EPOCH_TIMES, NOT_ARRAYS, SAMPLES

_NATIVE = "native.json"
_KEYS = ("phases", "metrics", "work", "resources", "environment", "notes")


class BadResultError(Exception):
    """The program ended well, but its result cannot be used."""


def read_native(work: Path) -> dict[str, Any]:
    """The parts of the record that the program wrote, which the record's check looks at again;
    raises BadResultError."""
    try:
        native = json.loads((work / _NATIVE).read_bytes())
    except FileNotFoundError:
        raise BadResultError("the program ended well but wrote no native.json") from None
    except (OSError, ValueError, RecursionError) as error:
        raise BadResultError(f"native.json cannot be read: {error}") from None
    said = native if isinstance(native, dict) else {}
    if missing := [key for key in _KEYS if not isinstance(said.get(key), dict)]:
        raise BadResultError(f"native.json lacks {', '.join(missing)}")
    if (work / SAMPLES).exists():
        import numpy as np  # the program has ended

        try:
            with np.load(work / SAMPLES) as arrays:
                for name, values in arrays.items():
                    if values.dtype == np.float64 and not np.isfinite(values).all():
                        raise BadResultError(f"{SAMPLES}: {name} holds NaN or infinity")
                    if name in EPOCH_TIMES and (values <= 0).any():
                        raise BadResultError(f"{SAMPLES}: {name} holds times that are not above 0")
        except NOT_ARRAYS as error:
            raise BadResultError(f"{SAMPLES} cannot be read: {error}") from None
    native["environment"]["node"] = host_facts()
    keys = (*_KEYS, "phase_spans")  # of programs that know when their phases were
    return {key: native[key] for key in keys if key in native}


def read_spans(work: Path) -> tuple[list[tuple[str, float, float]], dict[str, Any]]:
    """Phase spans and work that a program left, whatever else is wrong with its native.json.

    Nothing where they are missing or faulty.
    """
    try:
        native = json.loads((work / _NATIVE).read_bytes())
        spans = [(str(n), float(a), float(b)) for n, a, b in native.get("phase_spans", [])]
        return spans, dict(native.get("work", {}))
    except (OSError, ValueError, TypeError, AttributeError):
        return [], {}


def unsupported(reason: str) -> dict[str, Any]:
    """The parts of a record that say only why there is no result, and never will be here."""
    return {
        **{name: {} for name in ("phases", "metrics", "work", "notes")},
        "resources": {"hosts": [], "slurm_nodes": []},
        "environment": {"ranks": [], "versions": {}, "variables": {}, "node": host_facts()},
        "unsupported": reason,
    }
