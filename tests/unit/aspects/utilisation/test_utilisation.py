"""The table of utilisation, what is said of it, and its section."""

from dataclasses import replace
from typing import Any

import pytest

from scalesweep.analysis.flop_conventions import CONVENTIONS
from scalesweep.analysis.stats import Estimate
from scalesweep.aspects.find import rules
from scalesweep.aspects.utilisation import BEST, PRINTED, SECTION, Utilisation, utilisation
from scalesweep.experiment.results import ExperimentResults
from scalesweep.findings.base import ATTENTION, NOTE, Finding
from scalesweep.tables.machine import DATASHEET, MEASURED, Ceiling, Machine
from tests.fakes.rows import study_of

# GPT-2's shape, whose megatron_full is what PyTorch counts: 854,438,400 FLOP a token.
MODEL = {
    "layers": "12", "width": "768", "sequence": "1024", "parameters": "163037184", "heads": "12",
    "ffn_width": "3072", "vocabulary": "50257", "tied": "false", "learned_positions": "true",
    "recompute": "'full' if checkpointing else 'none'", "dtype": "dtype", "global_batch": "64",
}  # fmt: skip
PALM = 6 * 163_037_184 + 12 * 12 * 768 * 1024


def study(
    metrics: dict[str, tuple[str, str, list[float]]],
    transformer: dict[str, str] | None = None,
    ceilings: list[Ceiling] | None = None,
    **point: Any,
) -> ExperimentResults:
    """An experiment of one point with repeats; ``metrics``: unit, scope and values by name."""
    values = {"ranks": 8, "ranks_per_node": 8, "dtype": "bfloat16", "checkpointing": False, **point}
    repeats = zip(*(of for _, _, of in metrics.values()), strict=True)
    rows = [
        {f"{name}_mean_run": value for name, value in zip(metrics, each, strict=True)}
        for each in repeats
    ]
    known = {
        name: (unit, "lower" if unit == "ms" else "higher", scope)
        for name, (unit, scope, _) in metrics.items()
    }
    return study_of(
        [({}, rows)], known, fixed=values, main_metric=next(iter(metrics)),
        transformer={**MODEL, **(transformer or {})}, machine=Machine(ceilings or []),
    )  # fmt: skip


def rows(*args: Any, **more: Any) -> dict[str, Utilisation]:
    return {row.convention: row for row in study(*args, **more).of(Utilisation)}


TOKENS = {"tokens_per_second": ("tokens/s", "total", [1.0e6, 1.1e6, 0.9e6])}
DEVICE = {"device": "'a100_40gb'"}


def test_tokens_flop_and_shares_of_the_data_sheet() -> None:
    of = rows(TOKENS, DEVICE)
    assert set(of) == {name for name, it in CONVENTIONS.items() if it.flop}
    palm = of["palm"]
    assert (palm.tokens.value, palm.rank_tokens.value) == (1e6, 1.25e5)
    assert palm.step.value == pytest.approx(64 * 1024 / 1e6)
    assert palm.rank_flops.value == pytest.approx(PALM * 1.25e5)
    assert palm.mfu.value == pytest.approx(PALM * 1.25e5 / 312e12) and palm.hfu == palm.mfu
    # The interval is that of the rate, also of the step, where a faster one is shorter.
    assert palm.mfu.low / palm.mfu.value == pytest.approx(palm.tokens.low / palm.tokens.value)
    assert palm.step.high == pytest.approx(64 * 1024 / palm.tokens.low)
    assert of["megatron_full"].token_flop == 854_438_400
    full = rows(TOKENS, DEVICE, checkpointing=True)["palm"]
    assert full.hfu and full.mfu and full.hfu.value / full.mfu.value == pytest.approx(4 / 3)
    assert rows(TOKENS, {**DEVICE, "recompute": "null"})["palm"].hfu is None


def test_what_the_program_counted_stands_beside_the_formulas() -> None:
    counting = {**TOKENS, "flop_per_step": ("1", "total", [854_438_400.0 * 64 * 1024] * 3)}
    of = rows(counting, DEVICE)
    assert of["counted"].token_flop == pytest.approx(854_438_400)
    assert of["counted"].mfu == of["megatron_full"].mfu
    # What is computed again it does not count.
    again = rows(counting, DEVICE, checkpointing=True)
    assert again["counted"].hfu is None and again["palm"].hfu


def compute(dtype: str, value: Estimate, stated: str = DATASHEET, devices: int = 8) -> Ceiling:
    return Ceiling(kind="compute", stated=stated, dtype=dtype, value=value, unit="FLOP/s",
                   where="", devices=devices)  # fmt: skip


def test_peaks_of_the_site_and_measured_ceilings() -> None:
    sheet = compute("bfloat16", Estimate(8e15))
    probed = compute("bfloat16", Estimate(4e15, 3.9e15, 4.1e15), MEASURED, 0)
    palm = rows(TOKENS, None, [sheet, probed])["palm"]
    assert palm.peak == 1e15 and palm.ceiling == 5e14
    assert palm.of_ceiling.value == pytest.approx(2 * palm.mfu.value)
    # The ceiling's interval widens that of the share.
    own = palm.tokens.low / palm.tokens.value
    assert palm.of_ceiling.low / palm.of_ceiling.value < own
    # One rank of the probe on a node of eight devices measured one of them.
    one = replace(probed, value=Estimate(5e14, 4.9e14, 5.1e14), ranks=1)
    assert rows(TOKENS, None, [sheet, one])["palm"].ceiling == 5e14
    # Four ranks on a node of eight devices do not have the other devices' peaks.
    half = rows(TOKENS, None, [sheet], ranks=4, ranks_per_node=4)["palm"]
    assert half.peak == 1e15
    # Without a word of the type of numbers no peak is taken.
    assert rows(TOKENS, {"dtype": "null"}, [sheet, probed])["palm"].mfu is None


def said(results: ExperimentResults) -> dict[str, Finding]:
    findings = utilisation(results)
    return {finding.rule: rules()[finding.rule].say(finding) for finding in findings}


@pytest.mark.parametrize(
    ("rate", "again", "words"),
    [
        (1e6, False, "MFU would be 3.498: a wrong scope of the rate"),
        (0.8 * 312e12 / PALM, True, "HFU would be 1.067"),
    ],
)
def test_a_share_above_the_peak_has_its_likely_cause(rate: float, again: bool, words: str) -> None:
    each = {"rate": ("tokens/s", "rank", [rate] * 3)}
    results = study(each, DEVICE, checkpointing=again)
    palm = {row.convention: row for row in results.of(Utilisation)}["palm"]
    assert palm.mfu is None and palm.hfu is None and palm.fault and words in palm.fault
    (finding,) = said(results).values()
    assert finding.state == ATTENTION and words in finding.sentence
    shown = SECTION.table(results, 10)
    assert shown and any(cell.text == "above 100 %" and cell.bad for cell in shown.rows[0])


def test_a_printed_mfu_that_does_not_follow_is_named() -> None:
    right = PALM * 1.25e5 / 312e12
    wrong = right * 312 / 989.5
    # Half of the last printed digit is no difference: 0.437 as 0.4, and not as 0.5.
    for printed, fault in (
        ([right, right * 1.001, right * 0.999], None), ([wrong] * 3, "its own numbers give 0.4373"),
        ([0.4] * 3, None), ([0.5] * 3, "the source prints 0.5"),
    ):  # fmt: skip
        stated = {**TOKENS, "mfu_palm": ("1", "total", printed)}
        finding = said(study(stated, DEVICE)).get(PRINTED)
        assert (finding is None) == (fault is None)
        assert finding is None or (finding.state == NOTE and fault in finding.sentence)
    # What no formula gives is kept as it is printed.
    unstated = rows({**TOKENS, "mfu_unstated": ("1", "total", [0.3] * 3)}, DEVICE)["unstated"]
    assert unstated.printed_mfu == pytest.approx(0.3) and unstated.mfu is None


def test_the_best_point_is_told_with_the_convention_and_what_others_give() -> None:
    joules = {"energy_per_sample": ("J", "total", [2.0, 2.1, 1.9])}
    results = study({**TOKENS, **joules}, DEVICE)
    sentence = said(results)[BEST].sentence
    assert "bfloat16 peak (312 TFLOP/s a rank), by palm's FLOP" in sentence
    assert sentence.endswith("; by others 32.0 % to 43.7 %.")
    texts = [cell.text for cell in SECTION.table(results, 10).rows[0]]
    assert "32.0 % to 43.7 %" in texts and any(text.startswith("513 [") for text in texts)
    assert "6 N + 12 L d T (palm" in SECTION.notes(results)[0]
    assert "No MFU without a peak" in SECTION.notes(study(TOKENS))[1]


def test_tokens_per_second_come_from_what_a_run_has() -> None:
    batch = {"global_batch": "16"}
    for metrics, main in (
        ({"a": ("samples/s", "total", [1.0]), "b": ("tokens/s", "rank", [50.0]),
          "c": ("tokens/s", "total", [400.0])}, "a"),
        ({"b": ("tokens/s", "rank", [50.0])}, "b"),
        ({"a": ("samples/s", "total", [400 / 1024])}, "a"),
        ({"step_time": ("ms", "total", [40_960.0])}, "step_time"),
    ):  # fmt: skip
        palm = rows(metrics, batch)["palm"]
        assert palm.tokens and palm.tokens.value == pytest.approx(400), main
    # A step says it with the global batch alone.
    assert rows({"step_time": ("ms", "total", [4.0])}, {"global_batch": "null"}) == {}
    assert rows({"loss": ("1", "total", [1.0, 1.0])}) == {}


def test_points_whose_model_cannot_be_are_left_out(caplog: pytest.LogCaptureFixture) -> None:
    assert rows(TOKENS, {"heads": "768 / 100"}) == {}
    assert "a point without utilisation: b: transformer.heads: 7.68 is not a whole" in caplog.text
