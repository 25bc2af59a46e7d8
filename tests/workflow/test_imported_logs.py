"""Logs through the workflow: imported, scaled over devices, what is not whole named."""

import csv
import json
from pathlib import Path

import pytest

from scalesweep.config.yaml_loader import check_schema
from tests.conftest import Project
from tests.fakes import logs as fake
from tests.fakes import mllog
from tests.recompute.imports import check_logs

pytestmark = pytest.mark.slow


def run_import(project: Project, source: Path, *words: str) -> "tuple[int, str]":
    done = project.scalesweep("import", str(source), *words)
    return done.returncode, done.stdout + done.stderr


def table(results: Path, experiment: str, name: str) -> list[dict[str, str]]:
    with (results / "tables" / experiment / f"{name}.csv").open() as file:
        return list(csv.DictReader(file))


def test_logs_become_tables_over_devices(project: Project, tmp_path: Path) -> None:
    source = tmp_path / "my logs"
    source.mkdir()
    on_cpu = "--local_parameter_device cpu"
    (source / "sweep 1.txt").write_text(
        fake.one(1000.0)
        + fake.one(580.0, data_format="NHWC")
        + fake.one(1170.0, on_cpu, devices=2)
        + fake.one(3000.0, model="resnet20", parameters=[271164.0])
        + fake.one(6000.0, on_cpu, devices=2, model="resnet20", parameters=[271164.0] * 2)
    )
    (source / "sweep 2.txt").write_text(fake.one(1010.0))
    code, told = run_import(project, source)
    assert code == 0, told
    assert "imported: 6 runs, refused: 0" in told
    results = project.path / "results" / "imported"
    rows = table(results, "scaling_parameter_server_cpu_over_parameter_server_gpu", "scaling")
    efficiency = {
        (row["model"], row["devices"]): float(row["total_images_per_second_eff_run"])
        for row in rows
    }
    assert efficiency["alexnet", "2"] == pytest.approx(1170 / 2 / 1005)
    assert efficiency["resnet20", "2"] == pytest.approx(1.0)
    assert {row["source"] for row in rows} == {"imported"}
    layouts = table(results, "data_layout", "points")
    rates = {row["data_format"]: float(row["total_images_per_second_mean_run"]) for row in layouts}
    assert rates == {"NCHW": 1005.0, "NHWC": 580.0}
    assert len(check_logs(results, source)) == 4
    report = (results / "report.html").read_text()
    assert "Tesla M60" in report and "different environments" not in report
    data = json.loads(report.partition('id="report-data">')[2].partition("</script>")[0])
    for chart in data["charts"].values():
        axes = {data["tables"][chart["table"]]["shown"][one["shown"]]["name"]: one["leader"]
                for one in chart["axes"]}  # fmt: skip
        if "devices" in axes:  # which are ranks x devices_per_rank: no axis of its own
            assert "devices_per_rank" not in axes
    assert any(one["scale"] for chart in data["charts"].values() for one in chart["axes"])
    records = sorted(results.glob("runs/imported/*/record.json"))
    for path in records:
        record = json.loads(path.read_text())
        check_schema(record, "record", path)
        assert record["source"] == "imported" and record["wall_s"] is None

    before = {path: path.stat().st_mtime_ns for path in records}
    # A second time, of one of the logs alone, changes nothing: all of them stay.
    code, told = run_import(project, source / "sweep 2.txt")
    assert code == 0 and "imported: 1 runs, refused: 0" in told
    assert before == {p: p.stat().st_mtime_ns for p in results.glob("runs/imported/*/record.json")}
    again = table(results, "scaling_parameter_server_cpu_over_parameter_server_gpu", "scaling")
    assert again == rows
    # What was the same in all runs is said, with its unit and apart from the defaults.
    fixed = report.partition("Held fixed: ")[2].partition("</p>")[0]
    assert "<b>batch_size</b> 128 images" in fixed and "<b>data_set</b> cifar10" in fixed
    assert "warmup_batches" not in fixed and "warmup_batches 10 steps" in report


def test_what_is_not_whole_is_named_and_the_rest_imported(project: Project, tmp_path: Path) -> None:
    whole, cut = fake.one(1000.0), fake.one(1170.0, devices=2)
    log = tmp_path / "log.txt"
    log.write_text(whole + cut[: cut.index("60\timages")] + fake.keras())
    code, told = run_import(project, log, "--results", "results/mine")
    assert code == 0, told
    assert "imported: 2 runs, refused: 1" in told
    (refused,) = [line for line in told.splitlines() if line.startswith("refused:")]
    assert refused.startswith(f"refused: {log}:") and "behind step 50" in refused
    report = (project.path / "results" / "mine" / "report.html").read_text()
    assert "Refused on import" in report and "behind step 50" in report
    assert "1 more run of tf_cnn_benchmarks refused on import" in report
    assert "behind step 50" in (project.path / "results" / "mine" / "refused.csv").read_text()

    log.write_text(cut[: cut.index("60\timages")])
    code, told = run_import(project, log, "--results", "results/none")
    assert code != 0 and "Traceback" not in told
    assert told.splitlines()[-1] == f"error: {log}: no run could be imported"


def test_trainings_become_a_score(project: Project, tmp_path: Path) -> None:
    source = tmp_path / "mlperf"
    source.mkdir()
    for number, epochs in enumerate((3, 5, 4)):
        errors = [0.3] * (epochs - 1) + [0.1]
        lines = mllog.training(errors, ms=mllog.T0 + number * 10**8)
        (source / f"result_{number}.txt").write_text("".join(lines))
    (source / "history.log").write_text("epoch,acc,loss,val_acc,val_loss\n0,0.5,0.7,0.6,0.6\n")
    (source / "deepcam.txt").write_text("".join(mllog.training(benchmark="deepcam")))

    code, told = run_import(project, source, "--results", "results/none")
    assert "imported: 1 runs, refused: 4" in told  # the history, whose rank is assumed
    assert "the log does not state the number of ranks: add --ranks N" in told

    lines = mllog.training([0.3] * 3, ms=mllog.T0 + 10**9, status="aborted")
    (source / "result_3.txt").write_text("".join(lines))
    code, told = run_import(project, source, "--ranks", "{mlperf: 32, history.log: 2}")
    assert code == 0, told
    assert "imported: 6 runs, refused: 0" in told
    results = project.path / "results" / "imported"
    (row,) = table(results, "mlperf_training_other_points", "runs")
    assert row["run_id"].startswith("mlperf_training-r32-")
    runs = table(results, "mlperf_other_points", "runs")
    assert [row["status"] for row in runs] == ["done"] * 3 + ["unfinished"]
    assert [row["epochs_run_mean_run"] for row in runs[:3]] == ["3.0", "5.0", "4.0"]
    times = [float(row["run_time_mean_run"]) for row in runs[:3]]
    assert times == pytest.approx([mllog.run_time(3), mllog.run_time(5), mllog.run_time(4)])
    (score,) = table(results, "mlperf_other_points", "score")
    # The best is dropped, and as the worst the one that did not finish.
    assert float(score["score"]) == pytest.approx((mllog.run_time(4) + mllog.run_time(5)) / 2)
    assert (score["runs"], score["reached"], score["standard"]) == ("4", "3", "False")
    (row,) = table(results, "histories_other_points", "runs")
    assert row["run_id"].startswith("keras_history-r2-")
    curve = table(results, "mlperf_other_points", "epochs")
    assert [row["validation_mae"] for row in curve[:3]] == ["0.3", "0.3", "0.1"]
    assert "global_times" not in curve[0]
    report = (results / "report.html").read_text()
    assert "Score of 4 runs (MLPerf takes 10; best and worst dropped)" in report
    assert "aborted after 3 epochs" in report and "1 unfinished" in report
    for path in sorted(results.glob("runs/imported/*/record.json")):
        check_schema(json.loads(path.read_text()), "record", path)
