"""Studies come out: of what is shipped, and of small files in the form of their sources."""

import contextlib
import csv
import json
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path

import pytest

from scalesweep.commands import gallery
from scalesweep.core.errors import UserError
from scalesweep.gallery.recompute import AGREES, DIFFERS, MISSING
from scalesweep.gallery.study import load_study, study_names
from tests.fakes import logs as fake
from tests.fakes.gallery import plotly_page, tables_only
from tests.fakes.mllog import T0
from tests.unit.importers.test_mlperf_training import (
    COREWEAVE,
    FACTOR,
    SYSTEM,
    lines_of,
    power,
    submission,
    with_power,
)

Run = Callable[..., list[str]]
SHIPPED = [name for name in study_names() if load_study(name).is_shipped]

# Three rows as llm-foundry prints them, in two tables.
LLM_FOUNDRY = """\
# MPT Training Benchmarks

## H100 80GB BF16
|  Model | SeqLen (T) | # GPUs | GPU | MFU | HFU | MicroBatchSize | GradAccum | GlobalBatchSize | Throughput (T/s) | Throughput (T/s/GPU) | Precision | MP Mode | Sharding Strategy | Activation Checkpointing | NumParams | Model TFLOP | Throughput (S/s) | GlobalBatchSize (T) | Activation CPUOffload |
|  --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |
|  7b | 2048 | 512 | h100_80gb | 42.2 | 42.2 | 6 | 1 | 3072 | 4951479 | 9670 | amp_bf16 | DEFAULT | FULL_SHARD | False | 6658859008 | 417 | 2417 | 6291456 | False |
|  7b | 2048 | 8 | h100_80gb | 46.44 | 46.44 | 6 | 1 | 48 | 85144 | 10643 | amp_bf16 | DEFAULT | FULL_SHARD | False | 6658859008 | 459 | 41 | 98304 | False |
"""  # noqa: E501


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Import a study without its report; what is printed."""
    monkeypatch.chdir(tmp_path)
    tables_only(monkeypatch)

    def call(name: str, source: Path | str = "") -> list[str]:
        gallery.run(Namespace(name=name, source=str(source), results=""))
        return capsys.readouterr().out.splitlines()

    return call


def test_a_wrong_source_leaves_no_results_folder(run: Run, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    with pytest.raises(UserError, match="other: holds no"):
        run("llm_foundry", tmp_path / "other")
    assert [path.name for path in tmp_path.iterdir()] == ["other"]


@pytest.mark.slow
@pytest.mark.parametrize("name", SHIPPED)
def test_what_is_shipped_comes_out(run: Run, name: str) -> None:
    lines = run(name)
    assert lines[-2].startswith("published numbers: ") and "differ," not in lines[-2]


def test_llm_foundry_of_a_checkout(run: Run, tmp_path: Path) -> None:
    page = tmp_path / "checkout" / "scripts" / "train" / "benchmarking" / "README.md"
    page.parent.mkdir(parents=True)
    page.write_text(LLM_FOUNDRY)
    assert run("llm_foundry", tmp_path / "checkout")[-2] == "published numbers: 6 of 6 agree"
    page.write_text(LLM_FOUNDRY.replace("| 46.44 | 46.44 |", "| 46.44 | 47.44 |"))
    with pytest.raises(UserError, match="llm_foundry: 1 of 6 published numbers do not come out"):
        run("llm_foundry", page)


def test_without_a_name_the_studies_are_listed(run: Run) -> None:
    lines = run("")
    assert [line.split()[0] for line in lines] == study_names()


def verdicts(run: Run, name: str, source: Path) -> dict[str, str]:
    """The verdict of each number of a study, by its value."""
    with contextlib.suppress(UserError):  # a small input lacks most of the numbers
        run(name, source)
    with Path(f"results/gallery/{name}/published.csv").open() as file:
        return {row["published"]: row["verdict"] for row in csv.DictReader(file)}


def test_osu_of_a_page(run: Run, tmp_path: Path) -> None:
    rows = {4: 12.45, 1024: 22.69, 65536: 124.29, 1048576: 2159.0}
    page = tmp_path / "README.md"
    command = "flux run -N4 --tasks-per-node=96 osu_allreduce"
    table = "\n".join(f"{size:<8}{time:>20.2f}" for size, time in rows.items())
    head = "# OSU MPI Allreduce Latency Test v5.8\n# Size       Avg Latency(us)"
    page.write_text(f"```\n{command}\n{head}\n{table}\n```\n")
    assert verdicts(run, "osu_usernetes", page) == {
        "12.45": AGREES, "22.69": AGREES, "124.29": AGREES, "2159.77": DIFFERS
    }  # fmt: skip


def test_the_playbook_of_its_figure(run: Run, tmp_path: Path) -> None:
    def text(nodes: int, micro: int, rate: int) -> str:
        accumulation = 256 // (8 * nodes * micro)
        return (
            f"<b>Configuration:</b><br>Nodes: {nodes}<br>MBS: {micro}<br>GradAcc: {accumulation}"
            f"<br>GBS: 256<br>DP: {8 * nodes}<br>PP: 1<br>TP: 1<br>ZeRO: 0<br><br>MFU:\t 40.0%"
            f"<br>tok/s/gpu:\t {rate:,}<br>tok/s: {rate * 8 * nodes:,}<br>GPU memory: 50.2 GB"
        )

    failed = text(1, 4, 1).replace("MFU:\t 40.0%", "MFU:\t nan%")
    points = [text(1, 1, 7503), text(1, 2, 6000), text(4, 1, 6000), failed]
    page = tmp_path / "benchmarks_interactive.html"
    page.write_text(plotly_page({"1B": [text(1, 1, 9000)], "8B": points}))
    found = verdicts(run, "ultrascale_playbook", page)
    assert found == {"7503": AGREES, "5428": MISSING, "3101": MISSING}


def test_storage_of_summaries(run: Run, tmp_path: Path) -> None:
    for org in ("DDN", "Hammerspace", "Micron"):
        (tmp_path / "Closed" / org / "results").mkdir(parents=True)
    for at, rate in enumerate((12554.490584774769, 12556.490584774769)):
        for org, accelerators in (("DDN", 64), ("Hammerspace", 2), ("Micron", 3)):
            content = {
                "start": f"2024-08-17T22:55:{at:02}", "end": f"2024-08-17T23:55:{at + 1:02}",
                "num_accelerators": accelerators, "num_hosts": 1, "hostname": org,
                "num_files_train": 2976198, "num_samples_per_file": 1,
                "metric": {
                    "train_throughput_samples_per_second": [rate],
                    "train_throughput_mean_samples_per_second": rate,
                    "train_io_mean_MB_per_second": rate * 2.6974544,
                    "train_au_percentage": [70.0], "train_au_mean_percentage": 70.0,
                },
            }  # fmt: skip
            folder = tmp_path / "Closed" / org / "results" / f"run{at}"
            folder.mkdir()
            (folder / "summary.json").write_text(json.dumps(content))
    found = verdicts(run, "mlperf_storage_v1", tmp_path)
    assert found["12555.491"] == AGREES
    assert list(found.values()).count(MISSING) == 60


def test_mlperf_training_of_three_submissions(run: Run, tmp_path: Path) -> None:
    logs = [lines_of(t, ms=T0 + n * 10**8, org="IBM+CoreWeave+NVIDIA")
            for n, t in enumerate(COREWEAVE)]  # fmt: skip
    system = {**SYSTEM, "number_of_nodes": "624", "submitter": "IBM+CoreWeave+NVIDIA"}
    submission(tmp_path / "IBM+CoreWeave+NVIDIA", logs, factor=FACTOR, system=system)
    # 124.4959333333 minutes are 7469.756 s, of 1.1666666666666667 times 6402.648 s.
    logs = [lines_of(6402.648, ms=T0 + n * 10**8, org="Nebius") for n in range(3)]
    system = {**SYSTEM, "number_of_nodes": "256", "submitter": "Nebius"}
    submission(tmp_path / "Nebius", logs, factor=1.1666666666666667, system=system)
    submission(tmp_path / "GigaComputing", [lines_of(600.0, org="GigaComputing")])
    found = verdicts(run, "mlperf_training_v5_0", tmp_path)
    assert found["27.33"] == found["124.4959333333"] == AGREES
    assert list(found.values()).count(MISSING) == 7


def test_energy_of_mlperf(run: Run, tmp_path: Path) -> None:
    org = "Sustainable Metal Cloud"
    logs = [lines_of(600.0, task="bert", ms=T0 + n * 10**8, org=org) for n in range(2)]
    system = {**SYSTEM, "number_of_nodes": "2", "submitter": org}
    results = submission(tmp_path / "smc-ac-power", logs, task="bert", system=system)
    watts = 1815144.40 / 600 / 2
    for number in range(2):
        text = power([watts, watts, watts], ms=T0 + number * 10**8)
        nodes = {f"node_{node}.txt": text for node in range(2)}
        with_power(results, nodes, f"result_{number}")
    found = verdicts(run, "mlperf_power_v4_0", tmp_path)
    assert found["1815144.40"] == AGREES and list(found.values()).count(MISSING) == 9


def test_raw_logs_of_keras_multi_gpu(run: Run, tmp_path: Path) -> None:
    logs = tmp_path / "experiments" / "tensorflow" / "tf_cnn_benchmarks" / "results"
    logs.mkdir(parents=True)
    one = fake.one(5165.54, data_format="NCHW")
    two = fake.one(6063.88, "--local_parameter_device cpu", devices=2, data_format="NCHW")
    (logs / "benchmark_batch_results_cifar10_az-2xm-60.txt").write_text(one + two)
    keras = tmp_path / "experiments" / "keras_tensorflow"
    keras.mkdir()
    for name in ("7gforce", "az-2x-m60"):
        text = fake.keras()
        (keras / f"benchmark_inception3_resnet50_results_{name}.txt").write_text(text)
    found = verdicts(run, "keras_multi_gpu_logs", tmp_path)
    assert found["58.70%"] == found["1.17x"] == AGREES
