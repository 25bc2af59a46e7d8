"""What changed at a step: the commit, and everything else that the records say."""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

import numpy as np

from scalesweep.analysis.stats import t_quantile
from scalesweep.analysis.verdicts import Verdict
from scalesweep.core.formatting import listed, number

_MOST = 4  # values that are named
SHARE = 0.5  # of the step that a canary has to explain: less leaves the rest to the program
_PREFIXES = {"compute": (1e9, "GFLOP/s"), "memory": (1e9, "GB/s")}

# Kind of canary -> session -> rate.
Rates = Mapping[str, Mapping[str, float]]


class Known(Protocol):
    """What is known of a session."""

    @property
    def commit(self) -> str: ...  # noqa: D102
    @property
    def dirty(self) -> bool: ...  # noqa: D102
    @property
    def program(self) -> str: ...  # noqa: D102
    @property
    def hosts(self) -> str: ...  # noqa: D102
    @property
    def launcher(self) -> str: ...  # noqa: D102
    @property
    def facts(self) -> str: ...  # noqa: D102
    @property
    def name(self) -> str: ...  # noqa: D102


@dataclass(frozen=True)
class Along:
    """What differs between the sessions of both sides.

    ``first``, ``last``: the newest session of the base and the oldest of the new level, by commit;
    ``code``: whether the program differs, None where that is not known; ``others``: facts that do,
    with the values of base and new.
    """

    first: str = ""
    last: str = ""
    code: bool | None = None
    others: Mapping[str, tuple[str, str]] | None = None

    @property
    def confounds(self) -> bool:
        """Whether the commit alone cannot be held to have made a difference."""
        return bool(self.others) or self.code is False

    @property
    def reason(self) -> str:
        """What else changed, in words."""
        named = [f"{fact} ({old} → {new})" for fact, (old, new) in (self.others or {}).items()]
        if not named:
            return f"the program is the same on both sides ({self.last})" if self.confounds else ""
        if self.code is False:
            return f"the program is the same, but {listed(named, _MOST)} changed"
        return f"{listed(named, _MOST)} changed at the same time"


def along(sessions: Sequence[Known], verdict: Verdict) -> Along:
    """What changed from the base of a verdict to its new sessions.

    A fact has changed if none of its values is on both sides. Of hosts that counts only where all
    of the base ran on the same ones: on a cluster jobs go wherever there is room.
    """
    base, new = ([sessions[place] for place in side] for side in (verdict.base, verdict.new))
    if not base or not new:
        return Along()
    others = changed_facts(base, new)
    hosts = {session.hosts for session in base}
    if len(hosts) == 1 and "" not in hosts and not any(set(session.hosts.split()) & _words(hosts)
                                                       for session in new):  # fmt: skip
        others["hosts"] = (_named(hosts), _named({session.hosts for session in new}))
    code: bool | None = None
    for of in (_commit, _program):
        mine, theirs = ({of(session) for session in side} for side in (base, new))
        if "" not in mine | theirs:
            code = not mine & theirs
            break
    return Along(base[-1].name, new[0].name, code, others)


def _commit(session: Known) -> str:
    """The commit, which says nothing of a program with local changes."""
    return "" if session.dirty else session.commit


def _program(session: Known) -> str:
    return session.program


def _words(texts: Iterable[str]) -> set[str]:
    return {word for text in texts for word in text.split()}


def changed_facts(base: Sequence[Known], new: Sequence[Known]) -> dict[str, tuple[str, str]]:
    """Facts that both sides have recorded and that have no value in common: old and new values."""
    sides = [[_facts_of(session) for session in side] for side in (base, new)]
    changed = {}
    for name in dict.fromkeys(name for side in sides for facts in side for name in facts):
        old, now = ({facts[name] for facts in side if name in facts} for side in sides)
        if old and now and not old & now:
            changed[name] = (_named(old), _named(now))
    return changed


def _facts_of(session: Known) -> dict[str, str]:
    facts = _parsed(session.facts)
    return facts | ({"launcher": session.launcher} if session.launcher else {})


@lru_cache(maxsize=1024)  # most sessions say the same
def _parsed(text: str) -> dict[str, str]:
    try:
        facts = json.loads(text) if text else {}
    except (ValueError, RecursionError):
        facts = {}
    return {name: str(fact) for name, fact in facts.items()} if isinstance(facts, dict) else {}


def _named(values: Iterable[str]) -> str:
    return listed(sorted(values), 2)


def machine_moved(
    rates: Rates, base: Sequence[str], new: Sequence[str], speed: float
) -> dict[str, tuple[str, str]]:
    """Rates of the canary that changed with a point, in words: those of base and new sessions.

    ``speed``: natural logarithm of how much faster the point became, negative where it became
    slower. A canary counts if it moved in that direction by half as much or more, and by more than
    the 95 % interval that follows from its scatter among the sessions of the base (Student's t).
    """
    moved = {}
    for kind, of in rates.items():
        old, now = ([math.log(of[name]) for name in side if name in of] for side in (base, new))
        if len(old) < 2 or not now:
            continue
        change = float(np.mean(now) - np.mean(old))
        error = float(np.std(old, ddof=1)) * math.sqrt(1 / len(old) + 1 / len(now))
        if change * speed > 0 and abs(change) >= max(
            SHARE * abs(speed), t_quantile(len(old) - 1) * error
        ):
            factor, unit = _PREFIXES.get(kind, (1.0, ""))
            words = [f"{number(math.exp(np.mean(s)) / factor)} {unit}" for s in (old, now)]
            moved[f"the machine's own speed (canary, {kind})"] = (words[0], words[1])
    return moved
