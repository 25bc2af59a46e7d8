"""What a call does while the Snakefile is parsed; a dry run does none of it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from scalesweep.config.campaign import Campaign
from scalesweep.core.errors import UserError
from scalesweep.core.files import digest_of
from scalesweep.core.record import FAILURE, RECORD, write_record
from scalesweep.planning.plan import build_plan, write_plan
from scalesweep.smk.context import SnakemakeContext
from scalesweep.smk.startup import prepare
from scalesweep.state.noted_state import STATE, note_state
from scalesweep.state.stock import take_stock
from tests.fakes.folder_tree import tree

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
    return {
        "run_id": run.run_id, "benchmark": "toy", "version": 1, "point": dict(run.point),
        "repeat": 0, "site": "toy", "source": "measured", "started": "2026-01-01T00:00:00+00:00",
        "ended": "2026-01-01T00:00:01+00:00", "wall_s": 1.0, "attempt": 1, "phases": {},
        "metrics": {}, "work": {}, "resources": {}, "environment": {}, "notes": {}, "git": None,
        "command": [], **more,
    }  # fmt: skip


def call(campaign: Campaign, dry: bool, reports: bool = False, **options: str) -> SnakemakeContext:
    verbs = ("report",) if reports else ("run",)
    context, _, _ = prepare([campaign.file], options, False, dry, verbs)
    return context


def runs_of(campaign: Campaign) -> list[Path]:
    return [campaign.runs_folder / run_id for run_id in campaign.unique_runs()]


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def damage(campaign: Campaign) -> None:
    edit(runs_of(campaign)[0] / RECORD, '"wall_s": 1.0', '"wall_s": 2.0')


def other(campaign: Campaign) -> None:
    """A record of another schema."""
    path = runs_of(campaign)[0] / RECORD
    record = {**json.loads(path.read_text()), "schema": 4}
    del record["digest"]
    path.write_text(json.dumps({**record, "digest": digest_of(record)}))


def edited(campaign: Campaign) -> None:
    edit(
        campaign.file.parent / "benchmarks" / "toy" / "benchmark.yaml", "default: 1.0", "default: 3"
    )


def no_record(campaign: Campaign) -> None:
    (runs_of(campaign)[0] / RECORD).unlink()


def all_done(campaign: Campaign) -> None:
    """Everything is done, and a plan was made of another state."""
    for _, run in campaign.unique_runs().values():
        write_record(campaign.runs_folder / run.run_id, record_of(run))
    states = take_stock(campaign, campaign.unique_runs())
    write_plan(campaign, build_plan(campaign, states), as_json=True)
    note_state(campaign, states)
    (campaign.results / STATE).write_text("{}")


def nothing(campaign: Campaign) -> None:
    pass


def whole(folder: Path) -> dict[str, Any]:
    """All but the noted state, a cache."""
    noted = ("results", f"results/{STATE}")
    return {name: what for name, what in tree(folder).items() if name not in noted}


CHANGES = [nothing, damage, other, edited, no_record, all_done]


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("known", [False, True], ids=["first look", "index"])
def test_a_dry_run_changes_nothing(
    campaign: Campaign, tmp_path: Path, change: Callable[[Campaign], None], known: bool
) -> None:
    if known:
        take_stock(campaign, campaign.unique_runs())
    change(campaign)
    before = whole(tmp_path)
    for options in ({}, {"retry": "unsupported"}, {"reports": True}):
        try:
            call(campaign, dry=True, **options)
        except UserError as error:
            assert change is other
            assert "another version of scalesweep wrote the record (schema 4" in str(error)
        assert whole(tmp_path) == before


def test_a_dry_run_shows_what_a_call_would_do(campaign: Campaign) -> None:
    """Nothing is written meanwhile."""
    done, unsupported, failed = (folder.name for folder in runs_of(campaign))
    damage(campaign)
    context = call(campaign, dry=True)
    missing = [Path(path) for path in context.pending_markers()]
    assert [path.name for path in missing] == [done, failed]
    assert not any(path.exists() for path in missing)
    context = call(campaign, dry=True, retry="unsupported")
    assert len(context.pending) == 3
    # The same call, not dry: the record is set aside.
    context = call(campaign, dry=False)
    assert context.pending == (done, failed)
    assert not any(Path(path).exists() for path in context.pending_markers())
    assert (campaign.runs_folder / done / "record.json.broken").exists()
    call(campaign, dry=False, retry="unsupported")
    assert not (campaign.runs_folder / unsupported / RECORD).exists()


def test_a_new_state_is_noted_and_known_then(campaign: Campaign) -> None:
    all_done(campaign)
    stamps = []
    for dry in (True, False, False):
        (noted,) = call(campaign, dry=dry).inventory_input()
        stamps.append(Path(noted).read_text())
    # Until the inventory has said what tables are made of it is as good as new.
    assert len(set(stamps)) == 3
    (campaign.results / "plan").mkdir()
    (campaign.results / "plan" / "e.json").touch()
    call(campaign, dry=False)
    assert (campaign.results / STATE).read_text() == stamps[-1]


def test_stale_runs_are_never_awaited(campaign: Campaign, caplog: pytest.LogCaptureFixture) -> None:
    edited(campaign)
    context = call(campaign, dry=False)
    failed = runs_of(campaign)[2].name
    assert context.awaited == (failed,)
    assert "rate was 1.0, is 3.0 (2 runs)" in caplog.text
