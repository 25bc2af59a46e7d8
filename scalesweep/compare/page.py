"""The page of a comparison and its tables: what changed, what else differs, and every number."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from scalesweep.analysis.table_io import typed_values, write_table
from scalesweep.compare.joined import BASE, NEW, Joined, join, varying
from scalesweep.compare.ratios import CLAIM, ONLY_BASE, ONLY_NEW, ratios
from scalesweep.compare.sides import Side
from scalesweep.core.files import write_atomic
from scalesweep.core.formatting import (
    PHASES,
    counted,
    listed,
    percent,
    scaled_unit,
    text_of,
    with_interval,
)
from scalesweep.experiment.cells import Text, number_cell
from scalesweep.judge.change import IMPROVEMENT, REGRESSION, overall
from scalesweep.judge.facts import Difference, differences, facts_of, other_hosts
from scalesweep.judge.words import p_cell, page_table, ratio_words, verdict_cell
from scalesweep.report.html_assets import assets, render
from scalesweep.tables.provenance import FACTS, GIT, PROGRAM, STUDY, read_facts

PAGE, FOLDER = "compare.html", "compare"
SCRIPTS = ("tables.js",)
# What one page may hold; the rest is in the CSV files.
MAX_ROWS, MAX_ALONE = 1500, 200
_LEVELS = {IMPROVEMENT: "confirmed", REGRESSION: "warning"}


@dataclass(frozen=True)
class Comparison:
    """Two sides compared: their points and the ratios, and what differs around the joined runs.

    ``recorded``: names of all facts; ``shared``: runs that both sides have, which are one and the
    same; ``subject``: the commit of the measured program, if the sides differ.
    """

    base: Side
    new: Side
    joined: Joined
    rows: pd.DataFrame
    differences: list[Difference]
    recorded: str
    shared: int
    subject: Difference | None


def compare_sides(base: Side, new: Side) -> Comparison:
    """Compare two sides at every point that they share."""
    joined = join(base, new)
    facts, started = [], []
    for name, side in ((BASE, base), (NEW, new)):
        runs = joined.runs[name]
        rows = side.summary.iloc[sorted(set(runs["row"][runs["pair"].isin(joined.both.index)]))]
        texts = rows[FACTS].tolist() if FACTS in rows else [None] * len(rows)
        facts.append(list(read_facts(rows["run_id"].tolist(), texts).values()))
        started.append(
            {each for each in zip(rows["run_id"], rows["started"], strict=True) if each[1]}
        )
    known = [[facts_of(run) for run in side] for side in facts]
    every = [*dict.fromkeys(name for side in known for run in side for name in run)]
    unlike = differences(known[0], known[1])
    # Of an external program its repository's commit, else the study's or scalesweep's.
    subjects = (PROGRAM,) if PROGRAM in every else (STUDY, GIT)
    by_fact = {difference.fact: difference for difference in unlike if difference.known}
    apart = other_hosts(*[[set(run.hosts) for run in side] for side in facts])
    return Comparison(
        base, new, joined, ratios(joined, base, new),
        differences=[*([apart] if apart else []), *unlike],
        recorded=listed(every, 20), shared=len(started[0] & started[1]),
        subject=next((by_fact[name] for name in subjects if name in by_fact), None),
    )  # fmt: skip


def write_comparison(base: Side, new: Side, results: Path) -> list[str]:
    """Write ``compare.html`` and ``compare/`` into a results folder; returns what the page says
    first."""
    made = compare_sides(base, new)
    for name, frame in make_tables(made).items():
        write_table(frame, results / FOLDER / name)
    write_atomic(results / PAGE, render_comparison(made))
    return [said["text"] for said in _said_first(made.rows)]


def make_tables(made: Comparison) -> dict[str, pd.DataFrame]:
    """The frames by name (docs/reference/files.md gives the columns); each may be empty."""
    pairs, rows = made.joined.pairs, made.rows
    names = dict.fromkeys(name for values in pairs["values"] for name in values)
    parameters = pd.DataFrame(
        {
            f"parameter_{name}" if name in _TAKEN else name: typed_values(
                [values.get(name) for values in pairs["values"]]
            )
            for name in sorted(names, key=lambda name: (name != "ranks", name))
        },
        pairs.index,
    )
    who = pairs[["experiment", "benchmark", "version", "source"]].join(parameters)
    numbers = rows.drop(columns=["experiment", "title", "se", "df", "stands"], errors="ignore")
    points = who.merge(numbers, left_index=True, right_on="pair", how="right").drop(columns="pair")
    facts = [
        {"fact": d.fact, "base": d.base, "new": d.new, "recorded": d.known}
        for d in made.differences
    ]
    columns = {"low": "ratio_low", "high": "ratio_high"}
    alone = made.joined.alone[["side", "why"]].join(who)
    return {
        "points": points.rename(columns=columns),
        "unmatched": alone[["side", *who.columns, "why"]],
        "environment": pd.DataFrame(facts, columns=["fact", "base", "new", "recorded"]),
    }


_TAKEN = {
    *("experiment", "benchmark", "version", "source", "metric", "phase", "main", "unit", "better"),
    *("ratio", "p", "verdict", "reason", "side", "why"),
}


def render_comparison(made: Comparison) -> str:
    """The page as HTML; everything from plans, records and summaries is escaped."""
    rows, joined = made.rows, made.joined
    there = rows[~rows["verdict"].isin([ONLY_BASE, ONLY_NEW])]
    experiments = there.groupby("experiment", sort=False)
    facts = make_tables(made)["environment"]
    tested = int(rows["p"].notna().sum())
    context = {
        "base": made.base,
        "new": made.new,
        "both": len(joined.both),
        "made": made,
        "warnings": _warnings(made),
        "sentences": _said_first(rows),
        "tested": tested,
        "experiments": [_experiment(name, group, joined.pairs) for name, group in experiments],
        "alone": _alone(joined.alone),
        "differences": page_table(
            "Differences between the sides",
            {name.capitalize(): facts[name].tolist() for name in ("fact", "base", "new")},
        ),
        "files": [f"./{FOLDER}/{name}.csv" for name in ("points", "unmatched", "environment")],
        "assets": assets(SCRIPTS, charts=False),
    }
    filters = {"when": lambda text: str(text or "–").replace("T", " ")[:16]}
    return render("compare.html.j2", context, filters)


def _said_first(rows: pd.DataFrame) -> list[dict[str, str]]:
    claims = rows[rows["main"]].groupby(CLAIM, sort=False)
    return [words for _, group in claims for words in sentences(group)]


def sentences(group: pd.DataFrame) -> list[dict[str, str]]:
    """What is said first of a main metric of an experiment: a sentence for each direction that
    stands at any point, else that there is no clear difference."""
    first = group.iloc[0]
    what = f"{first['experiment']}: {first['title'].lower()}, {PHASES[first['phase']]}"
    known = group[group["p"].notna()]
    if known.empty:
        why = listed(sorted(set(group["reason"]) - {""})) or "no point is on both sides"
        return [{"tag": "open", "level": "open", "text": f"{what}: no verdict ({why})."}]
    said = []
    for verdict, word in ((IMPROVEMENT, "better"), (REGRESSION, "worse")):
        alike = known[known["stands"] & (known["verdict"] == verdict)]
        if len(alike):
            at = f"at {len(alike)} of {counted(len(known), 'point')}"
            change = overall(alike) or alike.iloc[0]
            average = " on average" if len(alike) > 1 else ""
            text = f"{what} is {word} {at}, by {ratio_words(change)}{average}."
            said.append({"tag": verdict, "level": _LEVELS[verdict], "text": text})
    low, high = percent(known["low"].min() - 1), percent(known["high"].max() - 1)
    text = (
        f"{what}: no clear difference at {counted(len(known), 'point')}; the intervals lie between "
        f"{low} and {high}."
    )
    return said or [{"tag": "open", "level": "open", "text": text}]


def _warnings(made: Comparison) -> list[str]:
    """What a reader has to know before any ratio, as sentences."""
    warnings = []
    for side in (made.base, made.new):
        if gone := len(side.summary) - len(made.joined.runs[side.role]):
            runs = counted(gone, "run")
            warnings.append(f"Left out of {side.role}: {runs} that other processes disturbed.")
        if others := sorted({*side.summary["source"]} - {"measured"}):
            warnings.append(f"Rows of {side.role} are {listed(others)}, not measured by this tool.")
    if made.shared:
        are = "is" if made.shared == 1 else "are"
        warnings.append(
            f"{counted(made.shared, 'run')} of both sides {are} the same: they show no change."
        )
    if known := [d for d in made.differences if d.known and d is not made.subject]:
        warnings.append(f"Differs between the sides: {listed([str(d) for d in known], 5)}.")
    if unknown := [d.fact for d in made.differences if not d.known]:
        warnings.append(f"Recorded on one side only: {listed(unknown, 8)}.")
    return warnings


def _experiment(name: Any, rows: pd.DataFrame, pairs: pd.DataFrame) -> dict[str, Any]:
    """The section of an experiment: every metric of its joined points, the main one first."""
    own = pairs.loc[rows["pair"].unique()]
    names, total = varying(own), len(rows)
    mean = overall(rows[rows["main"]])
    top = rows[["base_mean", "new_mean"]].abs().max(axis=1).groupby(rows["metric"]).max()
    rows = rows.head(MAX_ROWS)
    made = rows.to_dict("records")
    units = [scaled_unit(row["unit"], top[row["metric"]]) for row in made]
    points = own.loc[rows["pair"], "values"]
    columns: dict[str, Any] = {n: [values.get(n) for values in points] for n in names}
    if own["source"].nunique() > 1:
        columns["Source"] = own.loc[rows["pair"], "source"]
    columns |= {
        "Metric": [
            row["title"] + (f" [{unit}]" if unit not in ("", "1") else "")
            for row, (_, unit) in zip(made, units, strict=True)
        ],
        "Phase": rows["phase"].map(PHASES),
        **{
            side.capitalize(): [
                _mean(row, side, factor) for row, (factor, _) in zip(made, units, strict=True)
            ]
            for side in (BASE, NEW)
        },
        "Ratio": [
            number_cell(row["ratio"], with_interval(row["ratio"], row["low"], row["high"]))
            for row in made
        ],
        "Verdict": [verdict_cell(row["verdict"], row["reason"]) for row in made],
        "p, corrected": [p_cell(p) for p in rows["p_adjusted"]],
    }
    kinds = own[["benchmark", "version"]].drop_duplicates().itertuples(index=False)
    more = ("row", f"{FOLDER}/points.csv")
    return {
        "name": name,
        "benchmark": listed([f"{benchmark}, version {version}" for benchmark, version in kinds]),
        "points": len(own),
        "mean": with_interval(mean.ratio, mean.low, mean.high) if mean else "",
        "table": page_table(f"Points of {name}", columns, total, more),
        "same": {n: text_of(v) for n, v in own["values"].iloc[0].items() if n not in names},
    }


def _mean(row: Mapping[Any, Any], side: str, factor: float) -> Text:
    mean, low, high = (row[f"{side}_{end}"] * factor for end in ("mean", "low", "high"))
    single = " (1)" if row[f"{side}_repeats"] == 1 else ""
    return number_cell(mean, with_interval(mean, low, high) + single)


def _alone(alone: pd.DataFrame) -> dict[str, Any]:
    """Points of one side only, with what became of them on the other."""
    shown = alone.head(MAX_ALONE)
    columns: dict[str, Any] = {
        "Side": shown["side"],
        "Experiment": shown["experiment"],
        "Benchmark": shown["benchmark"] + ", version " + shown["version"].astype(str),
        **{n: [values.get(n) for values in shown["values"]] for n in varying(alone)},
        "On the other side": shown["why"],
    }
    more = ("point", f"{FOLDER}/unmatched.csv")
    return page_table("Points on one side only", columns, len(alone), more)
