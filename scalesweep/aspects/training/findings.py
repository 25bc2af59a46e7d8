"""Findings on training: time to target, final accuracy over the scale, cost of input, energy."""

import math
from collections.abc import Sequence
from dataclasses import replace

from scalesweep.analysis.metrics import NEVER, SAME_TRAINING, column, compared
from scalesweep.analysis.stats import SIGNIFICANT, Interval, without_interval
from scalesweep.aspects.training.curves import final_measure
from scalesweep.aspects.training.input_share import data_loading, input_share
from scalesweep.core.formatting import PHASES, counted, finite, listed, with_interval
from scalesweep.core.joined_experiments import parameters_at
from scalesweep.core.plan_format import parameter_of
from scalesweep.experiment.learning import learns
from scalesweep.experiment.measure import Measure
from scalesweep.experiment.results import ExperimentResults, Key, Row
from scalesweep.findings.base import (
    CONFIRMED,
    NOTE,
    OPEN,
    SILENT,
    Finding,
    Rule,
    claim_of,
    evidence_of,
    marked,
    point_key,
    why_unconfirmed,
)
from scalesweep.findings.differences import Differences
from scalesweep.tables.file_rates import DUMMY

MAX_SENTENCES = 6
_STATS = ("mean", "low", "high")


def target_time(results: ExperimentResults) -> list[Finding]:
    """The point that meets its target first, named only where its interval is clear of all others.

    Points of which a run missed the target have no mean time to it, and do not compete; neither do
    points of other targets or workloads.
    """
    measure = results.measures.get("time_to_target")
    if measure is None:
        return []
    findings = []
    for rows in _alike(results, [row for row in results.rows("accuracy") if row.get("repeats")]):
        whole = [
            row
            for row in rows
            if row.get("reached") == row["repeats"] and not results.unfinished(row)
        ]
        missed = [row for row in rows if finite(row.get("reached")) and row not in whole]
        if whole:
            findings.append(_fastest(results, measure, whole, missed))
    return _first(findings)


def _alike(
    results: ExperimentResults, rows: Sequence[Row], same_work: bool = False
) -> list[list[Row]]:
    """Rows of one source that compute the same with the same target (and do as much work)."""
    names = [
        name
        for name in results.axes
        if name.startswith("target_") or parameter_of(results.entry, name).get("workload")
    ]
    groups: dict[Key, list[Row]] = {}
    for row in rows:
        if learns(results, row):
            work = results.work(row) if same_work else None
            groups.setdefault((*results.key(row, names), row["source"], work), []).append(row)
    return list(groups.values())


def _fastest(
    results: ExperimentResults, measure: Measure, rows: Sequence[Row], missed: Sequence[Row]
) -> Finding:
    """The sentence on which point meets the target first; open where the data do not tell it from
    others.

    ``rows``: points of which every run met it; ``missed``: points of which some did not.
    """
    best, others, p = _lowest(results, measure, rows)
    value = _value(measure, best)
    where = results.describe(best)
    left = (
        f"; some runs missed it at {listed([results.describe(row) for row in missed], 3)}"
        if missed
        else ""
    )
    evidence = evidence_of(results, "accuracy", best, _columns(measure))
    if not others:
        text = f"the target is met in every run only at {where}, after {value}{left}."
        text = text if missed else f"the target is met at {where} after {value}."
        single = rows[0]["repeats"] == 1
        text = f"{text.removesuffix('.')}, in a single run." if single else text
        level = OPEN if single else CONFIRMED
        return Finding(results.name, "target", level, marked(best["source"], text), evidence)
    evidence["runner_up"] = evidence_of(results, "accuracy", others[0], _columns(measure))
    claims = (claim_of(p, "target", *point_key(results, best)),)
    if p <= SIGNIFICANT:
        text = (
            f"fastest to the target: {where} with {value}, clear of "
            f"{counted(len(others), 'other')} that met it in every run; next is "
            f"{results.describe(others[0])} with {_value(measure, others[0])}{left}."
        )
        unless = marked(best["source"], f"lowest measured time to target: {value} at {where}{left}")
        text = marked(best["source"], text)
        return Finding(
            results.name, "target", CONFIRMED, text, evidence, claims=claims, unless=unless
        )
    text = (
        f"lowest measured time to target: {value} at {where}; these repeats do not identify the "
        f"fastest point{left}."
    )
    text = marked(best["source"], text)
    return Finding(results.name, "target", OPEN, text, evidence, claims=claims)


def _lowest(
    results: ExperimentResults, measure: Measure, rows: Sequence[Row]
) -> tuple[Row, list[Row], float]:
    """The row with the lowest mean, the others by their means, and the p value of its being lower
    than each of them; 1 where one is not known."""
    known = [row for row in rows if measure.value(row, "mean", "run") is not None]
    first, *others = sorted(known, key=lambda row: float(measure.value(row, "mean", "run") or 0))
    differences = Differences(results, measure.metric, "run")
    chances = [differences.p(first, row) for row in others]
    unknown = not chances or any(math.isnan(p) for p in chances)
    return first, others, 1.0 if unknown else max(chances)


def _value(measure: Measure, row: Row) -> str:
    mean, low, high = (measure.value(row, stat, "run") for stat in _STATS)
    return with_interval(mean, low, high, measure.unit)


def _columns(measure: Measure) -> list[str]:
    return [column(measure.metric, stat, "run") for stat in _STATS]


def accuracy_over_scale(results: ExperimentResults) -> list[Finding]:
    """Whether final accuracy (or error) changes from a series' smallest scale to its largest.

    Only where the benchmark has it compared: between runs that train to a target, or as much.
    """
    measure = final_measure(results)
    declared = results.entry.get("compare", {})
    main = results.entry["main_metric"]
    how = NEVER if measure is None else compared(measure.metric, declared, main)
    if measure is None or how == NEVER:
        return []
    differences = Differences(results, measure.metric, "run")
    findings: list[Finding] = []
    for series in results.series:
        rows = [
            row for row in series.rows if learns(results, row) and differences.repeats(row).size
        ]
        if len(rows) < 2:
            continue
        base, last = rows[0], rows[-1]
        if how == SAME_TRAINING and not _same_training(results, base, last):
            continue
        sides = (differences.repeats(last), differences.repeats(base))
        if (ratio := differences.ratio(last, base)) is None:
            continue
        value, interval = ratio
        prefix = f"{series.label}: " if series.label else ""
        where, reference = (
            results.scaled(results.scale_of(last)),
            results.scaled(results.scale_of(base)),
        )
        means = [_value(measure, row) for row in (last, base)]
        label = _lower(measure.label)
        times = with_interval(value, interval.low, interval.high)
        apart = f"{means[0]} against {means[1]}, {times} times"
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
        evidence = evidence_of(results, "points", last, _columns(measure))
        evidence["runner_up"] = evidence_of(results, "points", base, _columns(measure))
        text = marked(last["source"], prefix + text, capital=not prefix)
        unless = f"{prefix}{label} is {means[0]} at {where} and {means[1]} at {reference}"
        unless = marked(last["source"], unless, capital=not prefix)
        p = differences.p(last, base)
        claims = (claim_of(p, "final accuracy", *point_key(results, last)),)
        findings.append(
            Finding(
                results.name, "final accuracy", level, text, evidence, claims=claims, unless=unless
            )
        )
    return _first(findings)


def _first(findings: Sequence[Finding]) -> list[Finding]:
    """As many as there is room for; the others are silent."""
    rest = [replace(finding, level=SILENT) for finding in findings[MAX_SENTENCES:]]
    return [*findings[:MAX_SENTENCES], *rest]


def _same_training(results: ExperimentResults, row: Row, other: Row) -> bool:
    """Whether both points train to a target, or on as many samples."""
    if all(_has_target(results, point) for point in (row, other)):
        return True
    return bool(results.work(row) == results.work(other))


def _has_target(results: ExperimentResults, row: Row) -> bool:
    point = parameters_at(results.entry, row)
    return any(name.startswith("target_") and finite(value) for name, value in point.items())


def _lower(label: str) -> str:
    return label[:1].lower() + label[1:]


def input_cost(results: ExperimentResults) -> list[Finding]:
    """What reading costs: epochs with real input over those with dummy input, else equal."""
    if "input" not in results.axes:
        return []
    findings: list[Finding] = []
    rest = [name for name in results.axes if name != "input"]
    for phase in ("init", "later"):
        differences = Differences(results, "total_time", phase)
        for row in results.points:
            if row.get("input") in DUMMY or not differences.repeats(row).size:
                continue
            twin = next(
                (
                    other
                    for other in results.points
                    if other.get("input") in DUMMY
                    and other["source"] == row["source"]
                    and results.key(other, rest) == results.key(row, rest)
                ),
                None,
            )
            if twin is None:
                continue
            if ratio := differences.ratio(row, twin):
                why = without_interval(differences.repeats(row), differences.repeats(twin))
                cost = _cost(results, phase, row, twin, *ratio, why)
                p = differences.p(row, twin)
                claims = (claim_of(p, "input cost", phase, *point_key(results, row)),)
                findings.append(replace(cost, claims=claims))
    findings.sort(key=lambda finding: finding.level != CONFIRMED)
    more = len(findings) - MAX_SENTENCES
    if more > 0:
        text = f"the tables allow {counted(more, 'more comparison')} with dummy input."
        note = Finding(results.name, "input cost", NOTE, text, {"experiment": results.name})
        return [*findings[:MAX_SENTENCES], note, *_first(findings)[MAX_SENTENCES:]]
    return findings


def _cost(
    results: ExperimentResults,
    phase: str,
    row: Row,
    twin: Row,
    value: float,
    interval: Interval,
    why: str,
) -> Finding:
    """What reading costs, of which ``interval`` is missing for the reason ``why``."""
    name = column("total_time", "mean", phase)
    rest = [leader for leader in results.leaders if leader != "input"]
    where = f" at {results.describe(row, rest)}" if rest else ""
    times = with_interval(value, interval.low, interval.high)
    epochs = (
        f"{_epoch(row, phase)} an epoch with {row['input']}, "
        f"{_epoch(twin, phase)} with {twin['input']} input"
    )
    evidence = evidence_of(results, "points", row, [name]) | {"parameter": "input"}
    evidence["runner_up"] = evidence_of(results, "points", twin, [name])
    if why:
        level = OPEN
        text = f"{epochs}{where} ({PHASES[phase]}); not confirmed, {why_unconfirmed(why)}."
    elif interval.low > 1:
        level = CONFIRMED
        text = (
            f"input costs {with_interval(row[name] - twin[name], None, None, 's')} of an epoch"
            f"{where} ({PHASES[phase]}): {epochs}, {times} times."
        )
    elif interval.high < 1:
        level = CONFIRMED
        text = f"input does not cost time{where} ({PHASES[phase]}): {epochs}."
    else:
        level = OPEN
        text = f"these repeats show no cost of input{where} ({PHASES[phase]}): "
        text += f"{epochs}, {times} times."
    return Finding(results.name, "input cost", level, marked(row["source"], text), evidence)


def _epoch(row: Row, phase: str) -> str:
    mean, low, high = (row.get(column("total_time", stat, phase)) for stat in _STATS)
    return with_interval(mean, low, high, "s")


def energy_against_time(results: ExperimentResults) -> list[Finding]:
    """Whether the fastest point is also the one that needs least energy, where both are clear.

    Points compare that were to do the same work, and of which energy is known in every run.
    """
    energy, time = results.measures.get("energy"), results.measures.get("training_time")
    if energy is None or time is None:
        return []
    findings = []
    finished = [row for row in results.rows("accuracy") if row.get("repeats")]
    for rows in _alike(results, finished, same_work=True):
        if len(rows) < 2 or any(row.get("energy_runs") != row["repeats"] for row in rows):
            continue
        fastest, _, quick = _lowest(results, time, rows)
        least, _, frugal = _lowest(results, energy, rows)
        claim = claim_of(max(quick, frugal), "energy", *point_key(results, rows[0]))
        if claim.p > SIGNIFICANT:
            findings.append(Finding(results.name, "energy", SILENT, "", claims=(claim,)))
            continue
        fast = f"{_value(time, fastest)} of training, {_value(energy, fastest)}"
        if fastest is least:
            text = f"{results.describe(fastest)} is fastest and needs the least energy: {fast}."
        else:
            text = (
                f"fastest is {results.describe(fastest)} ({fast}); {results.describe(least)} "
                f"needs the least energy ({_value(time, least)}, {_value(energy, least)})."
            )
        evidence = evidence_of(results, "accuracy", fastest, [*_columns(time), *_columns(energy)])
        evidence["runner_up"] = evidence_of(
            results, "accuracy", least, [*_columns(time), *_columns(energy)]
        )
        text = marked(fastest["source"], text, capital=True)
        findings.append(Finding(results.name, "energy", CONFIRMED, text, evidence, claims=(claim,)))
    return _first(findings)


RULES = (
    Rule(target_time, figures={"target": ("accuracy-",)}),
    Rule(accuracy_over_scale, figures={"final accuracy": ("accuracy-",)}),
    Rule(energy_against_time, figures={"energy": ("energy-phases", "accuracy-energy", "power-")}),
    Rule(input_share, figures={"input share": ("ranks-input", "ranks-step-input", "phases-")}),
    Rule(input_cost, figures={"input cost": ("compare-input", "ratio-input")}),
    Rule(data_loading, figures={"data loading": ("phases-",)}),
)
