"""What the report says of runs that an import left out or doubts."""

from pathlib import Path
from typing import Any

from scalesweep.core.plan_format import Plan
from scalesweep.report.links import Links

MAX_REASONS = 30


def imported_section(plan: Plan, links: Links) -> dict[str, Any] | None:
    """Refusals by reason, the doubts, and the file that names all; None where there are none."""
    imported = plan.get("imported")
    if imported is None:
        return None
    refused = imported["refused"]
    return {
        "refused": [
            {
                "reason": refusal["reason"],
                "count": refusal["count"],
                "places": ", ".join(refusal["places"])
                + _more(refusal["count"] - len(refusal["places"])),
            }
            for refusal in refused[:MAX_REASONS]
        ],
        "left_out": max(len(refused) - MAX_REASONS, 0),
        "total": sum(refusal["count"] for refusal in refused),
        "doubts": imported["doubts"],
        "list": links.to(Path(imported["list"])),
    }


def _more(count: int) -> str:
    return f" and {count:,} more" if count > 0 else ""
