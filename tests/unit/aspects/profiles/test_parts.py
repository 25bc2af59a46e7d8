"""The table of parts: means over repeats, shares of all parts, and what a run does not have."""

import pytest
from matplotlib.text import Annotation

from scalesweep.aspects.profiles.figure import function_figures, part_figures
from scalesweep.aspects.profiles.functions import FunctionTime
from scalesweep.aspects.profiles.table import PartTime, part_table
from scalesweep.experiment.results import ExperimentResults
from scalesweep.table.declared import frame_of
from scalesweep.tables.bookkeeping import PARTS, as_text
from tests.fakes.plan import whole_plan
from tests.fakes.rows import study_of


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
    assert shares.name == "parts-share"
    table = part_table(results, 10)
    assert table is not None and len(table.rows) == 2


def test_a_profile_of_no_time_has_no_shares_and_runs_without_one_no_table() -> None:
    (row,) = results_of({1: [{"solve": 0.0}]}).of(PartTime)
    assert row.share is None and row.seconds.value == 0
    results = results_of({1: [None], 2: [None]})
    assert results.tables.get("parts") is None and part_figures(results) == []


def functions_of(points: dict[int, list[tuple[str, str, str, float]]]) -> ExperimentResults:
    """Profiles over ranks with these functions: name, place, kind and own seconds, of which half as
    much is in functions that are not listed."""
    rows = []
    for ranks, functions in points.items():
        for name, place, kind, seconds in functions:
            whole = 1.5 * sum(own for _, _, other, own in functions if other == kind)
            rows.append(
                FunctionTime(
                    point={"ranks": ranks}, run_id=f"r{ranks}.cprofile", profiled_ranks=ranks,
                    function=name, place=place, kind=kind, part=None, calls=1.0, own_s=seconds,
                    total_s=seconds, mean_s=seconds, min_s=None, max_s=None, share=seconds / whole,
                )
            )  # fmt: skip
    runs = [
        {"run_id": f"r{ranks}", "status": "done", "point": {"ranks": ranks}} for ranks in points
    ]
    plan = whole_plan({"experiments": [{"axes": ["ranks"], "runs": runs}]})
    return ExperimentResults(plan["experiments"][0], {"functions": frame_of(rows)})


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
    assert (host.name, gpu.name) == ("functions-host", "functions-gpu")
    ax = host.figure.axes[0]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["1 rank", "2 ranks", "4 ranks"]
    # What lies behind each bar is its sum: functions that no table has included.
    sums = [text.get_text() for text in ax.texts if isinstance(text, Annotation)]
    assert sums == ["12.0", "6.00", "12.0"]
    legend = [text.get_text() for text in gpu.figure.legends[0].get_texts()]
    assert legend == ["Eigen::EigenMetaKernel", "[CUDA memcpy HtoD]", "other"]
    widths = [patch.get_width() for patch in gpu.figure.axes[0].patches]
    assert sum(widths) == pytest.approx(1.5 * 4 + 1.5)
    assert function_figures(functions_of({1: [("train", "", "cpu", 8.0)]})) == []
