"""The page of a comparison and its tables: what changed, what else differs, and every number."""

import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from scalesweep.analysis.table_io import typed_values, write_csv, write_parquet
from scalesweep.compare.figure import draw_ratios
from scalesweep.compare.ratios import ONLY_BASE, ONLY_NEW, Ratio, by_claim, ratios
from scalesweep.compare.sides import Joined, Pair, Side, join, varying
from scalesweep.compare.surroundings import Surroundings, surroundings
from scalesweep.core.files import canonical_json, write_atomic
from scalesweep.core.formatting import (
    PHASES,
    counted,
    finite,
    listed,
    number,
    percent,
    scaled_unit,
    text_of,
    with_interval,
)
from scalesweep.experiment.cells import Text, headings, number_cell, table
from scalesweep.judge.change import IMPROVEMENT, INCONCLUSIVE, REGRESSION, overall
from scalesweep.report.html_assets import assets, render

PAGE, FOLDER = "compare.html", "compare"
SCRIPTS = ("tables.js", "compare.js")
# What one page may hold; the rest is in the CSV files.
MAX_ROWS, MAX_ALONE, MAX_COLUMNS, MAX_FIGURES = 1500, 200, 6, 6
VERDICTS = (IMPROVEMENT, REGRESSION, INCONCLUSIVE, ONLY_BASE, ONLY_NEW)
_KINDS = {IMPROVEMENT: "good", REGRESSION: "bad"}
_LEVELS = {IMPROVEMENT: "confirmed", REGRESSION: "warning"}


def write_comparison(base: Side, new: Side, results: Path) -> dict[str, int]:
    """Write ``compare.html`` and ``compare/`` into a results folder.

    Returns how many points' main metrics got each verdict, in the phases that they have.
    """
    joined = join(base, new)
    rows, unlike = ratios(joined, base, new)
    around = surroundings(joined.both, base, new)
    frames = make_tables(rows, joined, around)
    for name, frame in frames.items():
        write_csv(frame, results / FOLDER / f"{name}.csv")
        write_parquet(frame, results / FOLDER / f"{name}.parquet", {})
    write_atomic(results / PAGE, render_comparison(base, new, rows, joined, around, unlike))
    return dict(Counter(row.change.verdict for row in rows if row.main))


def make_tables(
    rows: Sequence[Ratio], joined: Joined, around: Surroundings
) -> dict[str, pd.DataFrame]:
    """The frames by name (docs/reference/files.md gives the columns); each may be empty."""
    points = [
        {
            **_who(row.pair), "metric": row.metric, "phase": row.phase, "main": row.main,
            "unit": row.quantity.unit, "better": row.quantity.better,
            **_side("base", row.repeats[0], row.base), **_side("new", row.repeats[1], row.new),
            "ratio": row.change.ratio, "ratio_low": row.change.low, "ratio_high": row.change.high,
            "p": row.change.p, "p_adjusted": row.change.adjusted, "p_family": row.family,
            "verdict": row.change.verdict, "reason": row.change.reason or None,
        }
        for row in rows
    ]  # fmt: skip
    alone = [
        {"side": "base" if pair.base else "new", **_who(pair), "why": pair.why}
        for pair in joined.alone
    ]
    facts = [
        {"fact": d.fact, "base": d.base, "new": d.new, "recorded": d.known}
        for d in around.differences
    ]
    parts = {"points": points, "unmatched": alone, "environment": facts}
    return {name: _frame(made) for name, made in parts.items()}


def _side(role: str, repeats: int, estimate: Any) -> dict[str, Any]:
    mean, low, high = map(float, estimate)
    return {f"{role}_repeats": repeats, f"{role}_mean": mean, f"{role}_low": low,
            f"{role}_high": high}  # fmt: skip


def _who(pair: Pair) -> dict[str, Any]:
    """What distinguishes one point from another; a parameter whose name is taken gets a prefix."""
    who: dict[str, Any] = {
        "experiment": pair.experiment, "benchmark": pair.point.kind[0],
        "version": pair.point.kind[1], "source": pair.source,
    }  # fmt: skip
    taken = {*who, "metric", "phase", "main", "unit", "better", "ratio", "p", "verdict", "reason",
             "side", "why"}  # fmt: skip
    for name in sorted(pair.point.values, key=lambda name: name != "ranks"):
        value = pair.point.values[name]
        shown = canonical_json(value) if isinstance(value, list | dict) else value
        who[f"parameter_{name}" if name in taken else name] = shown
    return who


def _frame(rows: Sequence[dict[str, Any]]) -> pd.DataFrame:
    names = dict.fromkeys(name for row in rows for name in row)
    columns = {name: typed_values([row.get(name) for row in rows]) for name in names}
    return pd.DataFrame(columns if columns else {"experiment": []})


def render_comparison(
    base: Side,
    new: Side,
    rows: Sequence[Ratio],
    joined: Joined,
    around: Surroundings,
    unlike: Sequence[str],
) -> str:
    """The page as HTML; everything from plans, records and summaries is escaped.

    ``unlike``: metrics that are not compared, in words.
    """
    claims = by_claim(row for row in rows if row.first)
    experiments: dict[str, list[Ratio]] = {}
    for row in rows:
        if row.pair.base and row.pair.new:
            experiments.setdefault(row.experiment, []).append(row)
    share = max(30, MAX_ROWS // max(len(experiments), 1))
    tested = sum(finite(row.change.p) for row in rows)
    context = {
        "base": base,
        "new": new,
        "sides": [("Base", base), ("New", new)],
        "joined": joined,
        "around": around,
        "warnings": _warnings(around, base, new),
        "sentences": [words for group in claims for words in sentences(group)],
        "figures": [figure for group in claims[:MAX_FIGURES] for figure in draw_ratios(group)],
        "counts": _counts(rows),
        "tested": tested,
        "by_chance": 0.05 * tested,
        "experiments": [_points(name, group, share) for name, group in experiments.items()],
        "alone": _alone(joined),
        "differences": _differences(around),
        "unlike": unlike,
        "files": [f"./{FOLDER}/{name}.csv" for name in ("points", "unmatched", "environment")],
        "assets": assets(SCRIPTS, charts=False),
    }
    filters = {"when": lambda text: str(text or "–").replace("T", " ")[:16]}
    return render("compare.html.j2", context, filters)


def sentences(group: Sequence[Ratio]) -> list[dict[str, str]]:
    """What is said first of a main metric of an experiment: a sentence for each direction that
    stands at any point, else that there is no clear difference."""
    first = group[0]
    there = [row for row in group if row.pair.base and row.pair.new]
    what = f"{first.experiment}: {first.quantity.label.lower()}, {PHASES[first.phase]}"
    known = [row for row in there if finite(row.change.p)]
    if not known:
        reasons = {row.change.reason for row in there}
        why = listed(sorted(reasons)) if reasons else "no point is on both sides"
        return [{"tag": "open", "level": "open", "text": f"{what}: no verdict ({why})."}]
    said = []
    for verdict, word in ((IMPROVEMENT, "better"), (REGRESSION, "worse")):
        alike = [row for row in known if row.stands and row.change.verdict == verdict]
        if alike:
            at = f"at {len(alike)} of {counted(len(known), 'point')}"
            text = f"{what} is {word} {at}, by {_by(alike)}."
            said.append({"tag": verdict, "level": _LEVELS[verdict], "text": text})
    if said:
        return said
    low, high = min(row.change.low for row in known), max(row.change.high for row in known)
    text = (
        f"{what}: no clear difference at {counted(len(known), 'point')}; the intervals lie between "
        f"{percent(low - 1)} and {percent(high - 1)}."
    )
    return [{"tag": "open", "level": "open", "text": text}]


def _by(rows: Sequence[Ratio]) -> str:
    """By how much: ``+4.2 [3.1, 5.3] %``, of several points on average."""
    change = rows[0].change if len(rows) == 1 else overall([row.change for row in rows])
    assert change is not None
    sign = "+" if change.ratio > 1 else ""
    average = " on average" if len(rows) > 1 else ""
    return f"{sign}{percent(change.ratio - 1, change.low - 1, change.high - 1)}{average}"


def _warnings(around: Surroundings, base: Side, new: Side) -> list[str]:
    """What a reader has to know before any ratio, as sentences."""
    warnings = []
    for side in (base, new):
        others = [source for source in around.sources[side.role] if source != "measured"]
        if others:
            warnings.append(f"Rows of {side.role} are {listed(others)}, not measured by this tool.")
    if around.shared:
        are = "is" if around.shared == 1 else "are"
        warnings.append(
            f"{counted(around.shared, 'run')} of both sides {are} the same: they show no change."
        )
    known = [d for d in around.differences if d.known and d is not around.subject]
    if known:
        warnings.append(f"Differs between the sides: {listed([str(d) for d in known], 5)}.")
    unknown = [d.fact for d in around.differences if not d.known]
    if unknown:
        warnings.append(f"Recorded on one side only: {listed(unknown, 8)}.")
    if not around.alike and not around.differences:
        warnings.append("Neither side recorded its hosts, hardware and software.")
    return warnings


def _counts(rows: Sequence[Ratio]) -> dict[str, Any]:
    """Verdicts by experiment, metric and phase."""
    numbers = [*(verdict.capitalize() for verdict in VERDICTS), "Corrected", "Geometric mean"]
    head = headings("Experiment", "Metric", "Better", *numbers, numbers=numbers)
    made = []
    for group in by_claim(rows):
        first, counts = group[0], Counter(row.change.verdict for row in group)
        kept = sum(row.change.adjusted <= 0.05 for row in group)
        mean = overall([row.change for row in group]) if first.main else None
        shown = with_interval(mean.ratio, mean.low, mean.high) if mean else "–"
        made.append(
            [Text(first.experiment), Text(_title(first)), Text(first.quantity.better)]
            + [number_cell(counts[verdict], str(counts[verdict])) for verdict in VERDICTS]
            + [number_cell(kept, str(kept)), number_cell(mean.ratio if mean else math.nan, shown)]
        )
    return table("Verdicts by experiment and metric", head, made)


def _title(row: Ratio) -> str:
    unit = "" if row.quantity.unit in ("", "1") else f" [{row.quantity.unit}]"
    return f"{row.quantity.label}{unit}, {PHASES[row.phase]}"


def _parameters(names: Sequence[str], pair: Pair) -> list[Text]:
    """Cells of the varying parameters; many of them share one."""
    values = [pair.point.values.get(name) for name in names]
    if not names:
        return [Text("the only point")]
    if len(names) > MAX_COLUMNS:
        pairs = zip(names, values, strict=True)
        return [Text(", ".join(f"{name} {text_of(value)}" for name, value in pairs))]
    return [
        number_cell(value, text_of(value)) if finite(value) else Text(text_of(value))
        for value in values
    ]


def _points(name: str, rows: Sequence[Ratio], limit: int) -> dict[str, Any]:
    """Every metric of the joined points of an experiment, the main one first."""
    pairs = [row.pair for row in rows]
    names = varying(pairs)
    several = len({pair.source for pair in pairs}) > 1
    top: dict[str, float] = {}
    for row in rows:
        for mean in (row.base[0], row.new[0]):
            top[row.metric] = max(top.get(row.metric, 0.0), abs(mean) if finite(mean) else 0.0)
    cells = []
    for row in sorted(rows, key=lambda row: not row.main)[:limit]:
        factor, unit = scaled_unit(row.quantity.unit, top[row.metric])
        label = row.quantity.label + (f" [{unit}]" if unit not in ("", "1") else "")
        change = row.change
        verdict = change.verdict
        if change.reason and not finite(change.p):
            verdict += f": {change.reason}"
        p = "< 0.0001" if change.adjusted < 0.0001 else number(change.adjusted, 2)
        cells.append([
            *_parameters(names, row.pair), *([Text(row.pair.source)] if several else []),
            Text(label), Text(PHASES[row.phase]),
            _mean(row.base * factor, row.repeats[0]), _mean(row.new * factor, row.repeats[1]),
            number_cell(change.ratio, with_interval(change.ratio, change.low, change.high)),
            Text(verdict, change.verdict, _KINDS.get(change.verdict, "")),
            number_cell(change.adjusted, p if finite(change.adjusted) else "–"),
        ])  # fmt: skip
    wide = names if names and len(names) <= MAX_COLUMNS else ["Point"]
    numeric = [n for n in wide if all(finite(pair.point.values.get(n)) for pair in pairs)]
    head = headings(*wide, *(["Source"] if several else []), "Metric", "Phase", "Base", "New",
                    "Ratio", "Verdict", "p, corrected",
                    numbers=[*numeric, "Base", "New", "Ratio", "p, corrected"])  # fmt: skip
    more = ("row", f"{FOLDER}/points.csv")
    return {
        "name": name,
        "benchmark": listed([*dict.fromkeys(f"{b}, version {v}" for b, v in
                                            (pair.point.kind for pair in pairs))]),
        "points": len({id(pair) for pair in pairs}),
        "table": table(f"Points of {name}", head, cells, len(rows), more),
        "same": {n: text_of(v) for n, v in pairs[0].point.values.items() if n not in names},
    }  # fmt: skip


def _mean(estimate: Any, repeats: int) -> Text:
    mean, low, high = map(float, estimate)
    return number_cell(mean, with_interval(mean, low, high) + (" (1)" if repeats == 1 else ""))


def _alone(joined: Joined) -> dict[str, Any]:
    """Points of one side only, with what became of them on the other."""
    names = varying(joined.alone)
    rows = [
        [
            Text("base" if pair.base else "new"),
            Text(pair.experiment),
            Text(f"{pair.point.kind[0]}, version {pair.point.kind[1]}"),
            Text(", ".join(f"{name} {text_of(pair.point.values.get(name))}" for name in names)),
            Text(pair.why),
        ]
        for pair in joined.alone[:MAX_ALONE]
    ]
    head = headings("Side", "Experiment", "Benchmark", "Point", "On the other side")
    more = ("point", f"{FOLDER}/unmatched.csv")
    return table("Points on one side only", head, rows, len(joined.alone), more)


def _differences(around: Surroundings) -> dict[str, Any]:
    """Facts that are not the same on both sides."""
    rows = [[Text(d.fact), Text(d.base), Text(d.new)] for d in around.differences]
    return table("Differences between the sides", headings("Fact", "Base", "New"), rows)
