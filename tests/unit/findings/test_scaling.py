"""Efficiency at the largest count, and where it falls under 80 %."""

from scalesweep.findings import Finding
from scalesweep.findings.scaling import efficiency_at_largest, efficiency_threshold
from tests.fakes.finding_rows import Triple, eff, only, scaling, study, value


def test_efficiency_at_the_largest_rank_count() -> None:
    found = only(efficiency_at_largest(scaling((0.9, 0.88, 0.92), (0.7, 0.68, 0.72))))
    assert found.level == "confirmed"
    assert (
        "Efficiency at 4 ranks, relative to 1 rank: 70.0 [68.0, 72.0] % in the later" in found.text
    )
    assert found.evidence["numbers"]["total_eff_later"] == 0.7


def test_efficiency_without_interval_is_open() -> None:
    found = only(efficiency_at_largest(scaling((0.66, 0.25, 1.74))))
    assert found.level == "open" and "an interval includes 80 %" in found.text
    found = only(efficiency_at_largest(scaling((0.9, None, None))))
    assert found.level == "open" and "one repeat" in found.text


def test_no_efficiency_from_a_single_rank_count() -> None:
    assert efficiency_at_largest(scaling()) == []
    assert efficiency_threshold(scaling()) == []


def test_larger_failed_rank_count_is_told() -> None:
    s = scaling((0.9, 0.88, 0.92))
    s.entry["runs"].append(
        {"run_id": "x", "repeat": 0, "status": "failed", "cause": "TIMEOUT", "detail": "",
         "point": {"ranks": 64}}
    )  # fmt: skip
    assert "(64 ranks: timeout)" in only(efficiency_at_largest(s)).text


def threshold(*effs: Triple) -> Finding:
    return only(efficiency_threshold(scaling(*effs)))


def test_falls_under_80_percent() -> None:
    found = threshold((0.9, 0.88, 0.92), (0.7, 0.68, 0.72), (0.6, 0.5, 0.7))
    assert found.level == "confirmed"
    assert found.text == (
        "Later epochs: largest rank count with efficiency clearly over 80 %: 90.0 [88.0, 92.0] % "
        "at 2 ranks; efficiency first falls under 80 % at 4 ranks (70.0 [68.0, 72.0] %)."
    )
    assert found.evidence["key"]["ranks"] == 4


def test_no_largest_count_over_80_percent_where_none_is_clear() -> None:
    for effs in (((0.7, 0.68, 0.72),), ((0.9, None, None), (0.7, 0.68, 0.72))):
        assert "clearly over" not in threshold(*effs).text
    straddling = threshold((0.9, 0.88, 0.92), (0.82, 0.79, 0.85), (0.7, 0.68, 0.72))
    assert "clearly over 80 %: 90.0 [88.0, 92.0] % at 2 ranks; the interval" in straddling.text
    assert straddling.level == "open"


def test_stays_above_80_percent() -> None:
    found = threshold((0.9, 0.88, 0.92), (0.85, 0.8, 0.9))
    assert found.level == "confirmed" and "stays above 80 % up to 4 ranks" in found.text


def test_straddling_80_percent_is_said() -> None:
    found = threshold((0.9, 0.88, 0.92), (0.79, 0.74, 0.84))
    assert found.level == "open"
    assert "includes 80 % at 4 ranks" in found.text and "falls under" not in found.text
    found = threshold((0.81, 0.74, 0.84), (0.7, 0.68, 0.72))
    assert "includes 80 % at 2 ranks" in found.text
    assert "clearly under from 4 ranks" in found.text and found.level == "open"


def test_threshold_with_one_repeat_is_not_confirmed() -> None:
    found = threshold((0.9, None, None), (0.7, None, None))
    assert found.level == "open"
    assert found.text == (
        "Later epochs: measured efficiency first falls under 80 % at 4 ranks (70.0 % (no "
        "interval)); a single run, not confirmed."
    )
    found = threshold((0.9, 0.88, 0.92), (0.7, None, None))  # one that is known to lie above
    assert found.text.endswith("not confirmed; not clearly under 80 % at any rank count.")
    found = threshold((0.9, None, None), (0.85, None, None))
    assert found.level == "open" and "stays above" in found.text and "not confirmed" in found.text


def test_many_series_are_told_together() -> None:
    rows = []
    for a in range(6):
        for ranks, triple in ((1, (1.0, None, None)), (2, (0.9 + a / 100, 0.88, 0.96))):
            rows.append(
                {"ranks": ranks, "a": a, **value("later", (10, 9, 11)), **eff("later", triple)}
            )
    s = study(rows, ["ranks", "a"])
    found = only(efficiency_at_largest(s))
    assert "6 series" in found.text and "(a 0, 2 ranks)" in found.text and "(a 5, 2" in found.text
    found = only(efficiency_threshold(s))
    assert found.text.startswith("6 series (a 0, a 1 and 4 more): later epochs: efficiency stays")


def test_different_series_keep_their_sentences() -> None:
    rows = []
    for a, triple in ((0, (0.9, 0.88, 0.92)), (1, (0.7, 0.68, 0.72))):
        rows.append(
            {"ranks": 1, "a": a, **value("later", (10, 9, 11)), **eff("later", (1, None, None))}
        )
        rows.append({"ranks": 2, "a": a, **value("later", (10, 9, 11)), **eff("later", triple)})
    above, below = efficiency_threshold(study(rows, ["ranks", "a"]))
    assert above.text.startswith("a 0: later epochs: efficiency stays above")
    assert below.text.startswith("a 1: later epochs: efficiency first falls under 80 % at 2 ranks")
    assert below.evidence["key"]["a"] == 1


def test_recovery_above_80_percent_is_said() -> None:
    found = threshold((0.7, 0.68, 0.72), (0.9, 0.88, 0.92))
    assert "clearly over 80 %: 90.0 [88.0, 92.0] % at 4 ranks; efficiency first" in found.text
