"""Runs next to the measured ones: one of each point under a profiler, one of each run without
exchange."""

from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from scalesweep.config.campaign import Campaign, load_campaign
from scalesweep.core.errors import UserError
from scalesweep.core.profilers import environment, lacks, left_files, split_name

BODY = "axes: {ranks: [1, 2]}\nrepeats: 3\nprofile: "


def test_each_run_has_one_without_exchange_in_its_block(
    campaign_of: Callable[[str], Campaign],
) -> None:
    (bare,) = campaign_of(BODY + "none").experiments
    campaign = campaign_of(BODY + "noexchange")
    (experiment,) = campaign.experiments
    assert experiment.runs == bare.runs
    assert [run.run_id for run in experiment.profiles] == [
        f"{run.run_id}.noexchange" for run in bare.runs
    ]
    assert [run.repeat for run in experiment.profiles] == [0, 0, 1, 1, 2, 2]
    order = sorted(campaign.positions().items(), key=lambda one: one[1])
    repeats = {run.run_id: run.repeat for run in (*experiment.runs, *experiment.profiles)}
    assert [repeats[name] for name, _ in order] == [0] * 4 + [1] * 4 + [2] * 4
    # Measured runs are in the order that they have without.
    measured = [name for name, _ in order if "." not in name]
    alone = campaign_of(BODY + "none").positions()
    assert measured == sorted(alone, key=lambda name: alone[name])


def test_profilers_run_once_and_last(campaign_of: Callable[[str], Campaign]) -> None:
    campaign = campaign_of(BODY + "cprofile")
    assert [run.repeat for run in campaign.experiments[0].profiles] == [0, 0]
    order = sorted(campaign.positions().items(), key=lambda one: one[1])
    assert {split_name(name)[1] for name, _ in order[-2:]} == {"cprofile"}


def test_a_benchmark_without_exchange_has_no_such_runs(
    toy: Path, campaign_of: Callable[[str], Campaign]
) -> None:
    file = toy / "benchmarks" / "toy" / "benchmark.yaml"
    content = yaml.safe_load(file.read_text())
    del content["noexchange"]
    file.write_text(yaml.safe_dump(content))
    with pytest.raises(UserError, match=r"toy has no exchange that it can leave out.*none, cprof"):
        campaign_of(BODY + "noexchange")
    # Asked of the whole campaign, only those that have some run, and one has to.
    campaign_of(BODY + "none")
    with pytest.raises(UserError, match="--config profile=noexchange: no benchmark"):
        load_campaign(toy / "campaign.yaml", profile="noexchange")


def test_a_benchmark_has_the_profiler_of_its_own_framework(
    toy: Path, campaign_of: Callable[[str], Campaign]
) -> None:
    file = toy / "benchmarks" / "toy" / "benchmark.yaml"
    content = yaml.safe_load(file.read_text())
    for framework, other in (("torch", "tensorflow"), ("torch", "horovod_timeline"),
                             ("tensorflow", "torch")):  # fmt: skip
        file.write_text(yaml.safe_dump({**content, "framework": framework}))
        assert campaign_of(BODY + framework).experiments[0].profiles
        with pytest.raises(UserError, match=rf"{other}.: benchmark toy runs on {framework}; "):
            campaign_of(BODY + other)
        # Asked of the whole campaign, only those that have it, and one has to.
        campaign_of(BODY + "none")
        with pytest.raises(UserError, match=f"--config profile={other}: no benchmark"):
            load_campaign(toy / "campaign.yaml", profile=other)


def test_what_the_launcher_asks_of_it(tmp_path: Path) -> None:
    assert environment("noexchange", tmp_path) == {"SCALESWEEP_PROFILE": "noexchange"}
    assert left_files("noexchange", tmp_path) == {"kind": "noexchange", "files": []}
    assert lacks("noexchange", [], {"spans": {"exchange": "left out"}}) == ""
    for notes in ({}, None, {"spans": {}}, {"spans": 1}):
        assert "does not say that it left out" in lacks("noexchange", [], notes)
    assert lacks("cprofile", [], {}) == "the run wrote no profile"
    assert lacks("cprofile", ["rank0.prof"], {}) == ""
