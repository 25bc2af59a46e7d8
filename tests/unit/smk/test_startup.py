"""What a call does while the Snakefile is parsed, and before the first job."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from scalesweep.config.campaign import Campaign
from scalesweep.core.errors import UserError
from scalesweep.core.files import digest_of
from scalesweep.core.locks import RUNS
from scalesweep.core.record import FAILURE, RECORD, write_record
from scalesweep.planning.plan import build_plan, write_plan
from scalesweep.smk.context import SnakemakeContext
from scalesweep.smk.startup import prepare
from scalesweep.smk.submission import Submission
from scalesweep.state.run_state import INDEX
from scalesweep.state.stock import STATE, note_state, take_stock
from tests.fakes.folder_tree import tree
from tests.fakes.records import make_record

Load = Callable[..., Campaign]


@pytest.fixture
def campaign(campaign_of: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Campaign:
    """A campaign of three runs: one done, one that this machine cannot do, one that failed."""
    monkeypatch.chdir(tmp_path)
    campaign = campaign_of("axes: {size: [1, 2, 3]}")
    done, unsupported, failed = campaign.unique_runs().values()
    for (_, run), more in ((done, {}), (unsupported, {"unsupported": "no GPU"})):
        write_record(campaign.runs_folder / run.run_id, record_of(run, **more))
    folder = campaign.runs_folder / failed[1].run_id
    folder.mkdir()
    (folder / FAILURE).write_text(json.dumps({"cause": "KILLED", "detail": "signal SIGKILL"}))
    return campaign


def record_of(run: Any, **more: Any) -> dict[str, Any]:
    return make_record(run.run_id, benchmark="toy", point=dict(run.point), **more)


def call(campaign: Campaign, **options: str) -> SnakemakeContext:
    return prepare([campaign.file], options, False)[0]


def runs_of(campaign: Campaign) -> list[Path]:
    return [campaign.runs_folder / run_id for run_id in campaign.unique_runs()]


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def damage(campaign: Campaign) -> None:
    edit(runs_of(campaign)[0] / RECORD, '"wall_s": 200.5', '"wall_s": 2.0')


def other(campaign: Campaign) -> None:
    """A record of another schema."""
    path = runs_of(campaign)[0] / RECORD
    record = {**json.loads(path.read_text()), "schema": 5}
    del record["digest"]
    path.write_text(json.dumps({**record, "digest": digest_of(record)}))


def edited(campaign: Campaign) -> None:
    edit(
        campaign.file.parent / "benchmarks" / "toy" / "benchmark.yaml", "default: 1.0", "default: 3"
    )


def all_done(campaign: Campaign) -> None:
    """Everything is done, and a plan was made of another state."""
    for _, run in campaign.unique_runs().values():
        write_record(campaign.runs_folder / run.run_id, record_of(run))
    states = take_stock(campaign, campaign.unique_runs())
    write_plan(campaign, build_plan(campaign, states), as_json=True)
    note_state(campaign, states)
    (campaign.results / STATE).write_text("{}")


def whole(folder: Path) -> dict[str, Any]:
    """All but caches."""
    caches = ("results", f"results/{STATE}", "results/runs/toy", f"results/runs/toy/{INDEX}")
    return {name: what for name, what in tree(folder).items() if name not in caches}


CHANGES = [damage, other, edited, all_done]


@pytest.mark.parametrize("change", CHANGES)
def test_parsing_writes_nothing_but_caches(
    campaign: Campaign, tmp_path: Path, change: Callable[[Campaign], None]
) -> None:
    change(campaign)
    before = whole(tmp_path)
    for options in ({}, {"retry": "unsupported"}):
        try:
            call(campaign, **options)
        except UserError as error:
            assert change is other
            assert "another version of scalesweep wrote the record (schema 5" in str(error)
        assert whole(tmp_path) == before


def test_what_is_in_the_way_of_pending_runs_is_set_aside_first(campaign: Campaign) -> None:
    done, unsupported, failed = (folder.name for folder in runs_of(campaign))
    damage(campaign)
    assert call(campaign).pending == (done, failed)
    context, preflight, _ = prepare([campaign.file], {"retry": "unsupported"}, False)
    assert sorted(context.pending) == sorted((done, unsupported, failed))
    preflight.context.to_run.update(context.pending)
    preflight.begin("local")
    preflight.held[RUNS].close()
    for run_id in (done, unsupported):
        assert (campaign.runs_folder / run_id / "record.json.broken").exists()
        assert not (campaign.runs_folder / run_id / RECORD).exists()


def test_runs_that_were_finished_meanwhile_are_not_started(campaign: Campaign) -> None:
    context, preflight, _ = prepare([campaign.file], {}, False)
    (failed,) = context.pending
    context.to_run.add(failed)
    write_record(campaign.runs_folder / failed, record_of(context.runs[failed][1]))
    with pytest.raises(UserError, match="meanwhile finished 1 of the pending runs; run snakemake"):
        preflight.begin("local")
    preflight.held[RUNS].close()


@pytest.mark.parametrize("dry", [True, False])
def test_a_dry_run_settles_nothing(
    campaign: Campaign, monkeypatch: pytest.MonkeyPatch, dry: bool
) -> None:
    site = campaign.file.parent / "sites" / "toy.yaml"
    site.write_text(site.read_text().replace("oversubscribe: true\n", "") + "slurm: {}\n")
    settled: list[object] = []
    monkeypatch.setattr(Submission, "find_live", lambda *_: None)
    monkeypatch.setattr(Submission, "settle_past", lambda _: settled.append(dry))
    prepare([campaign.file], {}, cluster=True, dry=dry)
    assert bool(settled) is not dry
