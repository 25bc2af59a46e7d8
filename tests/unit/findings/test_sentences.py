"""Sentences are short, make one claim and state only numbers that they have as data."""

import re
from pathlib import Path
from string import Formatter

import pytest

from scalesweep.aspects.find import find, rules
from scalesweep.findings.base import STATES
from tests.fakes.results import demo, make_results, studies_of

MOST = 25


@pytest.mark.parametrize("rule", rules().values(), ids=lambda rule: rule.name)
def test_a_template_is_short_and_has_no_number_of_its_own(rule: object) -> None:
    assert rule.says  # type: ignore[attr-defined]
    for state, template in rule.says.items():  # type: ignore[attr-defined]
        literal = " ".join(text for text, *_ in Formatter().parse(template))
        assert state in STATES and template.endswith(".")
        assert len(template.split()) <= MOST
        assert not re.search(r"\d|not confirmed|\bwhere\b", literal), template


@pytest.mark.slow
def test_sentences_of_made_campaigns_are_short_and_their_numbers_are_data(tmp_path: Path) -> None:
    seen = set()
    for study in studies_of(make_results(tmp_path, demo()[:4])).values():
        for finding in find(study):
            seen.add(finding.rule)
            assert len(finding.sentence.split()) <= MOST, finding.sentence
            assert finding.numbers or finding.rule == "main metric"
    assert {"verdict", "best", "ratio", "coverage"} <= seen
