"""Options of Snakemake that are refused; what else is read of it every call of a workflow uses."""

import sys
from types import SimpleNamespace

import pytest

from scalesweep.core.errors import UserError
from scalesweep.smk import snakemake_facts as facts


@pytest.mark.parametrize("twice", [("--config", "-C"), ("--configfile=a.yaml", "--configfiles")])
def test_an_option_of_which_the_last_one_counts_is_refused_twice(
    monkeypatch: pytest.MonkeyPatch, twice: tuple[str, str]
) -> None:
    """`--config site=X --config results=Y` would measure the campaign's site, without a word."""
    workflow = SimpleNamespace(config_settings=SimpleNamespace(config={"results": "y"}))
    monkeypatch.setattr(sys, "argv", ["snakemake", twice[0], "site=x", twice[1], "results=y"])
    with pytest.raises(UserError, match=f"^{twice[0].partition('=')[0]}: is named twice, and"):
        facts.overrides(workflow)
    monkeypatch.setattr(sys, "argv", ["snakemake", twice[1], "results=y"])
    assert facts.overrides(workflow) == {"results": "y"}
