"""The best number of threads and by how much: data where it holds and data where it must not."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest

from scalesweep.analysis.stats import mean_interval, ratio_interval
from scalesweep.aspects.comparisons.threads import best_threads
from scalesweep.aspects.find import figure_beginnings
from scalesweep.experiment.results import ExperimentResults
from scalesweep.findings.base import Finding, figure_of

RATE = "total_throughput"
Setting = tuple[int | None, int]

BEGINNINGS = figure_beginnings()


def threads(
    rates: dict[Setting, Sequence[float]],
    default: Setting = (0, 0),
    better: str = "higher",
    unit: str = "threads",
    ranks: Sequence[int] = (1,),
    in_blocks: bool = False,
    **more: Any,
) -> ExperimentResults:
    """Points that vary two numbers of threads (and ranks), with a rate of each repeat."""
    names = ("inter", "intra")
    axes = [*(["ranks"] if len(ranks) > 1 else []), *names]
    points, runs, plan = [], [], []
    for count in ranks:
        for setting, values in rates.items():
            point = {"ranks": count, **dict(zip(names, setting, strict=True))}
            bounds = mean_interval(values)
            points.append({
                **point, "source": "measured", "repeats": len(values), "planned": len(values),
                f"{RATE}_mean_later": float(np.mean(values)),
                f"{RATE}_low_later": bounds.low, f"{RATE}_high_later": bounds.high, **more,
            })  # fmt: skip
            for repeat, value in enumerate(values):
                run_id = f"r{len(runs)}"
                row = {"run_id": run_id, "source": "measured", f"{RATE}_mean_later": value}
                row |= {"repeat": repeat, "started": f"2024-01-01T{10 + repeat}:{len(points):02}"}
                runs.append({**row, **point} | ({} if in_blocks else {"started": None}))
                plan.append({"run_id": run_id, "repeat": repeat, "point": {**point, **more},
                             "status": "done", "cause": "", "detail": ""})  # fmt: skip
    entry = {
        "name": "e", "benchmark": "b", "version": 1, "axes": axes, "fixed": {}, "scaling": "none",
        "scale": "ranks", "scale_parameters": ["ranks"], "work": [], "main_metric": None,
        "metrics": {}, "linked": [], "runs": plan, "excluded": [], "profiles": [], "points": 0,
        "parameters": {
            "ranks": {"unit": "ranks", "default": 1},
            **{n: {"unit": unit, "default": d} for n, d in zip(names, default, strict=True)},
        },
    }  # fmt: skip
    frame = pd.DataFrame(points)
    meaning = {"label": "Rate", "unit": "samples/s", "better": better, "scope": "total"}
    frame.attrs["units"] = {f"{RATE}_mean_later": meaning}
    return ExperimentResults(entry, {"points": frame, "runs": pd.DataFrame(runs)})


def only(findings: list[Finding]) -> Finding:
    assert len(findings) == 1, [finding.text for finding in findings]
    return findings[0]


def around(mean: float, spread: float = 0.01) -> list[float]:
    return [mean * (1 - spread), mean, mean * (1 + spread)]


CLEAR = {(0, 0): around(100), (0, 4): around(120), (2, 0): around(90), (2, 4): around(150)}


def test_best_setting_and_its_ratio_to_the_default() -> None:
    found = only(best_threads(threads(CLEAR)))
    assert found.level == "confirmed"
    assert found.text.startswith("Best thread count: inter 2, intra 4 with 1.50")
    assert "the default (inter 0, intra 0), clear of all 3 others" in found.text
    numbers = found.evidence["numbers"]
    assert numbers["ratio"] == pytest.approx(1.5)
    # Wider than of one comparison alone, as it was chosen among three.
    alone = ratio_interval(CLEAR[2, 4], CLEAR[0, 0])
    assert numbers["ratio_low"] < alone.low < 1.5 < alone.high < numbers["ratio_high"]
    assert found.evidence["key"]["intra"] == 4
    assert found.evidence["runner_up"]["key"]["intra"] == 0


def test_what_cannot_be_told_from_the_best_is_said() -> None:
    rates = {**CLEAR, (0, 4): around(149)}
    found = only(best_threads(threads(rates)))
    assert found.level == "confirmed" and found.text.startswith("Threads matter: inter 2, intra 4")
    assert found.text.endswith("; indistinguishable from 1 other.")


def test_without_a_default_the_next_best_is_the_reference() -> None:
    found = only(best_threads(threads(CLEAR, default=(8, 8))))
    assert "1.25" in found.text and "of the next best (inter 0, intra 4)" in found.text
    found = only(best_threads(threads(CLEAR, default=(2, 4))))
    assert "inter 2, intra 4, the default, with 1.25" in found.text


def test_no_best_setting_where_none_can_be_told() -> None:
    noise = {(0, 0): around(100, 0.1), (0, 4): around(104, 0.1), (2, 0): around(101, 0.1)}
    found = only(best_threads(threads(noise)))
    assert found.level == "open" and "best thread count can be identified" in found.text
    single = {setting: values[:1] for setting, values in CLEAR.items()}
    found = only(best_threads(threads(single)))
    assert found.level == "open" and "a side has one repeat" in found.text


def test_other_parameters_and_one_setting_are_no_threads() -> None:
    assert best_threads(threads(CLEAR, unit="samples")) == []
    assert best_threads(threads({(0, 0): around(100)})) == []


def test_lower_is_better_is_followed() -> None:
    found = only(best_threads(threads(CLEAR, better="lower")))
    assert "inter 2, intra 0 with 0.9" in found.text and found.level == "confirmed"


def test_settings_compare_at_the_same_number_of_ranks() -> None:
    found = best_threads(threads(CLEAR, ranks=(1, 2)))
    assert [f.text.partition(":")[0] for f in found] == [
        "Best thread count at 1 rank",
        "Best thread count at 2 ranks",
    ]


def test_chance_seldom_makes_a_best_setting() -> None:
    draw = np.random.default_rng(5)
    settings = [(inter, intra) for inter in range(4) for intra in range(5)]
    told = 0
    for _ in range(100):
        rates = {one: np.exp(0.05 * draw.standard_normal(3)).tolist() for one in settings}
        told += only(best_threads(threads(rates))).level == "confirmed"
    assert told <= 5


def test_a_finding_links_to_the_figure_of_its_phase() -> None:
    numbers = {f"{RATE}_mean_later": 1.0}
    finding = Finding("e", "efficiency", "confirmed", "x", {"numbers": numbers})
    names: dict[str, Any] = {
        "scaling-init": {}, "scaling-later": {}, "heatmap": {}, "ranks-step": {},
    }  # fmt: skip
    assert figure_of(finding, names, BEGINNINGS) == "scaling-later"
    assert figure_of(finding, {"heatmap": {}}, BEGINNINGS) is None
    assert figure_of(Finding("e", "best", "confirmed", "x", {}), names, BEGINNINGS) == "heatmap"
    named = Finding("e", "stragglers", "confirmed", "x", {"figure": "ranks-step"})
    assert figure_of(named, names, BEGINNINGS) == "ranks-step"
    assert figure_of(Finding("e", "coverage", "note", "x", {}), names, BEGINNINGS) is None


def test_a_finding_links_to_the_figure_of_its_points() -> None:
    def about(rule: str, **evidence: Any) -> Finding:
        return Finding("e", rule, "confirmed", "x", evidence)

    series = [{"points": [{"ranks": r, "mode": mode} for r in (1, 2)]} for mode in "ab"]
    figures: dict[str, Any] = {"scaling-1-run": series[0], "scaling-2-run": series[1]}
    key = {"ranks": 2, "mode": "b", "source": "measured"}
    assert figure_of(about("efficiency", key=key), figures, BEGINNINGS) == "scaling-2-run"
    # A series without a figure of its own is in that of all, or in none.
    other = about("efficiency", key={**key, "mode": "c"})
    assert figure_of(other, figures, BEGINNINGS) is None
    assert figure_of(other, figures | {"overview-run": {}}, BEGINNINGS) == "overview-run"
    planes: dict[str, Any] = {
        f"heatmap{n}": {"where": {"mode": mode}} for n, mode in (("", "a"), ("-2", "b"))
    }
    assert figure_of(about("best", key=key), planes, BEGINNINGS) == "heatmap-2"
    bars: dict[str, Any] = {f"compare-{name}-run": {"parameter": name} for name in ("mode", "xla")}
    assert (
        figure_of(about("best value", key=key, parameter="xla"), bars, BEGINNINGS)
        == "compare-xla-run"
    )
    assert figure_of(about("best value", key=key, parameter="model"), bars, BEGINNINGS) is None
    ranks = {"ranks-step": series[0]}
    assert figure_of(about("stragglers", key=key, figure="ranks-step"), ranks, BEGINNINGS) is None


def test_drift_that_cancels_within_blocks_hides_no_best() -> None:
    # The machine slows down by a third over the campaign; the settings differ by 6 % and more.
    drift = np.array([1.0, 0.9, 0.8, 0.7])
    noise = np.array([[0.0, 4.0, -4.0, 1.0], [3.0, -5.0, 1.0, 2.0], [-3.0, 2.0, 4.0, -4.0]])
    rates = {
        setting: ((level + rest) * drift).tolist()
        for setting, level, rest in zip(
            ((0, 0), (2, 4), (1, 1)), (1000.0, 1080.0, 900.0), noise, strict=True
        )
    }
    (alone,) = best_threads(threads(rates))
    assert alone.level == "open" and "the 95 % interval includes 1" in alone.text
    (within,) = best_threads(threads(rates, in_blocks=True))
    assert within.level == "confirmed" and "1.080 [" in within.text
    assert within.text.startswith("Best thread count: ")  # clear of the third setting too
    numbers = within.evidence["numbers"]
    assert numbers["ratio"] == alone.evidence["numbers"]["ratio"]
    assert 1.05 < numbers["ratio_low"] < numbers["ratio_high"] < 1.11
