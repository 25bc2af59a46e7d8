"""What else differs between two sides: facts that the runs recorded."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from scalesweep.core.formatting import listed
from scalesweep.tables.provenance import RunFacts

NOT_RECORDED = "not recorded"
_MOST = 4  # values that are named

Facts = Mapping[str, str]


@dataclass(frozen=True)
class Difference:
    """A fact with its values on both sides; ``known``: both recorded it; ``apart``: no value is on
    both."""

    fact: str
    base: str
    new: str
    known: bool
    apart: bool

    def __str__(self) -> str:
        """``horovod (0.28.1 → 0.28.2)``."""
        return f"{self.fact} ({self.base} → {self.new})"


def facts_of(run: RunFacts) -> dict[str, str]:
    """What a run recorded of hardware, software and variables, by name; several values of its
    hosts are separated by `` | ``."""
    several: dict[str, set[str]] = {}
    for facts, _ in run.hardware:
        for name, value in facts:
            several.setdefault(name, set()).add(value)
    known = {name: " | ".join(sorted(values)) for name, values in several.items()}
    for name, value in run.environment:
        known.setdefault(name, value)
    return known


def differences(base: Sequence[Facts], new: Sequence[Facts]) -> list[Difference]:
    """The facts of which both sides do not have the same values, those that are apart first.

    Each side: the facts of its runs or sessions; one that lacks a fact has not recorded it.
    """
    names = dict.fromkeys(name for side in (base, new) for facts in side for name in facts)
    made = []
    for name in names:
        old, now = ({facts.get(name, NOT_RECORDED) for facts in side} for side in (base, new))
        if old != now:
            known = {NOT_RECORDED} not in (old, now)
            apart = known and not old & now - {NOT_RECORDED}
            made.append(Difference(name, _text(old), _text(now), known, apart))
    return sorted(made, key=lambda difference: (not difference.known, not difference.apart))


def _text(values: set[str]) -> str:
    return listed(sorted(values), _MOST)


def other_hosts(base: Sequence[set[str]], new: Sequence[set[str]]) -> Difference | None:
    """That no host is on both sides; None if one is, or nothing is known."""
    old, now = set().union(*base), set().union(*new)
    if not old or not now or old & now:
        return None
    return Difference("hosts", _text(old), _text(now), known=True, apart=True)
