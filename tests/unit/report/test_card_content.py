"""The first screen: verdicts, abstaining, what to do next, and never more than five sentences."""

import dataclasses
from pathlib import Path
from typing import Any

import pytest
import yaml

from scalesweep.aspects.find import find
from scalesweep.aspects.scaling.findings import UNDECIDED, verdicts
from scalesweep.config.campaign import load_campaign
from scalesweep.core.plan_format import read_plan
from scalesweep.experiment.load import load_results
from scalesweep.experiment.results import ExperimentResults
from scalesweep.findings.base import ATTENTION, Finding
from scalesweep.report.card_content import MOST, Card, _act, card_of
from scalesweep.report.efficiency_chart import efficiency_chart
from tests.fakes.finding_rows import scaling, value
from tests.fakes.finding_rows import study as study_of_rows
from tests.fakes.results import Fake, make_results
from tests.unit.aspects.breakdown.test_efficiency import noisy, study_of

WEAK = {"ranks": [1, 2, 4]}


def study_from(root: Path, fake: Fake) -> ExperimentResults:
    make_results(root, [fake])
    (entry,) = read_plan(root / "plan.json")["experiments"]
    return load_results(entry, root / "tables")


def card(root: Path, fake: Fake) -> tuple[Card, ExperimentResults]:
    study = study_from(root, fake)
    return card_of(study, find(study)), study


def slower(power: float) -> Any:
    """A machine whose throughput of a rank falls with the ranks."""
    return lambda point: point["ranks"] ** -power


def test_what_stops_scaling_is_run_at_the_last_efficient_scale(tmp_path: Path) -> None:
    found, study = card(tmp_path, Fake("e", WEAK, "weak", repeats=5, speed=slower(0.5)))
    verdict, loss = found.sentences[:2]
    assert (verdict.rule, verdict.state) == ("verdict", "clear")
    assert verdict.sentence.startswith("Simulated: Does not scale: 2 ranks reach 69.")
    assert "of the ideal, 4 ranks 4" in verdict.sentence
    assert (loss.rule, loss.state) == ("largest loss", "clear")
    assert "without it the epoch would reach" in loss.sentence
    assert found.next is not None
    assert found.next.repeats is None
    assert "share cores" in found.next.text
    chart = efficiency_chart(study, found.verdicts)
    assert chart is not None
    assert chart.count('class="interval"') == 2
    assert chart.count('class="base"') == 1


def test_what_scales_is_run_at_the_most_and_measured_further(tmp_path: Path) -> None:
    found, _ = card(tmp_path, Fake("e", WEAK, "weak", repeats=5))
    assert "Run 4 ranks, the most that were measured" in found.sentences[0].sentence
    assert found.next is not None
    assert "more than 4 ranks" in found.next.text


def test_what_was_asked_to_be_predicted_is_on_it(tmp_path: Path) -> None:
    found, _ = card(tmp_path, Fake("e", WEAK, "weak", repeats=5, predict=[8, 16]))
    (ahead,) = [one for one in found.sentences if "at 16 ranks" in one.sentence]
    assert ahead.sentence.startswith("Predicted from simulated points for later epochs: ")
    assert "do not trust beyond" in ahead.sentence
    assert len(found.sentences) < MOST


def test_an_open_question_names_the_repeats_that_decide_it(tmp_path: Path) -> None:
    fake = Fake("e", {"ranks": [1, 2]}, "weak", noise=0.08, speed=slower(0.3))
    found, study = card(tmp_path, fake)
    (verdict,) = [one for one in found.sentences if one.rule == "verdict"]
    assert verdict.state == "open"
    assert verdict.sentence.startswith("Simulated: Not decided: 2 ranks reach 7")
    assert "an interval that includes 80 %" in verdict.sentence
    assert found.next is not None
    assert found.next.repeats is not None
    more = found.next.repeats - 3
    assert more == verdicts(study)[0].more
    assert found.next.text == f"{more} more repeats would decide."
    assert found.next.runs == 2 * more


def test_one_repeat_decides_nothing_and_asks_for_three(tmp_path: Path) -> None:
    found, study = card(tmp_path, Fake("e", WEAK, "weak", repeats=1, speed=slower(0.5)))
    assert found.sentences[0].state == "open"
    assert "4 ranks reach 47." in found.sentences[0].sentence
    assert "from single runs: not confirmed" in found.sentences[0].sentence
    assert verdicts(study)[0].more is None
    assert found.next is not None
    assert (found.next.repeats, found.next.runs) == (3, 6)
    chart = efficiency_chart(study, found.verdicts)
    assert chart is not None
    assert 'interval"' not in chart


@pytest.mark.parametrize(
    ("triple", "repeats", "words"),
    [
        # Scatter: repeats would take long, and what scatters is the thing to find.
        ((0.58, 0.24, 1.42), 3, "find what makes the repeats scatter: at 2 ranks they leave the "
         "efficiency at 58 [24, 142] %, and about 22 more repeats would be needed"),
        ((0.797, 0.6, 1.06), 3, "more than 1,000 more repeats would be needed"),
        # Nearness: nothing hangs on the choice.
        ((0.8, 0.78, 0.82), 3, "take either: at 2 ranks the whole interval of the efficiency, "
         "80 [78, 82] %, lies within 5 points of 80 %"),
        ((0.87, 0.79, 0.96), 3, "3 more repeats would decide."),
    ],
)  # fmt: skip
def test_an_open_verdict_says_what_would_decide_it(triple: Any, repeats: int, words: str) -> None:
    study = scaling(triple)
    for row in study.points:
        row["repeats"] = repeats
    then = card_of(study, find(study)).next
    assert then is not None and words in then.text


def test_an_interval_that_is_not_shown_is_not_said_to_include_anything() -> None:
    study = scaling((0.011, 7e-7, 173.0))
    (verdict,) = [each for each in find(study) if each.rule == "verdict"]
    assert "2 ranks reach 1 % (interval not known) of the ideal" in verdict.sentence
    assert "the repeats are too far apart for one" in verdict.sentence
    assert "includes" not in verdict.sentence


def test_identical_repeats_are_not_asked_for_again() -> None:
    study = scaling((0.7, None, None))
    frame = study.tables["scaling"]
    assert frame is not None
    frame["total_throughput_cv_later"] = 0.0
    then = card_of(study, find(study)).next
    assert then is not None and then.repeats is None
    assert "let repeats differ: they are identical" in then.text


def test_a_clear_loss_is_the_next_step_where_the_verdict_is_open() -> None:
    """80 % may be open while what takes the time is not."""
    large = noisy(4, **{"compute": 100, "transfer": 28})
    study = study_of([({"ranks": 1}, noisy(1, compute=100), 10), ({"ranks": 4}, large, 40)])
    found = find(study)
    (loss,) = [one for one in found if one.rule == "largest loss"]
    (one,) = verdicts(scaling((0.79, 0.7, 0.9)))
    assert loss.state == "clear"
    undecided = dataclasses.replace(one, kind=UNDECIDED)
    then = _act(study, [undecided], loss, found)
    assert then is not None and "a profile that shows collectives" in then.text
    # What is not clear is not acted on: the verdict's repeats come first.
    asked = _act(study, [undecided], dataclasses.replace(loss, state="open"), found)
    assert asked is not None and "profile" not in asked.text


def test_a_card_of_published_results_is_never_empty() -> None:
    """Where nothing is confirmed, what is only noted is the sentence."""
    rows = [{"ranks": 8, "source": "imported", "repeats": 1, **value("run", (1, None, None))}]
    study = study_of_rows(rows, ["ranks"])
    note = Finding("e", "timeline", "note", "Horovod is idle for 75 % of a step.")
    coverage = Finding("e", "coverage", "note", "Coverage: 1 of 1 run done.")
    found = card_of(study, [note, coverage])
    assert [one.sentence for one in found.sentences] == [note.sentence]


@pytest.mark.parametrize(("levels", "first"), [("co", 0), ("oc", 1), ("cc", 1), ("oo", 0)])
def test_how_benchmarks_compare_comes_first(levels: str, first: int) -> None:
    """Where it is clear, and at the largest scale of these."""
    rows = [{"ranks": 8, "source": "measured", "repeats": 3, **value("run", (1, None, None))}]
    level = {"c": "clear", "o": "open"}
    evidence = {"parameter": "benchmark"}
    ratios = [
        Finding("e", "ratio", level[letter], f"b over a, {place}", evidence)
        for place, letter in enumerate(levels)
    ]
    verdict = Finding("e", "verdict", "clear", "efficient up to 8 ranks.")
    card = card_of(study_of_rows(rows, ["ranks"]), [*ratios, verdict])
    assert [one.sentence for one in card.sentences][:2] == [f"b over a, {first}", verdict.sentence]
    assert len({one.sentence for one in card.sentences}) == len(card.sentences)


def test_series_that_say_the_same_share_a_sentence(tmp_path: Path) -> None:
    axes = {"ranks": [1, 2], "batch_size": [1, 2, 3, 4, 5, 6]}
    found, study = card(tmp_path, Fake("e", axes, "weak", speed=slower(0.6)))
    told = [one for one in found.sentences if one.rule == "verdict"]
    assert len(told) == 1
    assert "All 6 series (batch_size 1, batch_size 2 and 4 more): does not scale" in (
        told[0].sentence
    )
    assert len(found.sentences) + (found.next is not None) <= MOST
    chart = efficiency_chart(study, found.verdicts)
    assert chart is not None
    assert chart.count("<polyline") == 4
    assert "4 of 6 series" in chart


def test_what_is_missing_comes_first(tmp_path: Path) -> None:
    pending, _ = card(tmp_path / "a", Fake("e", WEAK, "weak", fate=lambda p, r: "new"))
    assert pending.sentences == []
    assert pending.next is not None
    assert pending.next.text == "run `snakemake`: 9 runs of 9 pending."
    failed, _ = card(
        tmp_path / "b",
        Fake("e", WEAK, "weak", fate=lambda p, r: "TIMEOUT" if p["ranks"] == 4 else "done"),
    )
    assert [one.rule for one in failed.sentences if one.state == ATTENTION] == ["coverage"]
    assert failed.next is not None
    assert "repeats these only" in failed.next.text


def test_a_disturbed_machine_is_said_beside_any_other_warning(tmp_path: Path) -> None:
    """What other processes took is below every sentence, so it is never crowded out."""
    study = study_from(tmp_path, Fake("e", WEAK, "weak", repeats=5, speed=slower(0.5)))
    found = find(study)
    before = card_of(study, found)
    warnings = [
        Finding("e", "drift", ATTENTION, "The machine drifted."),
        Finding("e", "canary", ATTENTION, "The canary is slower."),
        Finding("e", "other load", ATTENTION, "In 2 of 15 runs other processes used the cores."),
    ]
    after = card_of(study, [*warnings, *found])
    said = [one.rule for one in after.sentences]
    assert said[-2:] == ["drift", "other load"] and "canary" not in said
    assert said[:2] == [one.rule for one in before.sentences[:2]] == ["verdict", "largest loss"]
    assert len(said) + (after.next is not None) <= MOST
    quiet = card_of(study, [*warnings[:2], *found])
    assert "other load" not in [one.rule for one in quiet.sentences]


def test_an_experiment_without_scale_leads_with_its_best(tmp_path: Path) -> None:
    fake = Fake("e", {"threads": [1, 2, 4]}, speed=lambda p: p["threads"])
    found, study = card(tmp_path, fake)
    assert found.sentences[0].rule == "threads"
    # Which of these points is the best is one question: one sentence.
    assert "best" not in {one.rule for one in find(study)}
    assert efficiency_chart(study, found.verdicts) is None
    imported, _ = card(tmp_path / "b", Fake("e", WEAK, "weak", repeats=1, source="imported"))
    assert imported.next is None  # nothing to run here


def test_it_abstains_where_the_interval_is_wider_than_the_loss() -> None:
    base = noisy(1, compute=100)
    rough = [
        one
        for seed, ms in enumerate((10, 40, 10, 40))
        for one in noisy(4, 1, seed, compute=100, transfer=ms, alternating=45 - ms)
    ]
    study = study_of([({"ranks": 1}, base, 10), ({"ranks": 4}, rough, 40)])
    (finding,) = [one for one in find(study) if one.rule == "largest loss"]
    assert finding.state == "open"


@pytest.mark.parametrize(
    ("ms", "words"),
    [
        ({"unattributed": 40, "transfer": 5}, "--config profile=cprofile"),
        ({"transfer": 40}, "a profile that shows collectives"),
        ({"input": 40}, "more parallel reads"),
        ({"persistent": 40}, "figure of the ranks"),
    ],
)
def test_what_to_do_follows_from_the_loss(ms: dict[str, float], words: str) -> None:
    large = noisy(4, **{"compute": 100, **ms})
    study = study_of([({"ranks": 1}, noisy(1, compute=100), 10), ({"ranks": 4}, large, 40)])
    found = card_of(study, find(study))
    assert found.next is not None
    assert words in found.next.text
    # Data loading has no way to do without reading, training has.
    assert "`input`" not in found.next.text
    doc = {"unit": None, "doc": "", "default": "tfrecords", "workload": False}
    study.entry["parameters"]["input"] = doc
    after = card_of(study, find(study)).next
    assert after is not None and ("`input`" in after.text) == ("input" in ms)


def test_the_lines_to_paste_are_a_campaign(tmp_path: Path) -> None:
    """They raise the repeats of the experiment and change none of its run ids."""
    text = Path("config/config.yaml").read_text()
    before = load_campaign(Path("config/config.yaml"))
    name = before.experiments[0].name
    content = yaml.safe_load(text)
    content["experiments"][name] |= yaml.safe_load("repeats: 9")
    changed = tmp_path / "more.yaml"
    changed.write_text(yaml.safe_dump(content))
    after = load_campaign(changed)
    assert {run.run_id for run in before.experiments[0].runs} < {
        run.run_id for run in after.experiments[0].runs
    }


def test_a_program_that_only_reads_does_not_wait_for_input() -> None:
    """Its input is its work: longer reads are slower reads."""
    points = []
    for ms, parts, large in (({"input": 100}, {"input": 140}, False),
                             ({"compute": 100}, {"compute": 100, "input": 40}, True)):  # fmt: skip
        study = study_of(
            [({"ranks": 1}, noisy(1, **ms), 10), ({"ranks": 4}, noisy(4, **parts), 40)]
        )
        (loss,) = [one for one in find(study) if one.rule == "largest loss"]
        assert ("waiting for input" in loss.sentence) is large
        assert ("reading on" in loss.sentence) is not large
        points.append(loss)
    assert len(points) == 2
