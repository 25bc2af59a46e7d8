"""Predictions kept when they are made and scored once measured."""

import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest

from scalesweep.analysis.table_io import read_table
from scalesweep.aspects.prediction.findings import prediction
from scalesweep.aspects.prediction.forecasts import KEPT, keep_predictions, read_kept
from scalesweep.aspects.prediction.section import SECTION
from scalesweep.core.plan_format import read_plan
from scalesweep.experiment.load import load_results
from scalesweep.report.export_tables import write_all
from tests.fakes.finding_rows import said
from tests.fakes.results import SITE, Fake, make_results


def weak(most: int, slow: float = 1.0) -> Fake:
    return Fake(
        "weak", {"ranks": [2**k for k in range(most)]}, "weak", predict=[64, 128], repeats=2,
        speed=lambda point: slow if point["ranks"] >= 64 else 1.0,
    )  # fmt: skip


def write(root: Path, fake: Fake) -> Path:
    make_results(root, [fake])
    plan, summary = read_plan(root / "plan.json"), read_table(root / "summary.parquet")
    write_all(summary, plan, root / "runs" / SITE, root / "tables")
    return root / "tables" / "weak"


@pytest.mark.slow
def test_a_prediction_is_kept_once_and_scored_when_it_is_measured(tmp_path: Path) -> None:
    folder = write(tmp_path, weak(6))
    kept = read_kept(tmp_path / KEPT)
    assert [(one["point"]["ranks"], one["phase"]) for one in kept] == [
        (64, "init"), (128, "init"), (64, "later"), (128, "later"),
    ]  # fmt: skip
    assert not (folder / "forecasts.parquet").exists()
    write(tmp_path, weak(6))
    assert read_kept(tmp_path / KEPT) == kept

    # 64 ranks are measured, and are slower than anything before lets expect.
    folder = write(tmp_path, weak(7, slow=0.8))
    table = read_table(folder / "forecasts.parquet")
    assert table["ranks"].tolist() == [64, 64] and table["phase"].tolist() == ["init", "later"]
    assert table["largest"].tolist() == [32, 32]
    assert not table["hit"].any()
    assert table["error"].between(-0.25, -0.15).all()
    assert table["predicted"].tolist() == [kept[0]["value"], kept[2]["value"]]
    # The earlier prediction of 128 ranks stays, and there is another from 7 counts.
    again = read_kept(tmp_path / KEPT)
    assert again[:4] == kept
    assert [(one["point"]["ranks"], one["points"]) for one in again[4:]] == [(128, 7), (128, 7)]
    entry = read_plan(tmp_path / "plan.json")["experiments"][0]
    study = load_results(entry, tmp_path / "tables")
    texts = [one.sentence for one in said(prediction(study))]
    assert texts[-1].startswith("0 of 2 predictions measured since lay within their interval")

    assert SECTION.notes(study)[1].startswith("Of 2 predictions measured since, 0 lay within 95 %")
    shown = SECTION.table(study, 10)
    assert shown and [cell.text[:5] for cell in shown.rows[0][:3]] == ["128", "–", "Total"]

    # Now as expected.
    shutil.rmtree(tmp_path / "runs")
    folder = write(tmp_path, weak(7))
    assert read_table(folder / "forecasts.parquet")["hit"].all()


def test_damaged_lines_are_left_out_and_nothing_is_lost(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write(tmp_path, weak(6))
    path = tmp_path / KEPT
    whole = path.read_text()
    half = whole.splitlines()[0][:50]
    path.write_text(whole + '[1]\n{"point": 3}\n' + half)
    assert len(read_kept(path)) == 4
    assert "line 5 is no prediction" in caplog.text and "line 7" in caplog.text
    path.write_text("".join(f"{line}\n" for line in whole.splitlines()[1:]))
    experiments = read_plan(tmp_path / "plan.json")["experiments"]
    now = datetime(2026, 1, 2, tzinfo=UTC)
    assert keep_predictions(experiments, tmp_path / "tables", path, now) == 1
    kept = read_kept(path)
    assert len(kept) == 4 and kept[-1]["made"] == "2026-01-02T00:00:00+00:00"
