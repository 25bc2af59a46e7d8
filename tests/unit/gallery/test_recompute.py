"""Published beside recomputed: what agrees, what differs, and what is missing is named."""

import csv
from pathlib import Path
from typing import Any

import pytest

from scalesweep.gallery import comparison_text
from scalesweep.gallery.page import index_page, study_page
from scalesweep.gallery.recompute import AGREES, DIFFERS, KNOWN, MISSING, Comparison, compare
from scalesweep.gallery.study import load_study
from tests.fakes.gallery import SMALL, TABLE, write_study


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """A results folder with the table ``scaling`` of the study's rates."""
    folder = tmp_path / "results" / "tables" / "small_rates_scaling"
    folder.mkdir(parents=True)
    with (folder / "scaling.csv").open("w") as file:
        file.write("ranks,kind,nccl,rate_eff_run\n1,a,True,1.0\n2,a,True,0.75\n4,a,True,0.6\n")
    return tmp_path / "results"


def compared(tmp_path: Path, results: Path, **change: Any) -> list[Comparison]:
    check = {**SMALL["checks"][0], **change}
    write_study(tmp_path, {**SMALL, "checks": [check]})
    study = load_study("small", tmp_path)
    return compare(study, results, {"rates": tmp_path / "small" / "table.csv"})


def test_a_wrong_published_number_is_named(tmp_path: Path, results: Path) -> None:
    rows = compared(tmp_path, results)
    assert [row.verdict for row in rows] == [AGREES, AGREES, DIFFERS]
    assert rows[2].recomputed == pytest.approx(60) and rows[2].difference == pytest.approx(-1 / 11)
    lines = list(comparison_text.lines(rows))
    assert lines[-1] == "published numbers: 2 of 3 agree, 1 differ"
    assert lines[3] == (
        "  differs gpus 4: 66%, recomputed 60 % (-9.09 %): an error of the source or of its copy: "
        "its own values give another number"
    )


def test_a_known_difference_is_known_up_to_its_size(tmp_path: Path, results: Path) -> None:
    for up_to, verdict in ((0.1, KNOWN), (0.05, DIFFERS)):
        known = [{"rows": {"gpus": 4}, "up_to": up_to, "because": "a slip"}]
        row = compared(tmp_path, results, known=known)[2]
        assert row.verdict == verdict
    assert (
        compared(tmp_path, results, known=[{**known[0], "rows": {"gpus": 2}}])[2].verdict == DIFFERS
    )


@pytest.mark.parametrize(
    ("printed", "cut", "within", "agrees"),
    [
        ("75", False, None, True), ("75.0", False, None, True), ("75.1", False, None, False),
        ("74", False, None, False), ("74", True, None, True), ("75", True, None, True),
        ("73", True, None, False), ("76", False, 0.01, True), ("77", False, 0.01, False),
        ("75%", False, None, True), ("0.075x", False, None, False), ("75.00x", False, None, True),
    ],
)  # fmt: skip
def test_digits_that_are_printed_count(
    tmp_path: Path, results: Path, printed: str, cut: bool, within: float | None, agrees: bool
) -> None:
    (tmp_path / "results" / "n.csv").write_text(f"gpus,printed\n2,{printed}\n")
    write_study(tmp_path, SMALL)
    (tmp_path / "small" / "n.csv").write_text(f"gpus,printed\n2,{printed}\n")
    check = {**SMALL["checks"][0], "cut": cut, "published": {"file": "n.csv", "column": "printed"}}
    if within:
        check["within"] = {"relative": within, "because": "inputs are rounded"}
    write_study(tmp_path, {**SMALL, "checks": [check]})
    (row,) = compare(load_study("small", tmp_path), results, {})
    assert (row.verdict == AGREES) == agrees


def test_what_does_not_come_out_is_missing_with_its_reason(tmp_path: Path, results: Path) -> None:
    made = SMALL["checks"][0]["recomputed"]
    for change, reason in (
        ({"table": "nothing"}, "the import made no table nothing"),
        ({"rows": {"gpu": 1}}, "table scaling has no column gpu"),
        ({"rows": {"kind": "b"}}, "table scaling has no row with these: kind b"),
        ({"rows": {"kind": "a"}}, "table scaling has 3 rows that differ: kind a"),
        ({"value": "kind"}, "table scaling has no row with a number: ranks 1"),
        ({"over": {"kind": "b"}}, "table scaling has no row with these: kind b"),
        ({"experiment": "other*"}, "the import made no table scaling"),
    ):
        row = compared(tmp_path, results, recomputed={**made, **change})[0]
        assert (row.verdict, row.reason) == (MISSING, reason)


def test_lists_truth_values_and_what_is_combined(tmp_path: Path, results: Path) -> None:
    made = SMALL["checks"][0]["recomputed"]
    (row,) = compared(
        tmp_path, results,
        published=[{"value": "67.5"}],
        recomputed={**made, "rows": {"ranks": [2, 4], "nccl": "TRUE"}, "combine": "mean"},
    )  # fmt: skip
    assert row.verdict == AGREES
    (row,) = compared(
        tmp_path, results,
        published=[{"value": "0.80", "gpus": 4}],
        recomputed={**made, "value": "rate_eff_run", "over": {"ranks": 2}},
    )  # fmt: skip
    assert row.verdict == AGREES


def test_the_page_has_every_number_and_names_what_differs(tmp_path: Path, results: Path) -> None:
    rows = compared(tmp_path, results)
    page = study_page(load_study("small", tmp_path), rows)
    assert page.count('scope="row"') == 3 and "<script" not in page
    assert '<td class="bad">differs: an error of the source or of its copy' in page
    assert "2 of 3 agree, 1 differ" in page and 'href="report.html"' in page
    study = {
        "name": "a<b",
        "title": "t",
        "counts": "1 of 1 agree",
        "page": "a/p.html",
        "report": "",
    }
    index = index_page([study])
    assert '<a href="a/p.html">a&lt;b</a>' in index and "a<b" not in index


def test_all_numbers_are_a_file(tmp_path: Path, results: Path) -> None:
    text = comparison_text.as_csv(compared(tmp_path, results))
    rows = list(csv.DictReader(text.splitlines()))
    assert [row["published"] for row in rows] == ["100%", "75%", "66%"] and TABLE.count("\n") == 4
    assert float(rows[2]["recomputed"]) == pytest.approx(60)
