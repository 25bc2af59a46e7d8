"""Imports into a site add up, in any order, and what they leave out is listed."""

import argparse
import gzip
import itertools
import json
import lzma
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from scalesweep.config.campaign import load_campaign
from scalesweep.core.errors import UserError
from scalesweep.core.record import read_record
from scalesweep.importers import COSMOFLOW, LOGS, TABLE
from scalesweep.importers.cli import deliver, why_failed
from scalesweep.importers.detect_logs import RULES, read_items
from scalesweep.importers.imported_run import COPY, NOT_READ, REFUSED, Refusal, not_read
from scalesweep.importers.rank_map import RankMap, read_ranks
from scalesweep.importers.refusal_list import RefusalList
from scalesweep.importers.which_importer import kind_of
from scalesweep.importers.write_campaign import campaign_of, doubtful, write_campaign
from scalesweep.importers.write_records import RecordStore, Written, write_runs
from scalesweep.state.run_state import scan
from tests.fakes import logs as fake
from tests.fakes import mllog
from tests.fakes.imported_runs import Read, import_runs, read_source
from tests.unit.importers.test_cosmoflow import write as write_cosmoflow

Import = Callable[..., list[Written]]


@pytest.fixture
def take(tmp_path: Path) -> Import:
    """Import a log or folder of ``sources`` into the site ``<site>/imported``."""

    def importer(name: str, site: str = "runs", ranks: RankMap | None = None) -> list[Written]:
        store = RecordStore(tmp_path / site / "imported")
        source = tmp_path / "sources" / name
        items = list(write_runs(read_items(source, ranks or RankMap({}, 32)), store))
        assert not [item for item in items if isinstance(item, Refusal)]
        return items  # type: ignore[return-value]

    (tmp_path / "sources").mkdir()
    return importer


def outcome(folder: Path) -> list[tuple[str, str, str]]:
    """Experiment, point and numbers of each run that the campaign of a site plans."""
    store = RecordStore(folder)
    content = campaign_of(store.runs, RULES, folder.name, "results")
    write_campaign(content, folder.parent / "c.yaml")
    campaign = load_campaign(folder.parent / "c.yaml")
    states = scan(folder, campaign.unique_runs())
    # None is pending that was never there.
    assert {state.status for state in states.values()} <= {"done", "unfinished"}
    return sorted(
        (
            experiment.name,
            json.dumps(dict(run.point), sort_keys=True),
            json.dumps(read_record(folder / run.run_id / "record.json")["metrics"], sort_keys=True),
        )
        for experiment in campaign.experiments
        for run in experiment.runs
    )


def mlperf(folder: Path, needed: Sequence[int], first: int = 0, **told: Any) -> None:
    """A log of each run that needs so many epochs."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, count in enumerate(needed, first):
        lines = mllog.training([0.3] * (count - 1) + [0.1], ms=mllog.T0 + number * 10**9, **told)
        (folder / f"result_{number}.txt").write_text("".join(lines))


@pytest.mark.slow
def test_the_order_of_imports_does_not_matter(take: Import, tmp_path: Path) -> None:
    sources = tmp_path / "sources"
    mlperf(sources / "a", [3, 5, 4])
    mlperf(sources / "b", [2, 6], first=5, submission_platform="Other")
    (sources / "c").mkdir()
    (sources / "c" / "log.txt").write_text(
        fake.one(1000.0) + fake.one(1010.0) + fake.one(1900.0, devices=2)
        + fake.one(600.0, Data_format="NHWC") + fake.one(3000.0).replace("Tesla M60", "Tesla K80")
    )  # fmt: skip
    steps = ("a/result_1.txt", "a", "b", "c/log.txt")
    found = []
    for number, order in enumerate([*itertools.permutations(steps)][::11]):
        for name in order:
            take(name, f"site{number}")
        found.append(outcome(tmp_path / f"site{number}" / "imported"))
    take("", "all")
    assert all(one == outcome(tmp_path / "all" / "imported") for one in found)
    assert len(found[0]) >= 10
    # A layout that ran at one scale alone is in the experiment of its series.
    assert len({name for name, *_ in found[0]}) == 4


def test_a_run_whose_ranks_were_wrong_moves(take: Import, tmp_path: Path) -> None:
    mlperf(tmp_path / "sources" / "a", [3])
    (first,) = take("a", ranks=RankMap({}, 16))
    (second,) = take("a", ranks=RankMap({}, 32))
    assert (first.point["ranks"], second.point["ranks"]) == (16, 32)
    store = RecordStore(tmp_path / "runs" / "imported")
    assert [run.run_id for run in store.runs] == [second.run_id]
    assert (store.folder / first.run_id / "record.json.broken").is_file()  # nothing is lost


def test_unfinished_runs_have_a_state_of_their_own(take: Import, tmp_path: Path) -> None:
    folder = tmp_path / "sources" / "a"
    mlperf(folder, [3])
    mlperf(folder, [4], first=1, status="aborted")
    mlperf(folder, [6], first=2, status=None)
    runs = take("a")
    site = tmp_path / "runs" / "imported"
    states = scan(site, [run.run_id for run in runs])
    assert [(states[run.run_id].status, states[run.run_id].detail) for run in runs] == [
        ("done", ""),
        ("unfinished", "aborted after 4 epochs"),
        ("unfinished", "cut after 6 epochs: the log has no run_stop"),
    ]


def test_a_log_that_has_grown_replaces_what_it_gave_before(take: Import, tmp_path: Path) -> None:
    lines = mllog.training([0.5, 0.4, 0.1])
    for cut in (-8, None):
        (tmp_path / "sources" / "log").write_text("".join(lines[:cut]))
        take("log")
    (run,) = RecordStore(tmp_path / "runs" / "imported").runs
    assert run.unfinished == "" and run.record["metrics"]["epochs_run"]["value"] == 3


def test_what_a_file_held_before_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log, more = tmp_path / "log", {"measured": None, "report": False, "site": "imported"}
    args = argparse.Namespace(source=str(log), results=str(tmp_path / "results"), **more)
    for losses in ([0.5, 0.1], [0.5, 0.2]):
        log.write_text("".join(mllog.training(losses)))
        deliver(args, LOGS, read_items(log, RankMap({}, 32)), RULES)
    assert capsys.readouterr().out.count("note: 1 earlier run of these files stays") == 1


def test_identical_content_is_one_run(tmp_path: Path) -> None:
    text = fake.one().encode()
    for name, content in (
        ("a", text), ("b", text.replace(b"\n", b"\r\n")), ("c.gz", gzip.compress(text)),
        ("d.xz", lzma.compress(text)),
    ):  # fmt: skip
        (tmp_path / name).write_bytes(content)
    written, copies = import_runs(read_source(tmp_path)[0], tmp_path / "runs" / "imported")
    assert len(written) == 1 and [item.what for item in copies] == [COPY] * 3


def test_ranks_by_folder_and_file(take: Import, tmp_path: Path) -> None:
    sources = tmp_path / "sources"
    for number, name in enumerate(("n128", "n256", "other")):
        mlperf(sources / name, [3, 4], first=3 * number)
    ranks = read_ranks('{"n1*": "16", n256: 32, "other/result_7.txt": 64, "other": 8}')
    assert ranks is not None
    runs = take("", ranks=ranks)
    assert [run.point["ranks"] for run in runs] == [16, 16, 32, 32, 8, 64]


@pytest.mark.parametrize("text", ["{n128}", '{"/": 4}'])
def test_maps_that_are_none(text: str) -> None:
    with pytest.raises(UserError, match=r"(n128|/): is neither a whole number from 1 to 9999999"):
        read_ranks(text)


def test_the_list_of_refusals(tmp_path: Path) -> None:
    results, source = tmp_path / "results", tmp_path / "source"
    results.mkdir()
    found = RefusalList(results, source)
    for n in range(1, 1001):
        found.add(Refusal(source / "log", f"cut behind step {n}", n, "tf_cnn_benchmarks"))
    for n in range(20):
        found.add(Refusal(source / "log", "the same run as in x:1", n, "b", COPY))
    for n in range(7):
        found.add(not_read(source / f"f{n}"))
    found.write()
    assert [found.count(what) for what in (REFUSED, NOT_READ, COPY)] == [1000, 7, 20]
    lines = list(found.lines())
    assert len(lines) == 18  # and not 1,027
    assert lines[5] == f"refused: 995 more like these: {results}/refused.csv"
    assert len((results / "refused.csv").read_text().splitlines()) == 1028
    ((entry),) = found.entries
    assert (entry["count"], len(entry["places"])) == (1000, 5)
    RefusalList(results, tmp_path).write()  # read again, and all is well with it
    assert list(results.iterdir()) == []


def test_what_a_source_is(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    log, table, keras = (tmp_path / "logs" / name for name in ("a.txt", "t.csv", "k.csv"))
    log.write_text(fake.one(1000.0))
    table.write_text("gpus,images\n1,100\n2,190\n")
    keras.write_text("epoch,acc,loss,val_acc,val_loss\n0,0.5,0.7,0.6,0.6\n")
    result = write_cosmoflow(tmp_path / "results", name="gpu")
    kinds = {log: LOGS, log.parent: LOGS, table: TABLE, result: COSMOFLOW, keras: LOGS}
    assert {source: kind_of(source) for source in kinds} == kinds
    for path in (log, keras):
        path.unlink()
    assert kind_of(log.parent) == TABLE
    (tmp_path / "none").mkdir()
    with pytest.raises(UserError, match="not recognised: a folder of no logs and no profiles"):
        kind_of(tmp_path / "none")
    shutil.copytree(result, tmp_path / "both" / "gpu")
    (tmp_path / "both" / "log.txt").write_text(fake.one(1000.0))
    with pytest.raises(UserError, match=r"several ways: add --as cosmoflow \(.*\) or --as logs"):
        kind_of(tmp_path / "both")


def test_folders_that_tell_what_was_set_part_runs(take: Import, tmp_path: Path) -> None:
    """tf_cnn_benchmarks prints neither use_fp16 nor what else was set: a folder may say it."""
    sources = tmp_path / "sources"
    for kind, rate in (("fp16", 800.0), ("fp32", 500.0)):
        for count in (1, 2):
            folder = sources / kind / f"n{count}"
            folder.mkdir(parents=True)
            text = fake.one(rate * count, devices=count)
            (folder / "log.txt").write_text(text.partition("\n")[2])
    runs = take("")
    assert len(runs) == 4
    experiments = campaign_of(runs, RULES, "imported", "results")["experiments"]
    assert {name for name in experiments if name.endswith(("fp16", "fp32"))} == set(experiments)
    assert len(experiments) == 2  # a series of each, over n1 and n2
    for spec in experiments.values():
        assert spec["scaling"] == "weak" and [len(it) for it in spec["repeats"]] == [1, 1]
        assert "folder: fp" in spec["description"]


@pytest.mark.parametrize(
    "names",
    [("run1", "run2"), ("2024-04-29", "2024-05-02"), ("fp16_rep1", "fp16_rep2"), ("1", "2")],
)
def test_folders_that_number_repeats(take: Import, tmp_path: Path, names: tuple[str, str]) -> None:
    for name, rate in zip(names, (1000.0, 1010.0), strict=True):
        (tmp_path / "sources" / name).mkdir()
        (tmp_path / "sources" / name / "log.txt").write_text(fake.one(rate).partition("\n")[2])
    runs = take("")
    (spec,) = campaign_of(runs, RULES, "imported", "results")["experiments"].values()
    assert spec["repeats"] == [[0, 1]]


@pytest.mark.parametrize(
    ("rates", "doubt"),
    [
        ((1000.0, 1000.0, 1001.0), "2 runs have identical numbers"),
        # Bus bandwidth of an allreduce of 1 GiB of 8 ranks, GB/s: argonne-lcf/alcf-nccl-tests,
        # results_polaris/nccl_2_18/n2.g4.2024-04-29-18-41-24, all_reduce_output.dat.1 to .5: each
        # of other settings of NCCL, which no file states.
        ((9.45, 3.18, 36.14, 36.08, 36.81), "further apart than repeats are"),
        ((36.14, 36.08, 36.81), ""),
        ((1000.0, 1080.0, 1200.0, 1300.0), ""),
    ],
)
def test_repeats_that_are_equal_or_too_far_apart_are_doubted(
    take: Import, tmp_path: Path, rates: tuple[float, ...], doubt: str
) -> None:
    text = "".join(fake.one(100 * rate, second=n + 10) for n, rate in enumerate(rates))
    (tmp_path / "sources" / "log.txt").write_text(text)
    runs = take("log.txt")
    assert [run.repeat for run in runs] == [*range(len(rates))]
    doubts = doubtful(runs)
    assert len(doubts) == bool(doubt)
    assert not doubts or (doubt in doubts[0] and "log.txt:" in doubts[0])


def test_repeats_in_order_and_copies(read: Read, tmp_path: Path) -> None:
    runs, _ = read(fake.one(1000.0) + fake.one(1010.0), fake.one(1020.0), fake.one(1010.0))
    written, refusals = import_runs(runs, tmp_path / "runs" / "imported")
    assert [entry.repeat for entry in written] == [0, 1, 2]
    assert [r.reason for r in refusals] == [
        f"the same run as in {tmp_path}/log_0.txt:{len(fake.TEXT.splitlines()) + 25}"
    ]
    records = {path: path.stat().st_mtime_ns for path in tmp_path.glob("runs/*/*/record.json")}
    again, _ = import_runs(runs, tmp_path / "runs" / "imported")
    assert len(again) == 3
    assert records == {path: path.stat().st_mtime_ns for path in records}
    runs, _ = read(fake.one(1001.0))  # another one of this point is one more repeat
    written, refusals = import_runs(runs, tmp_path / "runs" / "imported")
    assert ([entry.repeat for entry in written], refusals) == ([3, 2, 1], [])


def test_a_report_that_failed_says_why(tmp_path: Path) -> None:
    (tmp_path / "tables.log").write_text("Traceback ...\nValueError: empty\n")
    assert why_failed("Using ...\nerror: a key\n", tmp_path) == "error: a key"
    assert why_failed("Using ...\n", tmp_path) == f"ValueError: empty ({tmp_path}/tables.log)"
