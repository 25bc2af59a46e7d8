"""The job specification: all that a job needs to run, as a file, so that it reads no campaign.

Inside a cluster job Snakemake parses the workflow again while the job's nodes wait. All it needs
there is the order of its own run, which is one small file.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from scalesweep.core.errors import UserError
from scalesweep.core.files import content_digest, write_atomic

ORDER = "order.json"


def write_order(path: Path, order: Mapping[str, Any]) -> None:
    """Leave an order for the job that will be started next."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # Not durable: there may be thousands, and the next call writes them again.
    text = json.dumps({**order, "digest": _digest(order)}, indent=1)
    write_atomic(path, text + "\n", durable=False)


def read_order(path: Path) -> dict[str, Any]:
    """Read an order; raises UserError if there is none or it is not as it was written."""
    try:
        order = json.loads(path.read_bytes())
        digest = order.pop("digest")
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise UserError(f"{path}: cannot read the job specification ({error})") from None
    if digest != _digest(order):
        raise UserError(
            f"{path}: cannot read the job specification (it was changed: its digest differs)"
        )
    return dict(order)


def _digest(order: Mapping[str, Any]) -> str:
    return content_digest(json.dumps(order).encode())


def staging_order(folder: str, files: str) -> Path:
    """Where the order to make a data set lies."""
    return Path(folder, "logs", f"staged-{files}.json")
