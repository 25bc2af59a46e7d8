"""From imported logs to records and a campaign."""

from pathlib import Path
from typing import Any

import pytest

from scalesweep.config.campaign import load_campaign
from scalesweep.core.errors import UserError
from scalesweep.core.record import read_record
from scalesweep.importers.detect_logs import RULES
from scalesweep.importers.write_campaign import campaign_of, write_campaign
from tests.fakes.imported_runs import import_runs, read_source
from tests.fakes.logs import LINES, TEXT, Read, one, rate


def test_sources(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such file or folder"):
        read_source(tmp_path / "no")
    (tmp_path / "README").write_text("nothing\n")
    for number in (10, 9):
        (tmp_path / f"run{number}.log").write_text(one(1000.0 + number))
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "log").write_text(TEXT)
    runs, refusals, others = read_source(tmp_path)
    assert [rate(found) for found in runs] == [1009.0, 1010.0]
    assert not refusals
    assert [file.name for file in others] == ["README"]
    assert len(read_source(tmp_path / "run9.log")[0]) == 1


def test_repeats_in_order_and_copies(read: Read, tmp_path: Path) -> None:
    runs, _ = read(one(1000.0) + one(1010.0), one(1020.0), one(1010.0))
    written, refusals = import_runs(runs, tmp_path / "runs" / "imported")
    assert [entry.repeat for entry in written] == [0, 1, 2]
    assert [r.reason for r in refusals] == [
        f"the same run as in {tmp_path}/log0.txt:{len(LINES) + 25}"
    ]
    records = {path: path.stat().st_mtime_ns for path in tmp_path.glob("runs/*/*/record.json")}
    totals = {
        record["repeat"]: record["metrics"]["total_images_per_second"]["value"]
        for record in map(read_record, records)
    }
    assert totals == {0: 1000.0, 1: 1010.0, 2: 1020.0}
    again, _ = import_runs(runs, tmp_path / "runs" / "imported")
    assert len(again) == 3
    assert records == {path: path.stat().st_mtime_ns for path in records}
    runs, _ = read(one(1001.0))  # another one of this point is one more repeat
    written, refusals = import_runs(runs, tmp_path / "runs" / "imported")
    assert ([entry.repeat for entry in written], refusals) == ([3, 2, 1], [])


def test_unlike_machines_are_no_repeats(read: Read, tmp_path: Path) -> None:
    other = one(2000.0).replace("Tesla M60", "Tesla P100-PCIE-16GB")
    logs = one(1000.0), other, one(1100.0, "--xla=True"), one(1001.0)
    runs, _ = read(*logs)
    written, refusals = import_runs(runs, tmp_path / "runs" / "imported")
    assert refusals == [] and len({str(entry.point) for entry in written}) == 1
    content = campaign_of(written, RULES, "", "imported", str(tmp_path))
    assert [(e["repeats"], e["description"]) for e in content["experiments"].values()] == [
        ([[0, 3]], "Imported runs (GPU: Tesla M60)."),
        ([[1]], "Imported runs (GPU: Tesla P100-PCIE-16GB)."),
        ([[2]], "Imported runs (--xla: True, GPU: Tesla M60)."),
    ]


def test_values_that_no_parameter_takes(read: Read, tmp_path: Path) -> None:
    runs, _ = read(one(1000.0, model="mynet"), one(1000.0).replace("NCHW", "NCWH"))
    written, refusals = import_runs(runs, tmp_path / "runs" / "imported")
    assert written == []
    assert refusals[0].reason.startswith("model = 'mynet' is not one of trivial, ")
    assert refusals[1].reason == "data_format = 'NCWH' is not one of NHWC, NCHW; did you mean NCHW?"


def campaign(read: Read, tmp_path: Path, *texts: str) -> Any:
    runs, _ = read(*texts)
    written, refusals = import_runs(runs, tmp_path / "runs" / "imported")
    assert refusals == []
    content = campaign_of(written, RULES, "Imported.", "imported", str(tmp_path))
    write_campaign(content, tmp_path / "campaign.yaml")
    return load_campaign(tmp_path / "campaign.yaml")


def test_a_campaign_of_scaling_and_layouts(read: Read, tmp_path: Path) -> None:
    nccl: dict[str, Any] = {"devices": 2, "update": "replicated", "more": "Use NCCL:    True\n"}
    loaded = campaign(
        read, tmp_path,
        one(1000.0) + one(600.0, data_format="NHWC") + one(1100.0, devices=2)
        + one(1170.0, "--local_parameter_device cpu", devices=2) + one(1180.0, **nccl)
        + one(50.0, model="resnet110") + one(1010.0),
    )  # fmt: skip
    (experiment,) = loaded.experiments
    assert (experiment.name, experiment.scaling) == ("tf_cnn_benchmarks", "weak")
    assert (experiment.axes[0], len(experiment.points)) == ("devices", 6)
    # Each run that was imported, and no other: none is pending.
    assert {run.run_id for run in experiment.runs} == {
        path.parent.name for path in tmp_path.glob("runs/*/*/record.json")
    }
