"""Horovod's timelines: shares of a step, the maintainers' rules both ways, and what is refused."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from scalesweep.analysis.horovod_timeline import (
    COPIES,
    IDLE,
    NEGOTIATION,
    PHASES,
    QUEUE,
    REDUCTION,
    WAIT,
    read_timeline,
    timeline_rows,
)
from scalesweep.aspects.profiles.findings import timeline_signs
from scalesweep.aspects.profiles.timeline import phase_rows
from scalesweep.core.record import write_record
from scalesweep.experiment.results import ExperimentResults
from scalesweep.findings.base import Finding
from scalesweep.report.profiles_section import profiles_section
from scalesweep.table.declared import frame_of
from tests.fakes import finding_rows
from tests.fakes import profiles as fake
from tests.fakes.plan import whole_plan
from tests.fakes.records import make_record
from tests.fakes.table_inputs import of_files


def test_shares_are_unions_over_the_steps_after_the_first() -> None:
    rows = {row["phase"]: row for row in timeline_rows(read_timeline(fake.timeline(steps=6)))}
    shares = {phase: row["share"] for phase, row in rows.items()}
    # Of 10,000 us: negotiations 0-150 and 500-600; calls 200-510 and 700-900.
    assert shares[NEGOTIATION] == pytest.approx(0.025)
    assert shares[REDUCTION] == pytest.approx(0.051)
    assert shares[IDLE] == pytest.approx(1 - (150 + 100 + 320 + 210) / 10_000, abs=2e-3)
    # What this timeline never shows is missing, not 0.
    assert (shares[QUEUE], shares[WAIT], shares[COPIES]) == (None, None, None)
    first = rows[NEGOTIATION]
    assert (first["steps"], first["ms"]) == (4, pytest.approx(0.25))
    assert (first["negotiations"], first["ticked"], first["last_rank"], first["last"]) == (
        18, 3, 3, 3
    )  # fmt: skip


@pytest.mark.parametrize("steps", [1, 2])
def test_too_few_steps_have_no_account(steps: int) -> None:
    assert timeline_rows(read_timeline(fake.timeline(steps=steps))) == []


def study(shares: dict[str, float | None], **whole: Any) -> ExperimentResults:
    """An experiment with one profiled run at 4 ranks."""
    usual = {
        "steps": 100, "negotiations": 300, "ticked": 9, "last_rank": 3, "last": 5, "late_ms": 4.0,
        "evictions": 0, "stalls": 0,
    }  # fmt: skip
    rows = [
        {"run_id": "x", "ranks": 4, "phase": phase, "ms": 1.0, **usual, **whole,
         "share": np.nan if shares.get(phase) is None else shares[phase]}
        for phase in PHASES
    ]  # fmt: skip
    runs = [{"run_id": f"r{n}", "repeat": 0, "point": {"ranks": n}} for n in (1, 4)]
    plan = whole_plan({"experiments": [{"name": "e", "axes": ["ranks"], "runs": runs}]})
    return ExperimentResults(plan["experiments"][0], {"timeline": pd.DataFrame(rows)})


def said(shares: dict[str, float | None], **whole: Any) -> list[Finding]:
    return finding_rows.said(timeline_signs(study(shares, **whole)))


CALM: dict[str, float | None] = {
    NEGOTIATION: 0.02, QUEUE: 0.01, WAIT: 0.01, COPIES: 0.01, REDUCTION: 0.05, IDLE: 0.4,
}  # fmt: skip


@pytest.mark.parametrize(
    ("phase", "share", "words"),
    [
        (NEGOTIATION, 0.4, "a rank arrives late"),
        (QUEUE, 0.4, "calls are small and many"),
        (WAIT, 0.4, "the device still computes the gradient"),
        (REDUCTION, 0.4, "reduction takes 40.0 % of a step"),
        (IDLE, 0.6, "idle takes 60.0 % of a step"),
    ],
)
def test_each_sign_is_named_alone_and_only_where_it_is(
    phase: str, share: float, words: str
) -> None:
    assert said(CALM) == []
    finding = said(CALM | {phase: share})[0]
    assert words in finding.sentence
    assert finding.state == "note"
    assert finding.sentence.startswith("Horovod's timeline at 4 ranks: ")
    # A sign that the timeline does not have says nothing, whatever it would have been.
    assert said(CALM | {phase: None}) == []
    # Nor does one that another phase outweighs.
    if phase != IDLE:
        other = REDUCTION if phase != REDUCTION else NEGOTIATION
        assert words not in " ".join(one.sentence for one in said(CALM | {phase: 0.2, other: 0.6}))


def test_a_late_rank_is_named_from_ticks_only() -> None:
    (without,) = said(CALM | {NEGOTIATION: 0.4})
    assert "HOROVOD_CACHE_CAPACITY=0" in without.next
    _, known = said(CALM | {NEGOTIATION: 0.4}, ticked=300, last=270)
    assert "rank 3 is last in 270 of 300 negotiations, 4 ms after the median" in known.sentence


@pytest.mark.parametrize(
    ("sign", "words"),
    [
        ("evictions", "responses evicted from the cache, 2 times"),
        ("stalls", "ranks missing for long, 2 times"),
    ],
)
def test_warnings_of_horovod_are_passed_on(sign: str, words: str) -> None:
    (finding,) = said(CALM, **{sign: 2})
    assert finding.state == "attention"
    assert words in finding.sentence
    assert said(CALM, **{sign: None}) == []  # no log: nothing is known


def test_the_table_is_made_of_the_files_of_profiled_runs(tmp_path: Path) -> None:
    profiles = []
    for ranks, log in ((2, "fine\n"), (4, "A response has been evicted from cache which may\n")):
        run_id = f"b-r{ranks}.horovod_timeline"
        attempt = tmp_path / run_id / "attempt-1"
        (attempt / "profile").mkdir(parents=True)
        (attempt / "profile" / "horovod_timeline.json").write_text(fake.timeline(6))
        (attempt / "stderr.log").write_text(log)
        profile = {"kind": "horovod_timeline", "files": ["profile/horovod_timeline.json"]}
        write_record(
            tmp_path / run_id, make_record(f"b-r{ranks}", profile=profile, attempt=1), None
        )
        profiles.append({"run_id": run_id, "kind": "horovod_timeline", "status": "done",
                         "point": {"ranks": ranks}, "cause": "", "detail": ""})  # fmt: skip
    runs = [{"run_id": f"r{n}", "repeat": 0, "point": {"ranks": n}} for n in (2, 4)]
    plan = whole_plan(
        {"experiments": [{"name": "e", "axes": ["ranks"], "runs": runs, "profiles": profiles}]}
    )
    (entry,) = plan["experiments"]
    unread: list[str] = []
    table = frame_of(phase_rows(of_files(entry, tmp_path, unread)))
    assert table is not None
    assert unread == []
    assert len(table) == 2 * len(PHASES)
    found = table[table["phase"] == REDUCTION]
    assert found["ms"].tolist() == pytest.approx([0.51, 0.51])
    assert found["evictions"].tolist() == [0, 1]
    assert table[table["phase"] == QUEUE]["share"].isna().all()
    section = profiles_section(ExperimentResults(entry, {"timeline": table}), tmp_path, str)
    (shown,) = section["tables"]
    assert shown["label"] == "Timeline"
    share = [heading.text for heading in shown["headings"]].index("Share")
    assert shown["rows"][0][share].text == "2.5 %"
    # A damaged file is named, the others are there.
    folder = tmp_path / "b-r2.horovod_timeline" / "attempt-1" / "profile"
    (folder / "horovod_timeline.json").write_text(fake.timeline(6).replace('"B"', '"E"', 1))
    left = frame_of(phase_rows(of_files(entry, tmp_path, unread)))
    assert left is not None
    assert len(left) == len(PHASES)
    assert unread == ["b-r2.horovod_timeline"]
