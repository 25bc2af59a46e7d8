"""Horovod's timelines: shares of a step, what is said of them, and what is refused."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from scalesweep.aspects.profiles.table import phase_rows, timeline_signs
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
from tests.fakes import finding_rows
from tests.fakes import profiles as fake
from tests.fakes.plan import whole_plan
from tests.fakes.records import profiled_run
from tests.fakes.table_inputs import of_files


def said(shares: dict[str, float]) -> list[Finding]:
    """Of one profiled run at 4 ranks."""
    rows = [
        {"run_id": "x", "ranks": 4, "phase": phase, "ms": 1.0, "steps": 100, "share": share}
        for phase, share in shares.items()
    ]
    runs = [{"run_id": f"r{n}", "repeat": 0, "point": {"ranks": n}} for n in (1, 4)]
    plan = whole_plan({"experiments": [{"name": "e", "axes": ["ranks"], "runs": runs}]})
    study = ExperimentResults(plan["experiments"][0], {"timeline": pd.DataFrame(rows)})
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
    runs = [{"run_id": f"r{n}", "repeat": 0, "point": {"ranks": n}} for n in (2, 4)]
    plan = whole_plan(
        {"experiments": [{"name": "e", "axes": ["ranks"], "runs": runs, "profiles": profiles}]}
    )
    (entry,) = plan["experiments"]
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
    assert shown["label"] == "Timeline"
    share = [heading.text for heading in shown["headings"]].index("Share")
    assert shown["rows"][0][share].text == "2.5 %"
    # A damaged file is named, the others are there.
    folder = tmp_path / "b-r2.horovod_timeline" / "attempt-1" / "profile"
    (folder / "horovod_timeline.json").write_text(fake.timeline(6).replace('"B"', '"E"', 1))
    left = frame_of(phase_rows(of_files(entry, tmp_path, unread)))
    assert len(left) == 6
    assert unread == ["b-r2.horovod_timeline"]
