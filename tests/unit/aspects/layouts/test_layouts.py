"""Studies of layouts: the best of each scale, what failed, and a ranking at other scales."""

from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from scalesweep.analysis.factors import layout_followers
from scalesweep.analysis.layout_cost import Layout
from scalesweep.aspects.find import find
from scalesweep.aspects.layouts.figure import layout_figures
from scalesweep.aspects.layouts.ranking import Bar, ranking_text
from scalesweep.aspects.layouts.section import layout_card, layout_table
from scalesweep.aspects.layouts.table import BestLayout, LayoutPoint, best_layout, failed_layouts
from scalesweep.experiment.results import ExperimentResults
from scalesweep.findings.base import CLEAR, HOLES, NOTE, OPEN
from tests.fakes.finding_rows import only, said
from tests.fakes.imported_table import imported

HEAD = "gpus,model,tp,pp,mbs,status,rate,memory,mfu\n"
MAP: dict[str, Any] = {
    "name": "layouts",
    "parameters": {
        "ranks": {"column": "gpus"},
        "model": {"column": "model", "workload": True},
        "dp": {"formula": "gpus / (tp * pp)", "derive": "ranks // (tp * pp)"},
        "tp": {"column": "tp"},
        "pp": {"column": "pp"},
        "mbs": {"column": "mbs"},
    },
    "metrics": {
        "rate": {"column": "rate", "unit": "tokens/s", "better": "higher", "scope": "rank"},
        "memory": {"column": "memory", "unit": "GB", "better": "lower", "scope": "rank"},
        "mfu_unstated": {"formula": "mfu / 100", "unit": "1", "better": "higher", "scope": "rank"},
    },
    "failed": {"column": "status", "values": {"oom": "GPU_OUT_OF_MEMORY", "hang": "HANG"}},
    "mesh": {"dp": "dp", "tp": "tp", "pp": "pp"},
    "scale": "gpus",
    "scaling": "strong",
}
ROWS = (
    "8,a,1,1,4,ok,100,60,40\n8,a,2,1,4,ok,90,40,36\n8,a,4,1,4,ok,80,45,32\n8,a,1,2,4,oom,,,\n"
    "8,a,2,2,4,hang,,,\n16,a,1,1,4,oom,,,\n16,a,1,1,2,ok,60,50,24\n16,a,2,1,4,ok,80,30,32\n"
    "16,a,4,1,4,ok,40,20,16\n32,a,1,1,2,oom,,,\n32,a,2,1,4,oom,,,\n"
    "8,b,1,1,4,oom,,,\n8,b,2,1,4,oom,,,\n"
)


def study(folder: Path, rows: str, **changed: Any) -> ExperimentResults:
    _, entry, tables = imported(folder, HEAD + rows, MAP | changed)
    return ExperimentResults(entry, tables)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> ExperimentResults:
    return study(tmp_path_factory.mktemp("small"), ROWS)


def test_the_best_of_each_scale(small: ExperimentResults) -> None:
    assert "dp" not in small.entry["axes"]  # which follows
    rows = {(row.setting, row.scale): row for row in small.of(BestLayout)}
    first, second, none = (rows["model a", scale] for scale in (8, 16, 32))
    assert (first.layout, first.next_layout) == (
        "dp 8 x tp 1 x pp 1, mbs 4", "dp 4 x tp 2 x pp 1, mbs 4"
    )  # fmt: skip
    assert first.ahead and first.ahead.value == pytest.approx(100 / 90) and not first.ahead.known
    assert (first.median, first.ran, first.tried, first.failed) == (pytest.approx(0.9), 3, 5, 2)
    assert (first.memory, first.utilisation) == (60, 0.4)
    assert first.p is None and second.layout == "dp 8 x tp 2 x pp 1, mbs 4"
    for nothing in (none, rows["model b", 8]):
        assert (nothing.layout, nothing.ran, nothing.value) == (None, 0, None)
        assert nothing.failed == nothing.tried == 2


def test_shares_and_the_front_of_memory(small: ExperimentResults) -> None:
    ran = [row for row in small.of(LayoutPoint) if row.scale == 8]
    # (rate, memory): 80 at 45 is beaten by 90 at 40.
    assert [(row.share, row.memory, row.front) for row in ran] == [
        (1.0, 60, True), (0.9, 40, True), (0.8, 45, False)
    ]  # fmt: skip
    table = layout_table(small, 100)
    assert table is not None and len(table.sources) == 6


def test_single_runs_confirm_no_best_layout(small: ExperimentResults) -> None:
    _, best = said(best_layout(small))
    assert (best.state, best.reason) == (OPEN, "single runs: it may be chance")
    assert best.sentence == (
        "Best layout of model a at 8 gpus: dp 8 x tp 1 x pp 1, mbs 4 with 100 tokens/s, "
        "11.1 % ahead of the next."
    )
    assert best.next.endswith(": dp 8 x tp 1 x pp 1, mbs 4; dp 4 x tp 2 x pp 1, mbs 4")
    assert [(finding.state, finding.sentence) for finding in said(failed_layouts(small))] == [
        (NOTE, "5 of 11 layouts of model a failed, at 8 gpus, 16 gpus and 32 gpus: "
               "GPU_OUT_OF_MEMORY and HANG."),
        (NOTE, "2 of 2 layouts of model b failed, at 8 gpus: GPU_OUT_OF_MEMORY."),
    ]  # fmt: skip


def card_of(results: ExperimentResults) -> tuple[list[str], list[list[str]]]:
    """Headings and lines of the table on the first screen."""
    card = layout_card(results, find(results))
    head, *rows = [[cell.text for cell in line]
                   for line in (card["table"]["headings"], *card["table"]["rows"])]  # fmt: skip
    return head, rows


def test_the_first_screen_has_a_line_for_each_scale(small: ExperimentResults) -> None:
    head, (first, _, none, other) = card_of(small)
    assert dict(zip(head[:6], first, strict=False)) == {
        "Setting": "model a", "gpus": "8", "Best layout": "dp 8 x tp 1 x pp 1, mbs 4",
        "Rate [tokens/s]": "100", "MFU unstated": "40.0 %", "Memory [GB]": "60.0",
    }  # fmt: skip
    assert first[-1] == "2 of 5 (GPU_OUT_OF_MEMORY 1, HANG 1)"
    assert none[:4] == ["model a", "32", "none ran", "–"] and other[:2] == ["model b", "8"]
    assert len(none) == len(head)


def test_data_parallel_ranks_and_accumulation_follow(tmp_path: Path) -> None:
    table = (
        "gpus,dp,tp,mbs,acc,rate\n8,8,1,2,4,100\n8,4,2,2,8,80\n16,16,1,2,2,180\n16,8,2,2,4,170\n"
    )
    names = {"ranks": "gpus", "dp": "dp", "tp": "tp", "mbs": "mbs", "acc": "acc"}
    known = {
        "name": "e", "parameters": {name: {"column": column} for name, column in names.items()},
        "metrics": {"rate": MAP["metrics"]["rate"]}, "mesh": {"dp": "dp", "tp": "tp"},
        "transformer": {"layers": "4", "width": "64", "sequence": "16", "accumulation": "acc",
                        "micro_batch": "mbs"},
    }  # fmt: skip
    _, entry, tables = imported(tmp_path, table, known)
    assert layout_followers(entry) == ["dp", "acc"]
    best = {row.scale: row for row in ExperimentResults(entry, tables).of(BestLayout)}
    assert best[16].layout == "dp 16 x tp 1"
    # Without the ranks that they follow, nothing follows.
    assert layout_followers({**entry, "mesh": {}}) == []


def repeated(values: dict[tuple[int, int], list[float]]) -> str:
    """Rows of layouts by scale and tp, one for each repeat."""
    return "".join(
        f"{gpus},a,{tp},1,4,ok,{rate},{50 + place},30\n"
        for (gpus, tp), rates in values.items()
        for place, rate in enumerate(rates)
    )


def test_repeats_tell_the_best(tmp_path: Path) -> None:
    rows = {
        (8, 1): [100, 101, 99.5], (8, 2): [90, 90.5, 89.7], (8, 4): [70, 70.2, 69.9],
        (16, 1): [60, 61, 59.2], (16, 2): [60.5, 59.4, 60.4], (16, 4): [50, 50.4, 49.8],
    }  # fmt: skip
    results = study(tmp_path, repeated(rows))
    by_scale = {row.scale: row for row in results.of(BestLayout)}
    first, second = (by_scale[scale] for scale in (8, 16))
    assert first.ahead and first.ahead.low and first.ahead.high and first.p is not None
    assert 1.05 < first.ahead.low < 100.2 / 90.1 < first.ahead.high and first.p < 0.01
    # Two that differ by noise alone.
    assert second.ahead and second.ahead.low and second.ahead.low < 1
    assert second.p is not None and second.p > 0.2
    clear, close = said(best_layout(results))
    assert (clear.state, close.state) == (CLEAR, OPEN)
    assert "with 100 [98, 102]" in clear.sentence and ", 11 [9" in clear.sentence
    (judged,) = [f for f in find(results) if f.rule == "best layout" and f.state == CLEAR]
    assert judged.evidence["scale"] == 8


def test_a_best_layout_of_which_runs_failed_says_so(tmp_path: Path) -> None:
    rows = "4,a,1,1,4,ok,9,5,4\n4,a,2,1,4,ok,8,5,4\n8,a,1,1,4,ok,100,5,40\n8,a,2,1,4,ok,90,5,40\n"
    results = study(tmp_path, f"{rows}8,a,1,1,4,oom,,,\n8,a,1,1,4,hang,,,\n8,a,2,1,4,oom,,,\n")
    row = results.of(BestLayout)[1]
    assert (row.runs_failed, row.failed) == (2, 0)
    flags = [finding.flags for finding in find(results) if finding.rule == "best layout"]
    assert flags == [("imported", HOLES), ("imported",)]
    assert [line[-1] for line in card_of(results)[1]] == ["–", "of the best 2 of 3 runs"]


def test_ties_a_layout_alone_and_no_memory(tmp_path: Path) -> None:
    rows = "8,a,1,1,4,ok,50,,\n8,a,2,1,4,ok,50,,\n16,a,1,1,4,ok,40,,\n16,a,2,1,4,oom,,,\n"
    results = study(tmp_path, rows)
    tie, alone = results.of(BestLayout)
    assert tie.ahead and tie.ahead.value == 1 and (tie.memory, tie.utilisation) == (None, None)
    assert (alone.ran, alone.next_layout, alone.ahead, alone.median) == (1, None, None, 1)
    assert "0.0 % ahead of the next" in only(best_layout(results)).sentence
    assert [drawing.name for drawing in layout_figures(results)] == ["layouts-scale"]
    assert all(row.front is None for row in results.of(LayoutPoint))


def test_of_times_the_shortest_is_the_best(tmp_path: Path) -> None:
    seconds = {"column": "rate", "unit": "s", "better": "lower", "scope": "total"}
    rows = "8,a,1,1,4,ok,2,,\n8,a,2,1,4,ok,1,,\n8,a,4,1,4,ok,4,,\n"
    metrics = {"step": seconds, "memory": MAP["metrics"]["memory"]}
    results = study(tmp_path, rows, metrics=metrics, scaling="none")
    (best,) = results.of(BestLayout)
    assert best.layout is not None and best.layout.startswith("dp 4 x tp 2")
    assert best.ahead and (best.ahead.value, best.median) == (2, 0.5)
    assert [row.share for row in results.of(LayoutPoint)] == [1, 0.5, 0.25]


def test_one_mesh_for_each_scale_is_no_study_of_layouts(tmp_path: Path) -> None:
    rows = "8,a,1,1,4,ok,10,1,1\n8,a,1,1,8,ok,11,1,1\n16,a,1,1,4,ok,10,1,1\n16,a,1,1,8,ok,9,1,1\n"
    results = study(tmp_path, rows)
    assert not results.of(BestLayout) and best_layout(results) == []
    assert layout_table(results, 10) is None and layout_card(results, []) is None


# The ranking of layouts at ranks at which none was run.
BASE = Layout(dp=2, tp=1, pp=1, micro_batch=1, accumulation=24, per_node=4, layers=4)


def ranked(ranks: int, bar: Bar | None = None) -> str:
    """From splits of 4 and 8 ranks into dp, tp and pp, of which tp costs most."""
    runs = {}
    for of, tp, pp, micro_batch in product((4, 8), (1, 2), (1, 2, 4), (1, 2)):
        if dp := of // (tp * pp):
            accumulation = 48 // (dp * micro_batch)
            layout = replace(
                BASE, dp=dp, tp=tp, pp=pp, micro_batch=micro_batch, accumulation=accumulation
            )
            turns = accumulation + pp - 1
            runs[layout] = turns * micro_batch / (tp * pp) * (1 + tp / 2) + 0.1
    return ranking_text(runs, ranks, "samples/s", False, bar)


def test_layouts_that_cannot_run_are_left_out_and_counted() -> None:
    lines = ranked(16, lambda layout: "too large" if layout.pp == 1 else "").splitlines()
    assert lines[-1] == "left out: 3 layouts: too large"
    rates = [float(line.split()[-2].replace(",", "")) for line in lines[1:-1]]
    assert len(rates) > 2 and rates == sorted(rates, reverse=True)
    assert not any("pp=1" in line for line in lines)


def test_without_a_memory_model_the_ranking_says_so() -> None:
    text = ranked(16)
    assert " tp=1 " in text.splitlines()[1] and "fit into memory is not known" in text
    assert "the last such ranking" not in text


def test_where_nothing_can_run_it_is_refused() -> None:
    assert "no further layout of 16 ranks" in ranked(16, lambda _: "no")
    assert "more than 4 times" in ranked(64)
