"""Findings on steps against the machine: computation, exchange and input at the largest scale.

Nothing where a probe is missing, or where a term is too small a part of the step to matter.
"""

from collections.abc import Callable, Mapping
from typing import Any

from scalesweep.analysis.step_account import STEP_WORDS
from scalesweep.core.formatting import (
    counted,
    finite,
    number,
    percent,
    scaled_unit,
    size_words,
    with_interval,
)
from scalesweep.experiment.held_against import Held, Reached, held_against
from scalesweep.experiment.results import ExperimentResults
from scalesweep.findings.base import CONFIRMED, NOTE, OPEN, Finding, claim_of, marked
from scalesweep.findings.differences import share_p

COMPUTATION, EXCHANGE, READING = "against layers", "against network", "against files"
# A term below this share of the step is no reason to act.
NOTABLE = 0.02
# What reaches as much of what the machine could do is as good as all of it.
ENOUGH = 0.9
# A cause explains what is lost against the machine if it makes up this share of it.
MOST_OF_IT = 0.5
FUSION, CYCLE = "fusion buffer", "cycle time"


def against_machine(study: ExperimentResults) -> list[Finding]:
    """For each series, at its largest scale, what its step reaches of what the machine could do."""
    rules: list[Callable[[ExperimentResults, Held], list[Finding]]] = [
        _computation,
        _exchange,
        _reading,
    ]
    return [
        finding for held in held_against(study) for rule in rules for finding in rule(study, held)
    ]


def _where(study: ExperimentResults, held: Held) -> str:
    return f"at {study.describe(held.row)} " if study.axes else ""


def _matters(held: Held, ms: float) -> bool:
    return ms >= NOTABLE * held.ledger.elapsed.value


def _level(low: float | None, high: float | None) -> tuple[str, str]:
    """How firm it is that less than all is reached, and what is said where it is not."""
    if low is None or high is None:
        return OPEN, "; not confirmed: without repeats of the runs and the probe it has no interval"
    if high >= 1:
        return OPEN, "; not confirmed to be less than all of it by its interval"
    return CONFIRMED, ""


def _computation(study: ExperimentResults, held: Held) -> list[Finding]:
    one = held.terms.get("compute")
    if one is None or not _matters(held, one.own_ms):
        return []
    reached = percent(one.share, one.low, one.high)
    if one.low is not None and one.low > 1:
        text = (
            f"{_where(study, held)}computation is faster than the measured ceilings allow "
            f"({reached}): its arrays stay in caches, or the ceilings were measured too low"
        )
        return [_made(study, held, COMPUTATION, NOTE, text, one)]
    level, why = _level(one.low, one.high)
    text = (
        f"{_where(study, held)}computation reaches {reached} of what the model's layers could on "
        f"this machine: a step computes for {number(one.own_ms)} ms, where {number(one.least_ms)} "
        f"ms would do{why}"
    )
    return [_made(study, held, COMPUTATION, level, text, one)]


def _exchange(study: ExperimentResults, held: Held) -> list[Finding]:
    sent = held.exchange
    if sent is None or not _matters(held, sent["transfer_ms"]) or sent["of_network"] >= ENOUGH:
        return []
    low, high = (sent[name] if finite(sent[name]) else None for name in _SHARE)
    level, why = _level(low, high)
    one = Reached("transfer", sent["of_network"], low, high, sent["one_ms"], sent["machine_from"])
    factor, unit = scaled_unit("bytes/s", sent["rate"])
    rate = number(sent["rate"] * factor)
    cause, words, advice = _cause(sent)
    text = (
        f"{_where(study, held)}the exchange moves {rate} {unit} of bus bandwidth, "
        f"{percent(one.share, low, high)} of what this network gives to a message of "
        f"{size_words(sent['message_bytes'])}{why}{words if level == CONFIRMED else ''}"
    )
    found = _made(study, held, EXCHANGE, level, text, one)
    if level == CONFIRMED and cause:
        found.evidence.update({"cause": cause, "do": advice})
    found.evidence["table"] = "exchange"
    return [found]


_SHARE = ("of_network_low", "of_network_high")


def _cause(sent: Mapping[str, Any]) -> tuple[str, str, str]:
    """Why a step's exchange takes longer than one message would, if that is known: the cause, what
    is said of it, and what to do."""
    lost = sent["transfer_ms"] - sent["one_ms"]
    messages = int(sent["messages"])
    split = sent["fused_ms"] - sent["one_ms"]
    if messages > 1 and split >= MOST_OF_IT * lost:
        least = -(-int(sent["message_bytes"]) // (1 << 20))
        words = (
            f": the fusion buffer is too small, {counted(messages, 'message')} of at most "
            f"{size_words(sent['largest_bytes'])} take {number(split)} ms more than one"
        )
        return FUSION, words, f"set fusion_threshold_mb to at least {least}"
    cycle = sent["cycle_ms"]
    # A tensor waits for the next cycle, and its reduction is negotiated in it.
    if finite(cycle) and MOST_OF_IT * lost <= cycle <= lost / MOST_OF_IT:
        words = f": Horovod's cycle of {number(cycle)} ms is about what is lost"
        return CYCLE, words, "compare a shorter cycle_time_ms"
    return "", "", ""


def _reading(study: ExperimentResults, held: Held) -> list[Finding]:
    one = held.terms.get("input")
    if one is None or not _matters(held, one.own_ms) or one.share >= ENOUGH:
        return []
    ends = (None, None) if one.low is None or one.high is None else (1 / one.high, 1 / one.low)
    level, why = _level(one.low, one.high)
    times = with_interval(1 / one.share, ends[0], ends[1], "times")
    step = STEP_WORDS[held.ledger.form]
    text = (
        f"{_where(study, held)}input takes {times} what the file system needs: "
        f"{'an' if step == 'epoch' else 'a'} {step} waits {number(one.own_ms)} ms for its batches, "
        f"which are read in {number(one.least_ms)} ms{why}"
    )
    return [_made(study, held, READING, level, text, one)]


def _made(
    study: ExperimentResults, held: Held, rule: str, level: str, text: str, one: Reached
) -> Finding:
    evidence = {
        "experiment": study.name,
        "table": "efficiency",
        "key": {name: held.row.get(name) for name in study.axes} | {"source": held.row["source"]},
        "numbers": {"share": one.share, "low": one.low, "high": one.high, "least": one.least_ms},
        "term": one.term,
    }
    p = share_p(one.share, one.low, one.high, held.ledger.row.get("repeats"), 1.0)
    claims = (claim_of(p, rule, *study.key(held.row, study.axes), held.row["source"]),)
    text = marked(held.row["source"], f"{text}.")
    return Finding(study.name, rule, level, text, evidence, claims=claims)
