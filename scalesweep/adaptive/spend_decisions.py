"""What the rounds of a budget have decided, kept next to the runs of a site."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from scalesweep.config.campaign import Campaign
from scalesweep.state.sealed_json import read_sealed, write_sealed

DECISIONS = ".spend.json"  # in the folder of a site's runs
_FORMAT = 1


class Decision(NamedTuple):
    """Runs of one point that a round decided on.

    ``repeats``: their numbers; ``question``: what they narrow most, from a ``now`` to an expected
    ``after`` (natural logarithms of the upper over the lower bound); ``limit_s``: of each run;
    ``node_hours``: of all, at most.
    """

    round: int
    experiment: str
    point: Mapping[str, Any]
    repeats: Sequence[int]
    question: str
    now: float
    after: float
    limit_s: float
    node_hours: float


@dataclass(frozen=True)
class Kept:
    """What is kept next to the runs: decisions, and why no more are made.

    ``seen``: digest of the runs at which the end was found; another one makes a new decision due.
    ``billed``: by run the node-hours of all of its jobs by Slurm's accounting, with the state that
    it was in then (``bill_key``); ``other``: those of jobs that are of no run, which stage data.
    """

    decisions: tuple[Decision, ...] = ()
    ended: str = ""
    seen: str = ""
    billed: Mapping[str, tuple[str, float]] = field(default_factory=dict)
    other: float = 0.0


def keep_decisions(campaign: Campaign, kept: Kept) -> None:
    """Keep what was decided next to the runs. Raises OSError."""
    path = campaign.runs_folder / DECISIONS
    path.parent.mkdir(parents=True, exist_ok=True)
    content = {
        "decisions": [one._asdict() for one in kept.decisions],
        "ended": kept.ended,
        "seen": kept.seen,
        "billed": kept.billed,
        "other": kept.other,
    }
    write_sealed(path, _FORMAT, content)


def read_decisions(campaign: Campaign) -> Kept:
    """What was decided so far; nothing where it was not kept, or not whole.

    What those runs cost is counted all the same, as far as the campaign names them.
    """
    try:
        kept = read_sealed(campaign.runs_folder / DECISIONS, _FORMAT)
        if not kept:
            return Kept()
        decisions = tuple(Decision(**one) for one in kept["decisions"])
        bills = kept.get("billed", {}).items()
        billed = {run_id: (str(key), float(hours)) for run_id, (key, hours) in bills}
        other = float(kept.get("other", 0.0))
        return Kept(decisions, str(kept["ended"]), str(kept["seen"]), billed, other)
    except (OSError, ValueError, AttributeError, TypeError, KeyError):
        return Kept()
