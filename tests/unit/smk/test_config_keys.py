"""Every key of --config does what it is for, and what cannot be meant is refused."""

import shlex
import shutil
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from scalesweep.config.campaign import Campaign
from scalesweep.core.errors import UserError
from scalesweep.core.record import write_record
from scalesweep.smk import snakemake_facts as facts
from scalesweep.smk.campaign_args import OPTION, plan_of, read_campaign
from scalesweep.smk.config_keys import OVERRIDES
from scalesweep.smk.context import SnakemakeContext
from scalesweep.smk.startup import prepare
from tests.unit.smk.test_startup import record_of

# Of the campaign that a call is about: what a key changes there, with the value that does it.
OF_CAMPAIGN: dict[str, tuple[str, Callable[[Campaign], object]]] = {
    "campaign": ("other", lambda campaign: campaign.name),
    "site": ("elsewhere", lambda campaign: campaign.site.name),
    "results": ("somewhere", lambda campaign: campaign.results),
    "profile": ("cprofile", lambda campaign: campaign.experiments[0].profiles),
    "history": ("kept", lambda campaign: campaign.history and campaign.history.folder),
    "baseline": ("v1", lambda campaign: campaign.history and campaign.history.baseline),
}
# Of the runs that it starts.
OF_RUNS = {"retry": "unsupported", "try": "shapes"}


@pytest.fixture
def study(
    campaign_of: Callable[..., Campaign], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """Two campaigns and sites; of the default one a run is done, one unsupported, two are left."""
    monkeypatch.chdir(tmp_path)
    campaign = campaign_of("axes: {size: [1, 2, 3, 4]}", "campaign: test\nsite: toy\nhistory: h\n")
    done, unsupported, *_ = campaign.unique_runs().values()
    for (_, run), more in ((done, {}), (unsupported, {"unsupported": "no GPU"})):
        write_record(campaign.runs_folder / run.run_id, record_of(run, **more))
    text = campaign.file.read_text()
    shutil.copy(tmp_path / "sites" / "toy.yaml", tmp_path / "sites" / "elsewhere.yaml")
    site = tmp_path / "sites" / "elsewhere.yaml"
    site.write_text(site.read_text().replace("site: toy", "site: elsewhere"))
    own = tmp_path / "config" / "campaigns"
    own.mkdir(parents=True)
    (own.parent / "config.yaml").write_text(text)
    (own / "other.yaml").write_text(text.replace("campaign: test", "campaign: other"))
    return tmp_path


def call(options: Mapping[str, Any]) -> SnakemakeContext:
    return prepare([], options, False)[0]


def campaigns(context: SnakemakeContext) -> list[Campaign]:
    """The campaign as the Snakefile and the scripts of rules have it."""
    _, named = shlex.split(context.campaign_arguments())
    return [context.campaign, plan_of(named).campaign]


@pytest.mark.usefixtures("study")
@pytest.mark.parametrize("key", [key for key in OVERRIDES if key not in OF_RUNS])
def test_a_key_changes_the_campaign(key: str) -> None:
    value, effect = OF_CAMPAIGN[key]
    for campaign, plain in zip(campaigns(call({key: value})), campaigns(call({})), strict=True):
        assert effect(campaign) != effect(plain)


@pytest.mark.usefixtures("study")
def test_what_keys_do_to_runs() -> None:
    counts = {key: len(call({key: value}).awaited) for key, value in OF_RUNS.items()}
    assert len(call({}).awaited) == 2
    # A shape that has a result is not tried: all of these have the same.
    assert counts == {"retry": 3, "try": 0}


def test_a_baseline_without_a_history_is_refused(study: Path) -> None:
    file = study / "config" / "config.yaml"
    file.write_text(file.read_text().replace("history: h\n", ""))
    with pytest.raises(UserError, match=r"--config baseline: .* names no history, which it is for"):
        call({"baseline": "v1"})


def test_what_a_command_was_told_is_blamed_and_not_the_campaign(study: Path) -> None:
    """A history in the results folder, by a link too: the next report would replace its tables."""
    (study / "link").symlink_to("results")
    for key, name, why in (
        ("results", "sites", "sites: holds files that"),
        ("history", "sites", "sites: holds files that"),
        ("history", "link", "it is the results folder; name one of its own"),
    ):
        with pytest.raises(UserError, match=f"^--{key}: {why}"):
            read_campaign(Path("config/config.yaml"), {key: name}, False, False, OPTION)


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
