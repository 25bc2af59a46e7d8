"""Foreign programs: what benchmark.yaml may say, what starts, what is recorded and read again."""

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from scalesweep.compute.launcher import launch
from scalesweep.config.benchmark import Benchmark
from scalesweep.config.campaign import Campaign, load_campaign
from scalesweep.core.errors import UserError
from scalesweep.core.paths import LAUNCHERS
from scalesweep.core.rank_columns import machine_names
from scalesweep.core.record import read_failure, read_record
from scalesweep.jobs.missing_programs import missing_programs
from scalesweep.jobs.run_spec import PROFILED_RANK, run_spec
from scalesweep.state.agreement import OTHER_PATTERNS
from scalesweep.state.reextract import reread
from scalesweep.state.run_state import RunState, scan
from scalesweep.state.stock import take_stock
from tests.conftest import ROOT
from tests.fakes.foreign import SITE, patterns


@pytest.fixture
def campaign(foreign: Path) -> Callable[..., Campaign]:
    def load(head: str | None = None, **fixed: Any) -> Campaign:
        path = foreign / "c.yaml"
        programs = f"programs: {{speaker: {foreign}/speaker.py}}" if head is None else head
        path.write_text(
            f"campaign: c\nsite: toy\nresults: {foreign}/results\n{programs}\nexperiments:\n"
            f"  e:\n    benchmark: foreign\n    fixed: {json.dumps(fixed)}\n"
        )
        return load_campaign(path)

    return load


# The command


def order_of(campaign: Campaign) -> Any:
    experiment = campaign.experiments[0]
    return run_spec(campaign, experiment, experiment.runs[0])


def words(campaign: Campaign) -> list[str]:
    return list(order_of(campaign)["argv"])


def test_the_command_is_filled_in(foreign: Path, campaign: Callable[..., Campaign]) -> None:
    expected = [sys.executable, f"{foreign}/speaker.py", "--size=4", "--sizes=1,2"]
    assert words(campaign()) == [*expected, "--fast=true", "--out={out}"]
    more = ["--fast=false", "--out={out}", "--extra=a b"]
    assert words(campaign(extra="a b", fast=False)) == expected + more


def test_a_benchmark_has_a_launcher_of_its_own(
    foreign: Path, edited: Callable[..., Benchmark], campaign: Callable[..., Campaign]
) -> None:
    assert words(campaign(ranks=2))[:2] == [sys.executable, SITE["launch"]["multi"][1]]  # type: ignore[index]
    multi = ["{python}", "-m", "torch.distributed.run", "--nproc-per-node={ranks_per_node}"]
    edited(launch={"single": ["{bin}/run"], "multi": multi})
    program = [sys.executable, f"{foreign}/speaker.py"]
    assert words(campaign())[:3] == [str(Path(sys.executable).with_name("run")), *program]
    found = words(campaign(ranks=4, ranks_per_node=2))
    assert found[:6] == [sys.executable, *multi[1:3], "--nproc-per-node=2", *program]


def missing_of(planned: Campaign) -> dict[str, str]:
    (experiment,) = planned.experiments
    return missing_programs(planned, experiment.benchmark, experiment.points[0], True)


def test_a_program_that_nobody_names(
    foreign: Path, edited: Callable[..., Benchmark], campaign: Callable[..., Campaign]
) -> None:
    missing = missing_of(campaign(""))
    assert missing.keys() == {"speaker"}
    assert missing["speaker"].startswith(f"{foreign}/c.yaml: experiments.e: benchmark foreign")
    assert f"add to {foreign}/sites/toy.yaml" in missing["speaker"]
    site = foreign / "sites" / "toy.yaml"
    site.write_text(yaml.safe_dump({**SITE, "programs": {"speaker": "~/speaker.py"}}))
    assert words(campaign(""))[1] == str(Path.home() / "speaker.py")
    assert words(campaign("programs: {speaker: ./x/y.py}"))[1] == str(Path("x/y.py").absolute())
    assert words(campaign("programs: {speaker: speaker}"))[1] == "speaker"
    name = f"{edited(command=['{python}', '{benchmark}/trian.py']).folder}/trian.py"
    assert missing_of(campaign())[name].endswith(f"benchmark.yaml: command: no file {name}")
    # Where nothing is started, nothing has to be there.
    site.write_text(yaml.safe_dump({k: v for k, v in SITE.items() if k != "launch"}))
    assert campaign("").programs == {}


@pytest.mark.parametrize(
    ("multi", "env", "labelled"),
    [
        (["srun", "--label", "-n", "{ranks}"], {}, True),
        (["/usr/bin/srun"], {"SLURM_LABELIO": "1"}, True),
        (["srun", "-n", "{ranks}"], {}, False),
        (["horovodrun", "-l"], {}, False),
    ],
)
def test_srun_labels_are_known_by_the_launcher(
    foreign: Path, campaign: Callable[..., Campaign], multi: list[str], env: Any, labelled: bool
) -> None:
    site = {**SITE, "env": env, "launch": {"single": [], "multi": multi}}
    (foreign / "sites" / "toy.yaml").write_text(yaml.safe_dump(site))
    assert order_of(campaign(ranks=2))["srun_labels"] is labelled


def test_measured_runs_have_no_profiler(campaign_of: Callable[[str], Campaign]) -> None:
    campaign = campaign_of("axes: {ranks: [1, 2]}\nrepeats: 2\nprofile: nsys\n")
    experiment = campaign.experiments[0]
    bare = campaign_of("axes: {ranks: [1, 2]}\nrepeats: 2\n").experiments[0]
    assert experiment.runs == bare.runs
    profiled = run_spec(campaign, experiment, experiment.profiles[0])["argv"]
    wrapped = [campaign.site.python, str(LAUNCHERS / PROFILED_RANK), "nsys", "{out}/profile"]
    place = profiled.index(wrapped[1]) - 1
    assert profiled[place : place + 4] == wrapped
    assert [*profiled[:place], *profiled[place + 4 :]] == words(campaign)


# A run


def started(foreign: Path) -> int:
    path = foreign / "started"
    return len(path.read_text().split()) if path.exists() else 0


def run(campaign: Campaign) -> tuple[int, Path]:
    order = order_of(campaign)
    return launch(order, ROOT), Path(order["folder"])


def test_a_foreign_run_leaves_a_record(
    foreign: Path, campaign: Callable[..., Campaign], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "2")  # as Snakemake sets it in every shell job
    monkeypatch.setenv("NCCL_DEBUG", "INFO")
    monkeypatch.setenv("TF_SECRET", "x")
    code, path = run(campaign(ranks=2))
    assert code == 0 and started(foreign) == 2
    record = read_record(path / "record.json")
    values = {name: metric["value"] for name, metric in record["metrics"].items()}
    assert values == {"total_rate": 8.5, "rate": 8.5, "peak": 1000.5}
    assert record["metrics"]["rate"]["scope"] == "rank"
    assert record["phases"] == {} and record["work"] == {"samples_per_epoch": 8}
    assert record["environment"]["variables"].get("NCCL_DEBUG") == "INFO"
    assert not {"OMP_NUM_THREADS", "TF_SECRET"} & record["environment"]["variables"].keys()
    assert len(machine_names(record["resources"])) == 1 and record["environment"]["node"]["cores"]
    with np.load(path / "samples.npz") as samples:
        assert samples["rate"].tolist() == [[4, 5], [8, 9], [12, 13]]
        assert samples["peak"].tolist() == [1000, 1001]
    assert record["notes"]["extract"]["metrics"]["rate"] == {"ranks": "0-1"}


def test_the_wall_time_is_measured_where_nothing_is_read(
    campaign: Callable[..., Campaign], edited: Callable[..., Benchmark]
) -> None:
    edited(result="wall_time")
    code, path = run(campaign())
    record = read_record(path / "record.json")
    assert code == 0 and record["metrics"]["wall_time"]["value"] == record["wall_s"] > 0


# Reading again


def state(campaign: Campaign) -> RunState:
    run_id = campaign.experiments[0].runs[0].run_id
    return scan(campaign.runs_folder, [run_id])[run_id]


def to_reread(campaign: Campaign) -> int:
    states = take_stock(campaign, campaign.unique_runs()).values()
    return sum(OTHER_PATTERNS in state.detail for state in states)


def test_runs_are_mended_by_their_logs(
    foreign: Path, campaign: Callable[..., Campaign], edited: Callable[..., Benchmark]
) -> None:
    wrong, right, new = ({"pattern": f"{word} (.*)"} for word in ("Total", "total:", "step 0:"))
    edited(wrong)
    code, path = run(campaign())
    assert code == 1 and not state(campaign()).settled  # as any other failure
    failure = read_failure(path) or {}
    assert failure["cause"] == "BAD_RESULT" and "step 2: 12.0" in failure["last_lines"]
    assert failure["detail"].startswith("metric total_rate: pattern 'Total (.*)' matches no line")
    reread(path, patterns(edited(right)))
    assert state(campaign()).status == "done" and to_reread(campaign()) == 0
    # In vain: nothing is lost.
    old, samples = read_record(path / "record.json"), (path / "samples.npz").read_bytes()
    with pytest.raises(UserError, match=r"'Total \(\.\*\)' matches no line of stdout.log"):
        reread(path, patterns(edited(wrong)))
    assert read_record(path / "record.json") == old and to_reread(campaign()) == 1
    read_with = patterns(edited(new))
    reread(path, read_with)
    record, before = read_record(path / "record.json"), patterns(edited(right)).order["digest"]
    assert (record["metrics"]["total_rate"]["value"], started(foreign)) == (4, 1)
    changed = {key for key, it in record.items() if it != old.get(key)}
    assert changed == {"digest", "metrics", "notes"}
    assert record["notes"]["extract"]["read_before_with"] == before
    assert record["notes"]["extract"]["extract_digest"] == read_with.order["digest"]
    assert json.loads((path / "attempt-1" / f"record.{before}.json").read_text()) == old
    assert (path / "attempt-1" / f"samples.{before}.npz").read_bytes() == samples
    # Without logs a failure can only be run again.
    edited(wrong)
    _, path = run(campaign(size=5))
    shutil.rmtree(path / "attempt-1")
    read_with = patterns(edited(right))
    assert to_reread(campaign(size=5)) == 1
    with pytest.raises(UserError, match=r"attempt-1/attempt\.json is gone or not whole"):
        reread(path, read_with)
    assert to_reread(campaign(size=5)) == 0 and state(campaign(size=5)).status == "new"
