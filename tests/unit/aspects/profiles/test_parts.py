"""Profiles of other tools: parts, functions, and Horovod's timelines with what is said of them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.text import Annotation

from scalesweep.aspects.profiles.figure import function_figures, part_figures
from scalesweep.aspects.profiles.functions import FunctionTime
from scalesweep.aspects.profiles.table import PartTime, part_table, phase_rows, timeline_signs
from scalesweep.core.plan_format import PlanExperiment
from scalesweep.experiment.results import ExperimentResults
from scalesweep.findings.base import Finding
from scalesweep.importers.profiles.horovod_timeline import (
    COPIES,
    IDLE,
    NEGOTIATION,
    QUEUE,
    REDUCTION,
    WAIT,
    read_timeline,
    timeline_rows,
)
from scalesweep.report.page_tables import profile_tables
from scalesweep.table.declared import frame_of
from scalesweep.tables.bookkeeping import PARTS, as_text
from tests.fakes import finding_rows
from tests.fakes import profiles as fake
from tests.fakes.plan import whole_plan
from tests.fakes.records import profiled_run
from tests.fakes.rows import study_of
from tests.fakes.table_inputs import of_files


def results_of(points: dict[int, list[dict[str, float] | None]]) -> ExperimentResults:
    """An experiment over ranks whose runs have these seconds by part."""
    rows = [
        ({"ranks": ranks}, [{"source": "imported", PARTS: as_text(parts)} for parts in repeats])
        for ranks, repeats in points.items()
    ]
    return study_of(rows)


def test_parts_are_means_over_the_repeats_with_intervals() -> None:
    results = results_of(
        {1: [{"solve": 3.0, "other": 1.0}, {"solve": 5.0, "other": 1.0}, None], 2: [{"io": 2.0}]}
    )
    rows = {(row.point["ranks"], row.part): row for row in results.of(PartTime)}
    assert [part for ranks, part in rows if ranks == 1] == ["io", "solve", "other"]
    solve = rows[1, "solve"]
    assert (solve.runs, solve.repeats, solve.seconds.value) == (2, 3, 4.0)
    assert solve.seconds.low is not None and solve.seconds.low < 4.0
    assert solve.share.value == pytest.approx((3 / 4 + 5 / 6) / 2)
    # What no profile of a point lists took none of its time.
    assert rows[1, "io"].seconds.value == 0 and rows[1, "io"].seconds.low is None
    assert rows[2, "io"].share is not None and rows[2, "io"].share.low is None

    (shares,) = part_figures(results)
    largest = shares.panels[0].frame.nlargest(1, "value").iloc[0]
    assert (largest["part"], largest["label"]) == ("io", "2 ranks")
    assert len(part_table(results, 10).rows) == 2


def test_a_profile_of_no_time_has_no_shares_and_runs_without_one_no_table() -> None:
    (row,) = results_of({1: [{"solve": 0.0}]}).of(PartTime)
    assert row.share is None and row.seconds.value == 0
    results = results_of({1: [None], 2: [None]})
    assert results.tables.get("parts") is None and part_figures(results) == []


def entry_of(ranks: Sequence[int], **more: Any) -> PlanExperiment:
    """An experiment of the plan with a run of each number of ranks."""
    runs = [{"run_id": f"r{n}", "point": {"ranks": n}} for n in ranks]
    plan = whole_plan({"experiments": [{"name": "e", "axes": ["ranks"], "runs": runs, **more}]})
    return plan["experiments"][0]


def functions_of(points: dict[int, list[tuple[str, str, str, float]]]) -> ExperimentResults:
    """Profiles over ranks with these functions: name, place, kind and own seconds, of which half as
    much is in functions that are not listed."""
    rows = [
        FunctionTime(
            point={"ranks": ranks}, run_id=f"r{ranks}.cprofile", profiled_ranks=ranks,
            function=name, place=place, kind=kind, part=None, calls=1.0, own_s=own, total_s=own,
            mean_s=own, min_s=None, max_s=None,
            share=own / 1.5 / sum(each[3] for each in functions if each[2] == kind),
        )
        for ranks, functions in points.items()
        for name, place, kind, own in functions
    ]  # fmt: skip
    return ExperimentResults(entry_of([*points]), {"functions": frame_of(rows)})


def test_functions_over_the_scale() -> None:
    eigen = "void Eigen::EigenMetaKernel<Eigen::{}>(int)"
    results = functions_of(
        {
            4: [("train", "nt3/run.py:7", "cpu", 2.0), ("wait", "", "cpu", 6.0),
                ("call", "", "api", 99.0)],
            1: [("train", "nt3/run.py:7", "cpu", 8.0), ("[CUDA memcpy HtoD]", "", "copy", 1.0),
                (eigen.format("A"), "", "kernel", 2.0), (eigen.format("B"), "", "kernel", 1.0)],
            2: [("train", "nt3/run.py:7", "cpu", 4.0), (eigen.format("A"), "", "kernel", 1.0)],
        }
    )  # fmt: skip
    host, gpu = function_figures(results)
    # What lies behind each bar is its sum: functions that no table has included.
    (ax,) = host.figure.axes
    sums = [text.get_text() for text in ax.texts if isinstance(text, Annotation)]
    assert sums == ["12.0", "6.00", "12.0"]  # at 1, 2 and 4 ranks
    legend = [text.get_text() for text in gpu.figure.legends[0].get_texts()]
    assert legend == ["Eigen::EigenMetaKernel", "[CUDA memcpy HtoD]", "other"]
    assert function_figures(functions_of({1: [("train", "", "cpu", 8.0)]})) == []


# --- Horovod's timelines ---


def said(shares: dict[str, float]) -> list[Finding]:
    """Of one profiled run at 4 ranks."""
    rows = [
        {"run_id": "x", "ranks": 4, "phase": phase, "ms": 1.0, "steps": 100, "share": share}
        for phase, share in shares.items()
    ]
    study = ExperimentResults(entry_of([1, 4]), {"timeline": pd.DataFrame(rows)})
    return finding_rows.said(timeline_signs(study))


CALM = {NEGOTIATION: 0.02, QUEUE: 0.01, WAIT: 0.01, COPIES: 0.05, REDUCTION: 0.05, IDLE: 0.9}


@pytest.mark.parametrize(
    ("phase", "words"),
    [
        (NEGOTIATION, "a rank arrives late"),
        (QUEUE, "calls are small and many"),
        (WAIT, "the device still computes the gradient"),
        (REDUCTION, "reduction takes 40.0 % of a step; the network binds"),
    ],
)
def test_the_phase_that_takes_most_is_named_and_no_other(phase: str, words: str) -> None:
    assert said(CALM) == said(CALM | {phase: np.nan}) == []
    (finding,) = said(CALM | {phase: 0.4})
    assert finding.state == "note" and words in finding.sentence
    assert finding.sentence.startswith("Horovod's timeline at 4 ranks: ")
    other = REDUCTION if phase != REDUCTION else NEGOTIATION
    (finding,) = said(CALM | {phase: 0.2, other: 0.6})
    assert words not in finding.sentence


def test_the_table_is_made_of_the_files_of_profiled_runs(tmp_path: Path) -> None:
    files = {"horovod_timeline.json": fake.timeline(6).encode()}
    profiles = [profiled_run(tmp_path, f"b-r{n}.horovod_timeline", n, files) for n in (2, 4)]
    entry = entry_of([2, 4], profiles=profiles)
    unread: list[str] = []
    table = frame_of(phase_rows(of_files(entry, tmp_path, unread)))
    assert len(table) == 2 * 6
    found = table[table["phase"] == REDUCTION]
    assert found["ms"].tolist() == pytest.approx([0.51, 0.51])
    # Of 10,000 us: negotiations 0-150 and 500-600; calls 200-510 and 700-900.
    idle = table[table["phase"] == IDLE]["share"].tolist()
    assert idle == pytest.approx(2 * [1 - (150 + 100 + 320 + 210) / 10_000], abs=2e-3)
    assert timeline_rows(read_timeline(fake.timeline(steps=2))) == []  # too few
    assert table[table["phase"] == QUEUE]["share"].isna().all()
    (shown,) = profile_tables(ExperimentResults(entry, {"timeline": table}), 1000)
    assert shown["label"] == "Timeline" and "2.5 %" in [it.text for it in shown["rows"][0]]
    # A damaged file is named, the others are there.
    folder = tmp_path / "b-r2.horovod_timeline" / "attempt-1" / "profile"
    (folder / "horovod_timeline.json").write_text(fake.timeline(6).replace('"B"', '"E"', 1))
    assert len([*phase_rows(of_files(entry, tmp_path, unread))]) == 6
    assert unread == ["b-r2.horovod_timeline"]
