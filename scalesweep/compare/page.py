"""The page of a comparison and its tables: what changed, what else differs, and every number."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import pandas as pd

from scalesweep.analysis.table_io import typed_values, write_csv, write_parquet
from scalesweep.compare.figure import draw_ratios
from scalesweep.compare.ratios import ONLY_BASE, ONLY_NEW, by_claim, ratios
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
from scalesweep.judge.words import ratio_words
from scalesweep.report.html_assets import assets, render

PAGE, FOLDER = "compare.html", "compare"
SCRIPTS = ("tables.js",)
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
    for name, frame in make_tables(rows, joined, around).items():
        write_csv(frame, results / FOLDER / f"{name}.csv")
        write_parquet(frame, results / FOLDER / f"{name}.parquet", {})
    write_atomic(results / PAGE, render_comparison(base, new, rows, joined, around, unlike))
    return dict(Counter(rows.loc[rows["main"], "verdict"]))


def make_tables(
    rows: pd.DataFrame, joined: Joined, around: Surroundings
) -> dict[str, pd.DataFrame]:
    """The frames by name (docs/reference/files.md gives the columns); each may be empty."""
    shown = rows.assign(
        unit=[quantity.unit for quantity in rows["quantity"]],
        better=[quantity.better for quantity in rows["quantity"]],
        reason=pd.Series([change.reason or None for change in rows["change"]], dtype=object),
    ).rename(columns={"low": "ratio_low", "high": "ratio_high"})
    points = _frame(
        [
            _who(row["pair"]) | {str(k): v for k, v in row.items() if k != "pair"}
            for row in shown.drop(columns=["quantity", "change", "first", "stands"]).to_dict(
                "records"
            )
        ]
    )
    alone = [
        {"side": "base" if pair.base else "new", **_who(pair), "why": pair.why}
        for pair in joined.alone
    ]
    facts = [
        {"fact": d.fact, "base": d.base, "new": d.new, "recorded": d.known}
        for d in around.differences
    ]
    return {"points": points, "unmatched": _frame(alone), "environment": _frame(facts)}


_TAKEN = {
    *("experiment", "benchmark", "version", "source", "metric", "phase", "main", "unit", "better"),
    *("ratio", "p", "verdict", "reason", "side", "why"),
}


def _who(pair: Pair) -> dict[str, Any]:
    """What distinguishes one point from another; a parameter whose name is taken gets a prefix."""
    (benchmark, version), values = pair.point.kind, pair.point.values
    who = {"experiment": pair.experiment, "benchmark": benchmark, "version": version}
    who["source"] = pair.source
    for name in sorted(values, key=lambda name: name != "ranks"):
        plain = not isinstance(values[name], list | dict)
        shown = values[name] if plain else canonical_json(values[name])
        who[f"parameter_{name}" if name in _TAKEN else name] = shown
    return who


def _frame(rows: Sequence[dict[str, Any]]) -> pd.DataFrame:
    names = dict.fromkeys(name for row in rows for name in row)
    columns = {name: typed_values([row.get(name) for row in rows]) for name in names}
    return pd.DataFrame(columns if columns else {"experiment": []})


def render_comparison(
    base: Side,
    new: Side,
    rows: pd.DataFrame,
    joined: Joined,
    around: Surroundings,
    unlike: Sequence[str],
) -> str:
    """The page as HTML; everything from plans, records and summaries is escaped.

    ``unlike``: metrics that are not compared, in words.
    """
    claims = by_claim(rows[rows["first"]])
    there = rows[~rows["verdict"].isin([ONLY_BASE, ONLY_NEW])]
    experiments = there.groupby("experiment", sort=False)
    share = max(30, MAX_ROWS // max(len(experiments), 1))
    tested = int(rows["p"].notna().sum())
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
        "experiments": [_points(str(name), group, share) for name, group in experiments],
        "alone": _alone(joined),
        "differences": _differences(around),
        "unlike": unlike,
        "files": [f"./{FOLDER}/{name}.csv" for name in ("points", "unmatched", "environment")],
        "assets": assets(SCRIPTS, charts=False),
    }
    filters = {"when": lambda text: str(text or "–").replace("T", " ")[:16]}
    return render("compare.html.j2", context, filters)


def sentences(group: pd.DataFrame) -> list[dict[str, str]]:
    """What is said first of a main metric of an experiment: a sentence for each direction that
    stands at any point, else that there is no clear difference."""
    first = group.iloc[0]
    what = f"{first['experiment']}: {first['quantity'].label.lower()}, {PHASES[first['phase']]}"
    known = group[group["p"].notna()]
    if known.empty:
        there = group[~group["verdict"].isin([ONLY_BASE, ONLY_NEW])]
        why = listed(sorted({c.reason for c in there["change"]})) or "no point is on both sides"
        return [{"tag": "open", "level": "open", "text": f"{what}: no verdict ({why})."}]
    said = []
    for verdict, word in ((IMPROVEMENT, "better"), (REGRESSION, "worse")):
        alike = known[known["stands"] & (known["verdict"] == verdict)]
        if len(alike):
            at = f"at {len(alike)} of {counted(len(known), 'point')}"
            changes = alike["change"].tolist()
            change = overall(changes)
            by = f"{ratio_words(change)} on average" if change else ratio_words(changes[0])
            text = f"{what} is {word} {at}, by {by}."
            said.append({"tag": verdict, "level": _LEVELS[verdict], "text": text})
    low, high = percent(known["low"].min() - 1), percent(known["high"].max() - 1)
    text = (
        f"{what}: no clear difference at {counted(len(known), 'point')}; the intervals lie between "
        f"{low} and {high}."
    )
    return said or [{"tag": "open", "level": "open", "text": text}]


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


def _counts(rows: pd.DataFrame) -> dict[str, Any]:
    """Verdicts by experiment, metric and phase."""
    numbers = [*(verdict.capitalize() for verdict in VERDICTS), "Corrected", "Geometric mean"]
    made = []
    for group in by_claim(rows):
        first, counts = group.iloc[0], Counter(group["verdict"])
        kept = int((group["p_adjusted"] <= 0.05).sum())
        mean = overall(group["change"].tolist()) if first["main"] else None
        shown = with_interval(mean.ratio, mean.low, mean.high) if mean else "–"
        quantity = first["quantity"]
        unit = "" if quantity.unit in ("", "1") else f" [{quantity.unit}]"
        title = f"{quantity.label}{unit}, {PHASES[first['phase']]}"
        made.append(
            [Text(first["experiment"]), Text(title), Text(quantity.better)]
            + [number_cell(counts[verdict], str(counts[verdict])) for verdict in VERDICTS]
            + [number_cell(kept, str(kept)), number_cell(mean.ratio if mean else 0.0, shown)]
        )
    head = headings("Experiment", "Metric", "Better", *numbers, numbers=numbers)
    return table("Verdicts by experiment and metric", head, made)


def _parameters(names: Sequence[str], pair: Pair) -> list[Text]:
    """Cells of the varying parameters; many of them share one."""
    values = {name: pair.point.values.get(name) for name in names}
    if not 0 < len(names) <= MAX_COLUMNS:
        words = [f"{name} {text_of(value)}" for name, value in values.items()]
        return [Text(", ".join(words) or "the only point")]
    return [
        number_cell(value, text_of(value)) if finite(value) else Text(text_of(value))
        for value in values.values()
    ]


def _points(name: str, rows: pd.DataFrame, limit: int) -> dict[str, Any]:
    """Every metric of the joined points of an experiment, the main one first."""
    pairs: list[Pair] = rows["pair"].tolist()
    names = varying(pairs)
    several = rows["pair"].map(lambda pair: pair.source).nunique() > 1
    top = rows[["base_mean", "new_mean"]].abs().max(axis=1).groupby(rows["metric"]).max()
    cells = []
    ordered = rows.sort_values("main", ascending=False, kind="stable").head(limit)
    for row in cast(list[dict[str, Any]], ordered.to_dict("records")):
        pair, quantity, verdict, p = (row[n] for n in ("pair", "quantity", "verdict", "p_adjusted"))
        factor, unit = scaled_unit(quantity.unit, top[row["metric"]])
        label = quantity.label + (f" [{unit}]" if unit not in ("", "1") else "")
        why = f": {row['change'].reason}" if row["change"].reason and not finite(p) else ""
        shown = "–" if not finite(p) else "< 0.0001" if p < 0.0001 else number(p, 2)
        cells.append([
            *_parameters(names, pair), *([Text(pair.source)] if several else []),
            Text(label), Text(PHASES[row["phase"]]),
            _mean(row, "base", factor), _mean(row, "new", factor),
            number_cell(row["ratio"], with_interval(row["ratio"], row["low"], row["high"])),
            Text(f"{verdict}{why}", verdict, _KINDS.get(verdict, "")), number_cell(p, shown),
        ])  # fmt: skip
    wide = names if 0 < len(names) <= MAX_COLUMNS else ["Point"]
    numeric = [n for n in wide if all(finite(pair.point.values.get(n)) for pair in pairs)]
    head = headings(*wide, *(["Source"] if several else []), "Metric", "Phase", "Base", "New",
                    "Ratio", "Verdict", "p, corrected",
                    numbers=[*numeric, "Base", "New", "Ratio", "p, corrected"])  # fmt: skip
    more = ("row", f"{FOLDER}/points.csv")
    kinds = dict.fromkeys(pair.point.kind for pair in pairs)
    return {
        "name": name,
        "benchmark": listed([f"{benchmark}, version {version}" for benchmark, version in kinds]),
        "points": len({id(pair) for pair in pairs}),
        "table": table(f"Points of {name}", head, cells, len(rows), more),
        "same": {n: text_of(v) for n, v in pairs[0].point.values.items() if n not in names},
    }  # fmt: skip


def _mean(row: Mapping[str, Any], side: str, factor: float) -> Text:
    mean, low, high = (row[f"{side}_{end}"] * factor for end in ("mean", "low", "high"))
    single = " (1)" if row[f"{side}_repeats"] == 1 else ""
    return number_cell(mean, with_interval(mean, low, high) + single)


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
