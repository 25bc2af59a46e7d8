"""Findings on steps against the machine: computation, exchange and input at the largest scale.

Nothing where a probe is missing, or where a term is too small a part of the step to matter.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from scalesweep.analysis.step_account import STEP_WORDS
from scalesweep.aspects.breakdown.efficiency import MACHINE
from scalesweep.aspects.breakdown.ledgers import Ledger, ledgers
from scalesweep.aspects.breakdown.table import EfficiencyRow, ExchangeRow
from scalesweep.core.formatting import (
    counted,
    finite,
    number,
    percent,
    scaled_unit,
    size_words,
    with_interval,
)
from scalesweep.experiment.results import ExperimentResults, Key, Row
from scalesweep.findings.base import CLEAR, NOTE, OPEN, Finding, claim_of, marked
from scalesweep.findings.differences import share_p


@dataclass(frozen=True)
class Reached:
    """What a term of a step reaches of what the machine could do; None where it has no interval."""

    term: str
    share: float
    low: float | None
    high: float | None
    least_ms: float
    where: str  # the probe

    @property
    def own_ms(self) -> float:
        """What the term takes."""
        return self.least_ms / self.share


@dataclass(frozen=True)
class Held:
    """A point's step against the machine; ``exchange`` holds the row of that table, if any."""

    row: Row
    ledger: Ledger
    terms: Mapping[str, Reached]
    exchange: Mapping[str, Any] | None


def held_against(results: ExperimentResults) -> list[Held]:
    """For each series, at its largest scale, what is known."""
    last: dict[Key, Ledger] = {}
    for ledger in ledgers(results):
        last[(*results.key(ledger.row, results.series_names), ledger.row["source"])] = ledger
    terms: dict[Key, dict[str, Reached]] = {}
    for row in results.of(EfficiencyRow) if last else []:
        if row.kind != MACHINE or row.machine is None:
            continue
        share, least = row.value, row.machine.value
        terms.setdefault(_key(results, row.row), {})[row.term] = Reached(
            row.term, share.value, share.low, share.high, least, str(row.machine_from)
        )
    exchanges = {_key(results, sent.row): sent.cells for sent in results.of(ExchangeRow)}
    held = []
    for ledger in last.values():
        key = _key(results, ledger.row)
        if key in terms or key in exchanges:
            held.append(Held(ledger.row, ledger, terms.get(key, {}), exchanges.get(key)))
    return held


def _key(results: ExperimentResults, row: Row) -> Key:
    return (*results.key(row, results.axes), row["source"])


COMPUTATION, EXCHANGE, READING = "against layers", "against network", "against files"
# A term below this share of the step is no reason to act.
NOTABLE = 0.02
# What reaches as much of what the machine could do is as good as all of it.
ENOUGH = 0.9
# A cause explains what is lost against the machine if it makes up this share of it.
MOST_OF_IT = 0.5
FUSION, CYCLE = "message size", "cycle time"


def against_machine(results: ExperimentResults) -> list[Finding]:
    """For each series, at its largest scale, what its step reaches of what the machine could do."""
    rules: list[Callable[[ExperimentResults, Held], list[Finding]]] = [
        _computation,
        _exchange,
        _reading,
    ]
    return [
        finding
        for held in held_against(results)
        for rule in rules
        for finding in rule(results, held)
    ]


def _where(results: ExperimentResults, held: Held) -> str:
    return f"at {results.describe(held.row)} " if results.axes else ""


def _matters(held: Held, ms: float) -> bool:
    return ms >= NOTABLE * held.ledger.elapsed.value


def _level(low: float | None, high: float | None) -> tuple[str, str]:
    """How firm it is that less than all is reached, and why it is open."""
    if low is None or high is None:
        return OPEN, "without repeats of the runs and the probe it has no interval"
    if high >= 1:
        return OPEN, "its interval includes all of it"
    return CLEAR, ""


def _computation(results: ExperimentResults, held: Held) -> list[Finding]:
    term = held.terms.get("compute")
    if term is None or not _matters(held, term.own_ms):
        return []
    reached = percent(term.share, term.low, term.high)
    if term.low is not None and term.low > 1:
        text = (
            f"{_where(results, held)}computation is faster than the measured ceilings allow "
            f"({reached}): its arrays stay in caches, or the ceilings were measured too low"
        )
        return [_ceiling_finding(results, held, COMPUTATION, NOTE, text, term)]
    level, why = _level(term.low, term.high)
    text = (
        f"{_where(results, held)}computation reaches {reached} of what the model's layers could on "
        f"this machine: a step computes for {number(term.own_ms)} ms, where "
        f"{number(term.least_ms)} ms would do"
    )
    return [_ceiling_finding(results, held, COMPUTATION, level, text, term, why)]


def _exchange(results: ExperimentResults, held: Held) -> list[Finding]:
    sent = held.exchange
    if sent is None or not _matters(held, sent["transfer_ms"]) or sent["of_network"] >= ENOUGH:
        return []
    low, high = (sent[name] if finite(sent[name]) else None for name in _SHARE)
    level, why = _level(low, high)
    reached = Reached(
        "transfer", sent["of_network"], low, high, sent["one_ms"], sent["machine_from"]
    )
    factor, unit = scaled_unit("bytes/s", sent["rate"])
    rate = number(sent["rate"] * factor)
    cause, words, advice = _cause(sent)
    text = (
        f"{_where(results, held)}the exchange moves {rate} {unit} of bus bandwidth, "
        f"{percent(reached.share, low, high)} of what this network gives to a message of "
        f"{size_words(sent['message_bytes'])}{words if level == CLEAR else ''}"
    )
    finding = _ceiling_finding(results, held, EXCHANGE, level, text, reached, why)
    if level == CLEAR and cause:
        finding.evidence.update({"cause": cause, "do": advice})
    finding.evidence["table"] = "exchange"
    return [finding]


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
            f": messages are too small, {counted(messages, 'message')} of at most "
            f"{size_words(sent['largest_bytes'])} take {number(split)} ms more than one"
        )
        return FUSION, words, f"let tensors be sent together up to {least} MiB or more"
    cycle = sent["cycle_ms"]
    # A tensor waits for the next cycle, and its reduction is negotiated in it.
    if finite(cycle) and MOST_OF_IT * lost <= cycle <= lost / MOST_OF_IT:
        words = f": tensors are collected for {number(cycle)} ms, which is about what is lost"
        return CYCLE, words, "compare a shorter cycle of the exchange"
    return "", "", ""


def _reading(results: ExperimentResults, held: Held) -> list[Finding]:
    term = held.terms.get("input")
    if term is None or not _matters(held, term.own_ms) or term.share >= ENOUGH:
        return []
    ends = (None, None) if term.low is None or term.high is None else (1 / term.high, 1 / term.low)
    level, why = _level(term.low, term.high)
    times = with_interval(1 / term.share, ends[0], ends[1], "times")
    step = STEP_WORDS[held.ledger.form]
    text = (
        f"{_where(results, held)}input takes {times} what the file system needs: "
        f"{'an' if step == 'epoch' else 'a'} {step} waits {number(term.own_ms)} ms for its "
        f"batches, which are read in {number(term.least_ms)} ms"
    )
    return [_ceiling_finding(results, held, READING, level, text, term, why)]


def _ceiling_finding(
    results: ExperimentResults,
    held: Held,
    rule: str,
    level: str,
    text: str,
    reached: Reached,
    reason: str = "",
) -> Finding:
    evidence = {
        "experiment": results.name,
        "table": "efficiency",
        "key": {name: held.row.get(name) for name in results.axes} | {"source": held.row["source"]},
        "numbers": {
            "share": reached.share,
            "low": reached.low,
            "high": reached.high,
            "least": reached.least_ms,
        },
        "term": reached.term,
    }
    p = share_p(reached.share, reached.low, reached.high, held.ledger.row.get("repeats"), 1.0)
    claims = (claim_of(p, rule, *results.key(held.row, results.axes), held.row["source"]),)
    text = marked(held.row["source"], f"{text}.")
    return Finding(results.name, rule, level, text, evidence, claims=claims, reason=reason)
