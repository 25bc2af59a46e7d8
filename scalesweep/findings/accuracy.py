"""Findings on training: time to target, final accuracy over the scale, cost of input, energy."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from scalesweep.analysis.blocks import interval_of
from scalesweep.analysis.metrics import NEVER, SAME_TRAINING, column, compared
from scalesweep.analysis.stats import (
    SIGNIFICANT,
    Interval,
    LogError,
    ratio_interval,
    without_interval,
)
from scalesweep.core.formatting import PHASES, counted, finite, listed, with_interval
from scalesweep.core.plan_format import parameter_of
from scalesweep.experiment.measure import Measure
from scalesweep.experiment.results import ExperimentResults, Key, Row
from scalesweep.experiment.training_curves import DUMMY, final_measure, learns
from scalesweep.findings.base import (
    CONFIRMED,
    NOTE,
    OPEN,
    SILENT,
    Finding,
    block_errors,
    claim_of,
    evidence_of,
    marked,
    point_key,
    repeats_of,
    why_unconfirmed,
)
from scalesweep.findings.differences import Differences

MAX_SENTENCES = 6
_STATS = ("mean", "low", "high")


def target_time(study: ExperimentResults) -> list[Finding]:
    """The point that meets its target first, named only where its interval is clear of all others.

    Points of which a run missed the target have no mean time to it, and do not compete; neither do
    points of other targets or workloads.
    """
    measure = study.measures.get("time_to_target")
    if measure is None:
        return []
    found = []
    for rows in _alike(study, [row for row in study.rows("accuracy") if row.get("repeats")]):
        whole = [
            row
            for row in rows
            if row.get("reached") == row["repeats"] and not study.unfinished(row)
        ]
        missed = [row for row in rows if finite(row.get("reached")) and row not in whole]
        if whole:
            found.append(_fastest(study, measure, whole, missed))
    return _first(found)


def _alike(
    study: ExperimentResults, rows: Sequence[Row], same_work: bool = False
) -> list[list[Row]]:
    """Rows of one source that compute the same with the same target (and do as much work)."""
    names = [
        name
        for name in study.axes
        if name.startswith("target_") or parameter_of(study.entry, name).get("workload")
    ]
    groups: dict[Key, list[Row]] = {}
    for row in rows:
        if learns(study, row):
            work = study.work(row) if same_work else None
            groups.setdefault((*study.key(row, names), row["source"], work), []).append(row)
    return list(groups.values())


def _fastest(
    study: ExperimentResults, measure: Measure, rows: Sequence[Row], missed: Sequence[Row]
) -> Finding:
    best, others, p = _lowest(study, measure, rows)
    value = _value(measure, best)
    where = study.describe(best)
    left = (
        f"; some runs missed it at {listed([study.describe(row) for row in missed], 3)}"
        if missed
        else ""
    )
    evidence = evidence_of(study, "accuracy", best, _columns(measure))
    if not others:
        text = f"the target is met in every run only at {where}, after {value}{left}."
        text = text if missed else f"the target is met at {where} after {value}."
        single = rows[0]["repeats"] == 1
        text = f"{text.removesuffix('.')}, in a single run." if single else text
        level = OPEN if single else CONFIRMED
        return Finding(study.name, "target", level, marked(best["source"], text), evidence)
    evidence["runner_up"] = evidence_of(study, "accuracy", others[0], _columns(measure))
    claims = (claim_of(p, "target", *point_key(study, best)),)
    if p <= SIGNIFICANT:
        text = (
            f"fastest to the target: {where} with {value}, clear of "
            f"{counted(len(others), 'other')} that met it in every run; next is "
            f"{study.describe(others[0])} with {_value(measure, others[0])}{left}."
        )
        unless = marked(best["source"], f"lowest measured time to target: {value} at {where}{left}")
        text = marked(best["source"], text)
        return Finding(
            study.name, "target", CONFIRMED, text, evidence, claims=claims, unless=unless
        )
    text = (
        f"lowest measured time to target: {value} at {where}; these repeats do not identify the "
        f"fastest point{left}."
    )
    text = marked(best["source"], text)
    return Finding(study.name, "target", OPEN, text, evidence, claims=claims)


def _lowest(
    study: ExperimentResults, measure: Measure, rows: Sequence[Row]
) -> tuple[Row, list[Row], float]:
    """The row with the lowest mean, the others by their means, and the p value of its being lower
    than each of them; 1 where one is not known."""
    known = [row for row in rows if measure.value(row, "mean", "run") is not None]
    first, *others = sorted(known, key=lambda row: float(measure.value(row, "mean", "run") or 0))
    differences = Differences(study, measure.metric, "run")
    chances = [differences.p(first, row) for row in others]
    unknown = not chances or any(math.isnan(p) for p in chances)
    return first, others, 1.0 if unknown else max(chances)


def _value(measure: Measure, row: Row) -> str:
    mean, low, high = (measure.value(row, stat, "run") for stat in _STATS)
    return with_interval(mean, low, high, measure.unit)


def _columns(measure: Measure) -> list[str]:
    return [column(measure.metric, stat, "run") for stat in _STATS]


def accuracy_over_scale(study: ExperimentResults) -> list[Finding]:
    """Whether final accuracy (or error) changes from a series' smallest scale to its largest.

    Only where the benchmark has it compared: between runs that train to a target, or as much.
    """
    measure = final_measure(study)
    declared = study.entry.get("compare", {})
    main = study.entry["main_metric"]
    how = NEVER if measure is None else compared(measure.metric, declared, main)
    if measure is None or how == NEVER:
        return []
    repeats = repeats_of(study, measure.metric, "run")
    errors = block_errors(study, measure.metric, "run")
    differences = Differences(study, measure.metric, "run")
    found: list[Finding] = []
    for series in study.series:
        rows = [row for row in series.rows if learns(study, row) and _of(study, repeats, row)]
        if len(rows) < 2:
            continue
        base, last = rows[0], rows[-1]
        if how == SAME_TRAINING and not _same_training(study, base, last):
            continue
        sides = (_of(study, repeats, last), _of(study, repeats, base))
        ratio = _ratio(*sides, errors(point_key(study, last), point_key(study, base)), study.level)
        if ratio is None:
            continue
        value, interval = ratio
        prefix = f"{series.label}: " if series.label else ""
        where, reference = study.scaled(study.scale_of(last)), study.scaled(study.scale_of(base))
        means = [_value(measure, row) for row in (last, base)]
        label = _lower(measure.label)
        told = with_interval(value, interval.low, interval.high)
        apart = f"{means[0]} against {means[1]}, {told} times"
        if not finite(interval.low):
            level = OPEN
            text = (
                f"{label} is {means[0]} at {where} and {means[1]} at {reference}; not confirmed, "
                f"{why_unconfirmed(without_interval(*sides))}."
            )
        elif interval.low <= 1 <= interval.high:
            level = OPEN
            text = (
                f"these repeats show no difference in {label} between {where} and "
                f"{reference}: {apart}."
            )
        else:
            level = CONFIRMED
            side = "higher" if value > 1 else "lower"
            worse = "better" if (value > 1) == measure.higher else "worse"
            text = f"{label} at {where} is {side} ({worse}) than at {reference}: {apart}."
        evidence = evidence_of(study, "points", last, _columns(measure))
        evidence["runner_up"] = evidence_of(study, "points", base, _columns(measure))
        text = marked(last["source"], prefix + text, capital=not prefix)
        unless = f"{prefix}{label} is {means[0]} at {where} and {means[1]} at {reference}"
        unless = marked(last["source"], unless, capital=not prefix)
        p = differences.p(last, base)
        claims = (claim_of(p, "final accuracy", *point_key(study, last)),)
        found.append(
            Finding(
                study.name, "final accuracy", level, text, evidence, claims=claims, unless=unless
            )
        )
    return _first(found)


def _first(found: Sequence[Finding]) -> list[Finding]:
    """As many as there is room for; the others are silent."""
    rest = [replace(one, level=SILENT) for one in found[MAX_SENTENCES:]]
    return [*found[:MAX_SENTENCES], *rest]


def _same_training(study: ExperimentResults, row: Row, other: Row) -> bool:
    """Whether both points train to a target, or on as many samples."""
    if all(_has_target(study, one) for one in (row, other)):
        return True
    return bool(study.work(row) == study.work(other))


def _has_target(study: ExperimentResults, row: Row) -> bool:
    point = {**study.entry["fixed"], **row}
    return any(name.startswith("target_") and finite(value) for name, value in point.items())


def _lower(label: str) -> str:
    return label[:1].lower() + label[1:]


def _of(study: ExperimentResults, repeats: Mapping[Key, list[float]], row: Row) -> list[float]:
    return repeats.get(point_key(study, row), [])


def _ratio(
    top: Sequence[float], base: Sequence[float], error: LogError | None, level: float
) -> tuple[float, Interval] | None:
    """Ratio of the means with its interval; None where a side is missing or not positive.

    ``error`` is that of its logarithm within blocks.
    """
    if not top or not base or min(*top, *base) <= 0:
        return None
    value = (sum(top) / len(top)) / (sum(base) / len(base))
    return value, interval_of(value, error) if error else ratio_interval(top, base, level=level)


def input_cost(study: ExperimentResults) -> list[Finding]:
    """What reading costs: epochs with real input over those with dummy input, else equal."""
    if "input" not in study.axes:
        return []
    found: list[Finding] = []
    rest = [name for name in study.axes if name != "input"]
    for phase in ("init", "later"):
        repeats = repeats_of(study, "total_time", phase)
        errors = block_errors(study, "total_time", phase)
        differences = Differences(study, "total_time", phase)
        for row in study.points:
            if row.get("input") in DUMMY or not _of(study, repeats, row):
                continue
            twin = next(
                (
                    other
                    for other in study.points
                    if other.get("input") in DUMMY
                    and other["source"] == row["source"]
                    and study.key(other, rest) == study.key(row, rest)
                ),
                None,
            )
            if twin is None:
                continue
            sides = (_of(study, repeats, row), _of(study, repeats, twin))
            error = errors(point_key(study, row), point_key(study, twin))
            if ratio := _ratio(*sides, error, study.level):
                why = without_interval(*sides)
                cost = _cost(study, phase, row, twin, *ratio, why)
                p = differences.p(row, twin)
                claims = (claim_of(p, "input cost", phase, *point_key(study, row)),)
                found.append(replace(cost, claims=claims))
    found.sort(key=lambda finding: finding.level != CONFIRMED)
    more = len(found) - MAX_SENTENCES
    if more > 0:
        text = f"the tables allow {counted(more, 'more comparison')} with dummy input."
        note = Finding(study.name, "input cost", NOTE, text, {"experiment": study.name})
        return [*found[:MAX_SENTENCES], note, *_first(found)[MAX_SENTENCES:]]
    return found


def _cost(
    study: ExperimentResults,
    phase: str,
    row: Row,
    twin: Row,
    value: float,
    interval: Interval,
    why: str,
) -> Finding:
    """What reading costs, of which ``interval`` is missing for the reason ``why``."""
    name = column("total_time", "mean", phase)
    rest = [leader for leader in study.leaders if leader != "input"]
    where = f" at {study.describe(row, rest)}" if rest else ""
    told = with_interval(value, interval.low, interval.high)
    epochs = (
        f"{_epoch(row, phase)} an epoch with {row['input']}, "
        f"{_epoch(twin, phase)} with {twin['input']} input"
    )
    evidence = evidence_of(study, "points", row, [name]) | {"parameter": "input"}
    evidence["runner_up"] = evidence_of(study, "points", twin, [name])
    if why:
        level = OPEN
        text = f"{epochs}{where} ({PHASES[phase]}); not confirmed, {why_unconfirmed(why)}."
    elif interval.low > 1:
        level = CONFIRMED
        text = (
            f"input costs {with_interval(row[name] - twin[name], None, None, 's')} of an epoch"
            f"{where} ({PHASES[phase]}): {epochs}, {told} times."
        )
    elif interval.high < 1:
        level = CONFIRMED
        text = f"input does not cost time{where} ({PHASES[phase]}): {epochs}."
    else:
        level = OPEN
        text = (
            f"these repeats show no cost of input{where} ({PHASES[phase]}): {epochs}, {told} times."
        )
    return Finding(study.name, "input cost", level, marked(row["source"], text), evidence)


def _epoch(row: Row, phase: str) -> str:
    mean, low, high = (row.get(column("total_time", stat, phase)) for stat in _STATS)
    return with_interval(mean, low, high, "s")


def energy_against_time(study: ExperimentResults) -> list[Finding]:
    """Whether the fastest point is also the one that needs least energy, where both are clear.

    Points compare that were to do the same work, and of which energy is known in every run.
    """
    energy, time = study.measures.get("energy"), study.measures.get("training_time")
    if energy is None or time is None:
        return []
    found = []
    finished = [row for row in study.rows("accuracy") if row.get("repeats")]
    for rows in _alike(study, finished, same_work=True):
        if len(rows) < 2 or any(row.get("energy_runs") != row["repeats"] for row in rows):
            continue
        fastest, _, quick = _lowest(study, time, rows)
        least, _, frugal = _lowest(study, energy, rows)
        claim = claim_of(max(quick, frugal), "energy", *point_key(study, rows[0]))
        if claim.p > SIGNIFICANT:
            found.append(Finding(study.name, "energy", SILENT, "", claims=(claim,)))
            continue
        fast = f"{_value(time, fastest)} of training, {_value(energy, fastest)}"
        if fastest is least:
            text = f"{study.describe(fastest)} is fastest and needs the least energy: {fast}."
        else:
            text = (
                f"fastest is {study.describe(fastest)} ({fast}); {study.describe(least)} "
                f"needs the least energy ({_value(time, least)}, {_value(energy, least)})."
            )
        evidence = evidence_of(study, "accuracy", fastest, [*_columns(time), *_columns(energy)])
        evidence["runner_up"] = evidence_of(
            study, "accuracy", least, [*_columns(time), *_columns(energy)]
        )
        text = marked(fastest["source"], text, capital=True)
        found.append(Finding(study.name, "energy", CONFIRMED, text, evidence, claims=(claim,)))
    return _first(found)
