"""The first screen: where to run, why, how sure, and what next."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from scalesweep.aspects.find import find
from scalesweep.core.plan_format import read_plan
from scalesweep.experiment.results import ExperimentResults
from scalesweep.findings.base import ATTENTION, CLEAR, Finding, number_of
from scalesweep.report.first_screen import LOAD, MOST_SENTENCES, first_screen, sentences_of
from tests.fakes.imported_table import LAYOUT_ROWS, LAYOUTS, imported
from tests.fakes.results import Fake, make_results, studies_of

WEAK = {"ranks": [1, 2, 4]}
FIGURES = ["scaling-init", "scaling-later"]


def screen(root: Path, fake: Fake, disturbed: int = 0, failures: Any = ()) -> dict[str, Any]:
    """The first screen; other processes disturbed so many of 15 runs."""
    make_results(root, [replace(fake, source="measured")])
    plan = read_plan(root / "plan.json")
    study = studies_of(root)[fake.name]
    counts = number_of("disturbed runs", disturbed, "1"), number_of("of", 15, "1")
    load = [Finding("e", LOAD, ATTENTION, numbers=counts)] if disturbed else []
    return first_screen(plan, study, [*find(study), *load], FIGURES, {}, failures)


def slower(power: float) -> Any:
    """A machine whose throughput of a rank falls with the ranks."""
    return lambda point: point["ranks"] ** -power


@pytest.mark.parametrize(
    ("fake", "line", "then"),
    [
        (Fake("e", WEAK, "weak", repeats=5, speed=slower(0.5)),
         r"run at 1 rank; 100 %; at 2: [\d.]+ %; .*clear", "share cores"),
        (Fake("e", WEAK, "weak", repeats=5), r"run at 4 ranks; 9[\d.]+ %; the largest run.*clear",
         "measure a larger scale"),
        (Fake("e", WEAK, "weak", repeats=1), "run at 4 ranks.*open", "measure 2 more repeats"),
        (Fake("e", WEAK, "weak", repeats=1, speed=slower(0.5)),
         r"run at 1 rank; 100 %; at 2: [\d.]+ %.*open", "measure 2 more repeats"),
        (Fake("e", WEAK, "weak", fate=lambda p, r: "new" if p["ranks"] == 4 else "done"),
         r"run at 2 ranks", "run the 3 pending runs"),
        (Fake("e", {"size": [1, 2, 4]}, repeats=5, speed=lambda p: p["size"]),
         r"run at size 4; [\d.]+ samples/s .clear.", ""),
        (Fake("e", WEAK, "weak", fate=lambda p, r: "new"), "no result", "run the 9 pending runs"),
        (Fake("e", WEAK | {"size": [1, 2]}, "weak",
              fate=lambda p, r: "OUT_OF_MEMORY" if p["ranks"] * p["size"] == 8 else "done"),
         r"run at 4 ranks at size 1; [\d.]+ %; the largest run · 2 ranks at size 2; [\d.]+ %; "
         "no result at 4 ranks",
         "take a smaller batch, or ask for more memory"),
        (Fake("e", WEAK, "weak", fate=lambda p, r: "NODE_FAIL" if p["ranks"] == 4 else "done"),
         "run at 2 ranks", "repeat 3 failed runs"),
    ],
)  # fmt: skip
def test_where_to_run_and_what_next(tmp_path: Path, fake: Fake, line: str, then: str) -> None:
    shown = screen(tmp_path, fake)
    assert re.match(line, shown["line"].text), shown["line"].text
    assert then in (shown["next"].text if shown["next"] else "")
    assert len(shown["sentences"]) <= MOST_SENTENCES
    assert shown["figure"] == "scaling-later"


def test_each_rule_has_a_sentence_before_one_has_two() -> None:
    rules = ["verdict", "verdict", "best", "ratio", "largest loss", "largest loss", "causes"]
    said = sentences_of([Finding("e", rule, CLEAR, subject=str(n)) for n, rule in enumerate(rules)])
    assert [of.subject for of in said] == ["0", "2", "4", "6"]


def test_of_layouts_the_best_of_each_scale_decide(tmp_path: Path) -> None:
    """Per rank the best layouts reach 100, 90 and 60 tokens/s: up to 16 ranks over 80 %."""
    _, entry, tables = imported(tmp_path, LAYOUT_ROWS, LAYOUTS)
    study = ExperimentResults(entry, tables)
    plan: Any = {"file": "c.yaml"}
    shown = first_screen(plan, study, find(study), [], {}, [])
    assert shown["line"].text == (
        "run at 16 ranks, dp 16 x tp 1; 90.0 %; at 32: 60.0 %; "
        "100.0 % ahead of the next layout (open)"
    )
    assert shown["next"].text == "repeat the best two at 16 ranks: dp 16 x tp 1; dp 8 x tp 2"
    assert shown["sentences"][0].evidence["scale"] == 16


def test_what_can_be_copied_has_its_cost(tmp_path: Path) -> None:
    shown = screen(tmp_path, Fake("e", WEAK, "weak", repeats=5))
    assert shown["next"].code == "experiments:\n  e:\n    axes:\n      ranks: [1, 2, 4, 8]"
    assert shown["cost"] == "5 runs"


@pytest.mark.parametrize(
    ("repeats", "disturbed", "end"),
    [(1, 2, "(open; 2 runs disturbed)"), (5, 9, "(clear; 9 runs disturbed)")],
)
def test_disturbed_runs_are_repeated_first_and_the_state_is_that_of_the_sentence(
    tmp_path: Path, repeats: int, disturbed: int, end: str
) -> None:
    shown = screen(tmp_path, Fake("e", WEAK, "weak", repeats=repeats, speed=slower(0.5)), disturbed)
    assert shown["line"].text.endswith(end)
    assert shown["line"].state in {f.state for f in shown["sentences"] if f.rule == "verdict"}
    assert shown["next"].text == (
        f"repeat on a quiet machine: other processes disturbed {disturbed} of 15 runs"
    )


def test_runs_that_failed_alike_are_told_once_with_the_cure(tmp_path: Path) -> None:
    cures = {"TIMEOUT": "raise `time_limit_minutes`", "NODE_FAIL": "repeat: it may pass",
             "BAD_RESULT": "fix what stopped them", "NOT_STATED": ""}  # fmt: skip
    rows = [
        {"cause": cause, "detail": "", "lines": ["Traceback", "ValueError: broken", ""],
         "runs": [{"run": {"point": {"ranks": n, "size": 2}, "to_run": bool(cure)}}] * 2}
        for cause, cure in cures.items() for n in (2, 4)
    ]  # fmt: skip
    told = screen(tmp_path, Fake("e", WEAK | {"size": [1, 2]}, "weak"), failures=rows)["failed"]
    assert {one["cause"]: one["cure"] for one in told} == cures and len(told) == len(cures)
    assert {(one["where"], one["count"], one["line"]) for one in told} == {
        ("ranks 2, 4, size=2", 4, "ValueError: broken")
    }
