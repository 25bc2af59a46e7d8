"""Every key of --config with every call of Snakemake: it does what it is for, or is refused."""

import argparse
import shlex
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from scalesweep.config.campaign import Campaign
from scalesweep.config.overrides import OVERRIDES, RUN, VERBS
from scalesweep.core.errors import UserError
from scalesweep.core.record import write_record
from scalesweep.smk.campaign_args import add_campaign, plan_of
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


def call(options: Mapping[str, Any], verb: str) -> SnakemakeContext:
    context, _, _ = prepare([], options, False, True, [verb])
    return context


def campaigns(context: SnakemakeContext) -> list[Campaign]:
    """The campaign as the Snakefile and the scripts of rules have it."""
    parser = argparse.ArgumentParser()
    add_campaign(parser)
    args = parser.parse_args(shlex.split(context.campaign_arguments()))
    return [context.campaign, plan_of(args).campaign]


@pytest.mark.usefixtures("study")
@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("key", [*OVERRIDES])
def test_a_key_acts_or_is_refused(key: str, verb: str) -> None:
    value, effect = OF_CAMPAIGN.get(key, (OF_RUNS.get(key, "x"), None))
    if key not in OVERRIDES or verb not in OVERRIDES[key].verbs:
        with pytest.raises(UserError, match=f"^--config {key}: .* does not read it; read by: "):
            call({key: value}, verb)
        return
    before, after = call({}, verb), call({key: value}, verb)
    if effect is None:
        assert after.awaited != before.awaited
        return
    for campaign, plain in zip(campaigns(after), campaigns(before), strict=True):
        assert effect(campaign) != effect(plain)


@pytest.mark.usefixtures("study")
def test_what_keys_do_to_runs() -> None:
    counts = {key: len(call({key: value}, RUN).awaited) for key, value in OF_RUNS.items()}
    assert len(call({}, RUN).awaited) == 2
    # A shape that has a result is not tried: all of these have the same.
    assert counts == {"retry": 3, "try": 0}


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"baseline": "v1"}, "--config baseline: .* names no history, which it is for"),
    ],
)
def test_keys_that_could_not_act_are_refused(
    study: Path, options: dict[str, str], told: str
) -> None:
    file = study / "config" / "config.yaml"
    file.write_text(file.read_text().replace("history: h\n", ""))
    with pytest.raises(UserError, match=told):
        call(options, RUN)
