"""What is read against what training consumes: table, sentence, figure, and its error rate."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from scalesweep.aspects.make_tables import make_tables
from scalesweep.aspects.reading.demand import Demand
from scalesweep.aspects.reading.demand_figure import demand_figures
from scalesweep.aspects.reading.demand_findings import input_bound
from scalesweep.core.plan_format import Plan, write_plan_file
from scalesweep.experiment.results import ExperimentResults
from scalesweep.findings.base import CONFIRMED, NOTE, OPEN, Finding
from scalesweep.tables.machine import known_machine
from scalesweep.tables.summary import write_summary
from tests.fakes.plan import whole_plan

Rates = Mapping[int, float]
SHAPE = [128, 128, 128, 4]
PARAMETERS = {"sample_shape": {"workload": True}, "batch_size": {}}
# One rank a node reads 2.1 samples/s, less from 64 on; training takes 3.7 each, from memory.
READ = {1: 2.1, 16: 33.0, 64: 119.0, 256: 380.0}
USED = {16: 30.0, 64: 238.0, 256: 950.0}


def campaign(
    read: Rates, used: Rates, noise: float = 0.01, seed: int = 1, repeats: int = 4,
    training: Mapping[str, Any] | None = None,
) -> tuple[pd.DataFrame, Plan]:  # fmt: skip
    draw, rows = np.random.default_rng(seed), []

    def runs(rates: Rates, benchmark: str, first: float, **point: Any) -> list[dict[str, Any]]:
        made = []
        for ranks, rate in rates.items():
            for repeat in range(repeats):
                run_id = f"r{len(rows)}"
                made.append({"run_id": run_id, "repeat": repeat, "status": "done",
                             "point": {"ranks": ranks, **point}})  # fmt: skip
                value = rate * (1 + noise * draw.standard_normal())
                rows.append({"run_id": run_id, "benchmark": benchmark, "source": "measured",
                             "samples": 320 * ranks, "started": None, "warnings": None,
                             "repeat": repeat, "total_throughput_mean_init": value * first,
                             "total_throughput_mean_later": value * (2 - first)})  # fmt: skip
        return made

    fixed = {"ranks_per_node": 1, "batch_size": 4, "sample_shape": SHAPE}
    dummy = runs(used, "cosmoflow_training", 1, input="dummy")
    files = runs(dict.fromkeys(used, 1.0), "cosmoflow_training", 1, input="tfrecords")
    plan = whole_plan({"experiments": [
        {"name": "io", "benchmark": "data_loading", "axes": ["ranks"], "scaling": "weak",
         "runs": runs(read, "data_loading", 1), "parameters": PARAMETERS,
         "fixed": {**fixed, "drop_page_cache": True}},
        {"name": "train", "benchmark": "cosmoflow_training", "axes": ["ranks", "input"],
         "runs": [*dummy, *files], "parameters": PARAMETERS,
         "fixed": {**fixed, **(training or {})}},
    ]})  # fmt: skip
    return pd.DataFrame(rows), plan


def study(summary: pd.DataFrame, plan: Plan) -> ExperimentResults:
    tables = make_tables(summary, plan, machine=known_machine(summary, plan))
    return ExperimentResults(plan["experiments"][0], tables["io"])


def said(*arguments: Any, **changes: Any) -> Finding:
    (finding,) = input_bound(study(*campaign(*arguments, **changes)))
    return finding


def test_from_which_count_on_training_waits() -> None:
    results = study(*campaign(READ, USED))
    rows = [row for row in results.of(Demand) if row.phase == "init"]
    # Only where both are measured; the runs that read files are no measure of the demand.
    assert [row.row["ranks"] for row in rows] == [16, 64, 256]
    assert [row.factor.value for row in rows if row.factor] == pytest.approx(
        [30 / 33, 2, 2.5], rel=0.03
    )
    (finding,) = input_bound(results)
    assert finding.level == CONFIRMED
    assert finding.text.startswith("Input-bound from 64 ranks on: 1")
    assert "training consumes 239 [" in finding.text and "a factor of 1.99" in finding.text
    assert "a factor of 2.5" in finding.text and "at 256 ranks" in finding.text
    assert "first epoch, against training on dummy input (train)" in finding.text
    (drawing,) = demand_figures(results)
    assert "3 lines over 3 counts" in drawing.alt


@pytest.mark.parametrize(
    ("read", "used", "level", "words"),
    [
        ({1: 40.0, 4: 150.0}, {1: 20.0, 4: 80.0}, CONFIRMED, "reading keeps up at the 2 counts"),
        ({1: 10.0, 4: 40.0}, {1: 20.0, 4: 80.0}, CONFIRMED, "input-bound at each of the 2 counts"),
        ({4: 40.0}, {4: 80.0}, CONFIRMED, "input-bound at 4 ranks: "),
        ({1: 10.0, 4: 40.0}, {1: 20.0, 4: 40.0}, OPEN, "clearly not at 1 rank)"),
    ],
)
def test_where_reading_keeps_up_or_nothing_is_clear(
    read: Rates, used: Rates, level: str, words: str
) -> None:
    finding = said(read, used)
    assert finding.level == level and words.lower() in finding.text.lower()


def test_what_differs_is_said_and_other_samples_are_refused() -> None:
    batch = said(READ, USED, training={"batch_size": 2, "epochs": 9})
    assert batch.level == CONFIRMED
    assert batch.text.endswith("; the two differ in batch_size 4 and 2.")
    small = said(READ, USED, training={"sample_shape": [64, 64, 64, 4]})
    assert small.level == NOTE and "a factor" not in small.text
    assert "sample_shape 128 x 128 x 128 x 4 and 64 x 64 x 64 x 4" in small.text
    assert said(READ, USED, repeats=1).level == OPEN
    # Other nodes for as many ranks, and counts of one side alone: nothing to compare.
    assert not input_bound(study(*campaign(READ, USED, training={"ranks_per_node": 4})))
    assert not input_bound(study(*campaign({1: 2.0}, {2: 4.0})))


def test_variants_of_reading_at_one_count_are_not_counts() -> None:
    """Each has a sentence that names it: one is fast enough, the other is not."""
    summary, plan = campaign({4: 2.0}, {4: 4.0}, repeats=8)
    entry = plan["experiments"][0]
    for place, run in enumerate(entry["runs"]):
        shuffle, run["repeat"] = "off" if place < 4 else "each_epoch", place % 4
        run["point"] = {**run["point"], "shuffle": shuffle}
        row = summary["run_id"] == run["run_id"]
        summary.loc[row, "repeat"] = place % 4
        summary.loc[row, "total_throughput_mean_init"] *= 4 if shuffle == "off" else 1
    entry["axes"], entry["fixed"] = ["shuffle"], {**entry["fixed"], "ranks": 4}
    results = study(summary, plan)
    texts = [finding.text for finding in input_bound(results)]
    assert [text.partition(": ")[0] for text in texts] == ["Shuffle off", "Shuffle each_epoch"]
    assert "reading keeps up at the 1 count measured in both" in texts[0]
    assert "input-bound at 4 ranks: " in texts[1] and "a factor of 1.99" in texts[1]
    assert not demand_figures(results)  # a line through one count


def test_combinations_without_a_sentence_are_counted() -> None:
    summary, plan = campaign({4: 2.0}, {4: 4.0}, repeats=12)
    entry = plan["experiments"][0]
    for place, run in enumerate(entry["runs"]):
        run["point"] = {**run["point"], "buffer": place // 2}
        run["repeat"] = place % 2
        summary.loc[summary["run_id"] == run["run_id"], "repeat"] = place % 2
    entry["axes"], entry["fixed"] = ["buffer"], {**entry["fixed"], "ranks": 4}
    *sentences, note = input_bound(study(summary, plan))
    assert len(sentences) == 4 and all("input-bound" in each.text for each in sentences)
    assert note.text.startswith("2 more combinations of reading and training: only in the table")
    assert note.level == NOTE and not note.claims


def test_what_differs_at_some_counts_is_said_with_them() -> None:
    summary, plan = campaign({1: 2.0, 4: 8.0, 16: 32.0}, {1: 4.0, 4: 16.0, 16: 64.0})
    entry = plan["experiments"][0]
    for run in entry["runs"]:
        run["point"] = {**run["point"], "batch_size": 64 // run["point"]["ranks"]}
    entry["axes"] = ["ranks", "batch_size"]
    (finding,) = input_bound(study(summary, plan))
    words = "batch_size 64 and 4 at 1 rank and batch_size 16 and 4 at 4 ranks"
    assert finding.level == CONFIRMED and f"; the two differ in {words}." in finding.text


def test_the_training_of_another_results_folder(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    others, plan = campaign({}, USED)
    write_plan_file(tmp_path / "plan.json", plan)
    write_summary(others, tmp_path / "summary.parquet")
    summary, own = campaign(READ, {})
    assert not input_bound(study(summary, own))
    own["consumer"] = str(tmp_path)
    (finding,) = input_bound(study(summary, own))
    assert f"(train of {tmp_path})" in finding.text and finding.level == CONFIRMED
    write_plan_file(tmp_path / "plan.json", {**plan, "site": "elsewhere"})
    assert not input_bound(study(summary, own))
    assert "of site elsewhere, not here: reading is not held against it" in caplog.text


@pytest.mark.slow
def test_how_often_a_bound_is_claimed_where_rates_are_equal() -> None:
    """In 5 % of campaigns of four counts; six of 40 would be rare. Before Holm's procedure."""
    equal: Sequence[int] = (1, 4, 16, 64)
    rates = {ranks: 2.0 * ranks for ranks in equal}
    wrong = sum(
        said(rates, rates, noise=0.05, seed=seed, repeats=3).level == CONFIRMED
        for seed in range(40)
    )
    assert wrong <= 5
