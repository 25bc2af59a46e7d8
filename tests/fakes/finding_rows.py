"""Experiments whose tables are a few made-up rows, for the rules of findings."""

import math
from dataclasses import replace
from itertools import product
from typing import Any

import pandas as pd

from scalesweep.analysis.factors import fold_axes
from scalesweep.analysis.metrics import QUANTITIES
from scalesweep.analysis.multiple import LEVELS, VERDICTS, holm_cut
from scalesweep.analysis.stats import LogError, t_quantile
from scalesweep.aspects.find import rules
from scalesweep.core.files import digest_of
from scalesweep.core.formatting import PHASES
from scalesweep.core.plan_format import target_efficiency
from scalesweep.experiment.results import ExperimentResults
from scalesweep.findings.base import SILENT, Finding
from scalesweep.table.declared import Estimate, frame_of
from scalesweep.tables.comparisons import Comparison

Triple = tuple[float, float | None, float | None]
T = "total_throughput"


def study(
    rows: list[dict[str, Any]],
    axes: list[str] | None = None,
    runs: list[dict[str, Any]] | None = None,
    **plan: Any,
) -> ExperimentResults:
    """An experiment with these rows of its tables ``points`` and, over ranks, ``scaling``."""
    axes = axes or ["a"]
    rows = [{"source": "measured", "repeats": 3, "planned": 3, **row} for row in rows]
    plan_runs = [
        {"run_id": f"r{i}", "repeat": 0, "status": "done", "cause": "", "detail": "",
         "point": {name: row[name] for name in axes}}
        for i, row in enumerate(rows)
    ]  # fmt: skip
    entry = {
        "name": "e", "benchmark": "b", "version": 1, "axes": axes, "fixed": {},
        "scaling": "weak" if "ranks" in axes else "none", "scale": "ranks",
        "scale_parameters": ["ranks"], "work": [], "main_metric": None, "metrics": {}, "linked": [],
        "runs": plan_runs, "excluded": [], "profiles": [],
        "parameters": {name: {"unit": None} for name in axes}, "points": len(rows), **plan,
    }  # fmt: skip
    frame = pd.DataFrame(rows)
    for name in [name for name in frame if "_mean_" in str(name)]:
        metric = str(name).partition("_mean_")[0]
        plain = {"label": metric.replace("_", " "), "unit": "", "better": "higher"}
        known = QUANTITIES[metric].meaning if metric in QUANTITIES else plain
        frame.attrs.setdefault("units", {})[name] = known
    tables = {"points": frame, "scaling": frame if "ranks" in axes else None}
    tables["comparisons"] = _efficiencies(entry, rows) if "ranks" in axes else None
    tables["runs"] = pd.DataFrame(runs) if runs else None
    return ExperimentResults(entry, tables)


def _efficiencies(entry: Any, rows: list[dict[str, Any]]) -> pd.DataFrame | None:
    """The rows of the table ``comparisons`` on the efficiencies in these rows."""
    target, base = target_efficiency(entry), min(row["ranks"] for row in rows)
    known: list[tuple[Comparison, LogError | None]] = []
    stems = {name.partition("_eff_")[0] for row in rows for name in row if "_eff_" in name}
    for row, phase, stem in product(rows, PHASES, stems):
        share, low, high = (row.get(f"{stem}_eff{end}_{phase}") for end in ("", "_low", "_high"))
        if row["ranks"] == base or share is None:
            continue
        error = interval_error(low, high, row["repeats"] - 1)
        point = {name: row[name] for name in fold_axes(entry)[0]}
        made = Comparison(
            point=point, experiment="e", question="scaling", parameter="ranks",
            value=str(row["ranks"]), base_value=str(base), against="reference",
            quantity="efficiency", metric=T if stem == "total" else stem, phase=phase,
            better="higher", source=row["source"],
            point_id=digest_of(point), base_id="base", ratio=Estimate.of(share, low, high),
            how="one repeat" if low is None else "repeats",
            p=None if error is None else error.p(math.log(share / target)),
        )  # fmt: skip
        known.append((made, error))
    cut = holm_cut([1.0 if row.p is None else row.p for row, _ in known], LEVELS[VERDICTS])
    decided = []
    for row, error in known:
        if error is not None and row.ratio is not None:
            bounds = error.around(row.ratio.value, 1 - cut)
            row = replace(row, decides_low=bounds.low, decides_high=bounds.high)  # noqa: PLW2901
        decided.append(row)
    return frame_of(decided)


def interval_error(low: float | None, high: float | None, degrees: int) -> LogError | None:
    """Of the logarithm of a ratio, by its 95 % interval; None without one, or if it reaches 0."""
    if low is None or high is None or low <= 0:
        return None
    return LogError(math.log(high / low) / 2 / t_quantile(max(degrees, 1)), max(degrees, 1))


def value(phase: str, triple: Triple, metric: str = T) -> dict[str, Any]:
    """Mean and bounds of a metric in a phase, as columns of a row."""
    return {
        f"{metric}_{s}_{phase}": v for s, v in zip(("mean", "low", "high"), triple, strict=True)
    }


def eff(phase: str, triple: Triple) -> dict[str, Any]:
    """Efficiency and its bounds in a phase, as columns of a row."""
    names = ("total_eff", "total_eff_low", "total_eff_high")
    return {f"{name}_{phase}": v for name, v in zip(names, triple, strict=True)}


def said(findings: list[Finding]) -> list[Finding]:
    """The findings without those that are silent, with their sentences."""
    return [rules()[each.rule].say(each) for each in findings if each.state != SILENT]


def only(findings: list[Finding]) -> Finding:
    """The one finding that is said."""
    findings = said(findings)
    assert len(findings) == 1, [finding.sentence for finding in findings]
    return findings[0]


def scaling(*effs: Triple, **more: Any) -> ExperimentResults:
    """A series over ranks, doubled from 1, with these efficiencies."""
    rows = []
    for i, triple in enumerate(((1.0, None, None), *effs)):
        single = all(one[1] is None for one in (effs if i == 0 else [triple]))
        bounds = (None, None) if single else (9.0, 11.0)
        rows.append(
            {"ranks": 2**i, **value("later", (10.0 * 2**i, *bounds)), **eff("later", triple)}
        )
    return study(rows, ["ranks"], **more)
