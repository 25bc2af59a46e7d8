"""Logs of training programs: values, units, warm-up, starts, labels, and what is refused."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from scalesweep.compute.log_reader import reader_of
from scalesweep.config.log_patterns import load_reader, shipped_readers
from scalesweep.core.errors import UserError
from scalesweep.importers.detect_logs import RULES
from scalesweep.importers.write_campaign import campaign_of
from tests.conftest import ROOT
from tests.fakes.imported_runs import Read, import_runs, read_source
from tests.fakes.mllog import values
from tests.fakes.training_logs import LOGS, megatron, titan, titan_steps

READERS = shipped_readers()


# What collectors of logs put in front of every line, launchers' labels behind it.
COLLECTED = (
    "2026-01-02T03:04:05.123456789Z ", "2026-01-02T03:04:05.123456789Z stdout F [rank0]:",
    "worker-1  | ", "(pretraining, pid=4112, ip=10.1.99.25) ", "wandb: ",
    "Jan 02 03:04:05 node1 job[77]: 0: ", "stdout: \x1b[36m", "[default0]:", " 0: ",
)  # fmt: skip


@pytest.mark.parametrize("front", COLLECTED)
def test_what_collectors_put_in_front_changes_nothing(read: Read, front: str) -> None:
    for name in ("torchtitan", "Megatron-LM", "nanoGPT", "nanochat", "litgpt", "fms-fsdp"):
        log = LOGS[name]
        collected = "".join(f"{front}{line}\n" for line in log.text.splitlines())
        ((run,), refusals) = read(collected, ranks=log.ranks)
        ((plain,), _) = read(log.text, ranks=log.ranks)
        assert (refusals, run.point) == ([], plain.point), name
        assert run.metrics == plain.metrics


OTHERS = yaml.safe_load(Path(__file__).with_name("other_versions.yaml").read_text())


@pytest.mark.parametrize("row", OTHERS, ids=lambda row: row["line"][:40])
def test_lines_of_other_versions(read: Read, row: dict[str, Any]) -> None:
    steps = "".join(row["line"].format(step=step) + "\n" for step in range(1, 9))
    ((run,), _) = read(steps, ranks=8)
    for metric, number in row["metrics"].items():
        assert values(run)[metric] == pytest.approx(number, rel=1e-9)


def test_ranks_of_gpt_neox_are_those_that_train(read: Read) -> None:
    text = LOGS["GPT-NeoX"].text
    launched = text.replace("16........................updated", "None...................default")
    head, mark, steps = launched.partition(" samples/sec")
    world = (
        "NeoXArgs.configure_distributed_args() using world size: {} and model-parallel size: 2\n"
    )
    planned = "  global_num_gpus ................. 16..........................updated\n"

    def beside(*lines: str) -> Any:
        return read("".join((head, *lines, mark, steps)))

    ((run,), refusals) = beside(world.format(16), planned)
    assert (refusals, run.point["ranks"], run.point["batch_per_rank"]) == ([], 16, 2)
    for unknown in (beside(), beside(planned)):
        assert "does not state the number of GPUs" in unknown[1][0].reason
    (_, (refusal,)) = beside(world.format(4), planned)
    assert "4 ranks train, and the batch is of 16 GPUs (global_num_gpus)" in refusal.reason


@pytest.mark.parametrize("late", [0, 1])
def test_an_evaluation_of_maxtext_is_in_one_of_the_next_two_lines(read: Read, late: int) -> None:
    log = LOGS["MaxText"]
    lines = log.text.splitlines()
    first = next(n for n, line in enumerate(lines) if "completed step: 5" in line)
    lines[first + late] = lines[first + late].replace("seconds: 4.000", "seconds: 99.000")
    ((slow,), _) = read("\n".join(lines))
    lines.insert(first, "Completed eval after train step 5, loss=0.693, perplexity=2.000")
    ((run,), refusals) = read("\n".join(lines))
    assert refusals == [] and values(slow)["step_time"] > 10
    assert values(run)["step_time"] == pytest.approx(4.0)
    assert run.notes["warm_up"]["with_evaluation"] == 2


def test_the_declaration_of_the_docs_reads_a_log(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "guide" / "training_logs.md").read_text()
    log, text = re.findall(r"```(?:yaml|text)\n(.*?)```", page, re.DOTALL)
    (tmp_path / "my_trainer.yaml").write_text(text)
    (tmp_path / "train.log").write_text(log)
    reader = load_reader(tmp_path / "my_trainer.yaml")
    ((run,), refusals, _) = read_source(tmp_path / "train.log", reader=reader)
    assert (refusals, run.point) == ([], {"ranks": 4, "batch_per_rank": 2})
    assert values(run)["step_time"] == pytest.approx(0.1)
    assert values(run)["samples_per_second"] == pytest.approx(80)


def test_a_micro_batch_that_is_the_work_parts_no_series(read: Read, tmp_path: Path) -> None:
    runs = []
    for count in (2, 4):
        head = f"  world_size ..... {count}\n  micro_batch_size ..... {64 // count}\n"
        runs += read(head + "".join(megatron(n, 400.0 / count) for n in range(1, 9)))[0]
    written, _ = import_runs(runs, tmp_path / "runs" / "imported")
    (spec,) = campaign_of(written, RULES, "imported", "results")["experiments"].values()
    assert spec["scaling"] == "strong"


@pytest.mark.parametrize("name", READERS)
def test_no_program_takes_the_lines_of_another(name: str) -> None:
    reader = READERS[name]
    for log in LOGS.values():
        if log.program != reader.program and log.program not in reader.also:
            other = next(it for it in READERS.values() if it.program == log.program)
            taken = [line for line in log.text.splitlines() if reader.prints(line)]
            assert taken == [] or reader.program in other.also, taken[:1]


def test_lines_of_all_ranks_are_a_mean_and_no_total(read: Read) -> None:
    texts = (titan_steps(8, tps=rate).splitlines() for rate in (1000.0, 1100.0))
    together = "".join(
        f"[rank{rank}]:{line}\n"
        for pair in zip(*texts, strict=True)
        for rank, line in enumerate(pair)
    )
    ((run,), _) = read(together, ranks=4)
    assert values(run)["tokens_per_second_per_device"] == pytest.approx(1050, rel=1e-3)
    assert values(run)["tokens_per_second"] == pytest.approx(4200, rel=1e-3)
    assert run.samples["logged_tokens_per_second_per_device"].shape == (8, 2)
    assert run.notes["printers"] == 2
    # With srun's label of the node before torchrun's, which are equal on all nodes.
    nodes = together.replace("[rank1]:", "1: [rank0]:").replace("\n[rank0]:", "\n0: [rank0]:")
    ((of_nodes,), _) = read("0: " + nodes, ranks=4)
    assert of_nodes.metrics == run.metrics


@pytest.mark.parametrize(
    ("times", "unfinished"),
    [
        ([100.0 * 1.03**step for step in range(30)], "the times of its steps still drift at the e"),
        (np.random.default_rng(0).normal(100, 5, 30), ""),
        ([100] * 14 + [300] * 16, "its steps became slower at step 15 and stayed so: no warm-up"),
        ([600 if step % 9 == 0 else 100 for step in range(1, 31)], ""),
        ([300] * 7 + [100] * 23, ""),
    ],
)
def test_steps_that_count_in_no_mean(read: Read, times: Any, unfinished: str) -> None:
    text = "".join(megatron(step, ms) for step, ms in enumerate(times, 1))
    ((run,), _) = read(text, ranks=8)
    assert run.unfinished.startswith(unfinished) and bool(run.unfinished) == bool(unfinished)
    assert times[0] != 300 or run.notes["warm_up"]["lines"] == 7


def test_a_cut_last_line_is_left_out(read: Read) -> None:
    ((cut,), _) = read(titan_steps(9)[:-12], ranks=8)
    ((shorter,), _) = read(titan_steps(8), ranks=8)
    assert cut.metrics == shorter.metrics
    assert cut.notes["cut_lines"] == [9]


def test_each_start_in_a_file_is_a_run(read: Read) -> None:
    first, again = titan(8), titan_steps(8, first=5, tps=900)
    runs, _ = read(first + again, ranks=8)
    assert [run.line for run in runs] == [1 + first.count("\n") - 8, 1 + first.count("\n")]
    assert runs[1].notes["first_step"] == 5
    # Nothing states the second one's parameters: missing stays missing.
    assert set(runs[1].point) == {"ranks"}
    runs, _ = read(first + titan(8, tps=900))
    assert runs[0].point == runs[1].point
    assert runs[0].source_digest != runs[1].source_digest


def test_steps_with_an_evaluation_do_not_count(read: Read) -> None:
    late = "step 7: train loss 3.0000, val loss 3.1000\niter 7: loss 3.0000, time 5000.00ms"
    text = LOGS["nanoGPT"].text.replace("iter 7: loss 3.0000, time 100.00ms", late)
    ((run,), _) = read(text, ranks=8)
    assert values(run)["step_time"] == pytest.approx(0.1)
    assert run.notes["warm_up"]["with_evaluation"] == 2
    assert len(run.samples["step_times"]) == 7 - run.notes["warm_up"]["lines"] + 1


def test_a_batch_that_grows_counts_from_its_last_size(read: Read) -> None:
    text = "".join(
        megatron(step, ms=100.0 if step < 9 else 200.0, batch=64 if step < 9 else 128)
        for step in range(1, 20)
    )
    ((run,), _) = read(text, ranks=8)
    assert run.point["batch_per_rank"] == 16
    assert values(run)["samples_per_second"] == pytest.approx(640)
    assert run.notes["warm_up"]["before_a_change"] == 8


STEPS = titan_steps(9)
OWN = "".join(
    f"{line}\n[train] step {n} throughput: 2.5 samples/s\n"
    for n, line in enumerate(LOGS["DeepSpeed"].text.splitlines())
)
TOGETHER = "".join(megatron(step, ms) for step in range(1, 14) for ms in (100.0, 160.0))
REFUSED = {
    "damage": (STEPS.replace("  tps: 1,000", "  tps:", 1), 2, "a damaged line of progress"),
    "a rate of nothing": (
        STEPS.replace("tps: 1,000", "tps: 0").replace("tps: 0", "tps: 1,000", 1), 3,
        "tokens_per_second_per_device of 0",
    ),
    "too few": ("".join(STEPS.splitlines(True)[:3]), 3, "too few to tell where the warm-up ends"),
    "two programs": (titan(8) + LOGS["nanoGPT"].text, 17, "a line of nanoGPT in a log of torchtit"),
    "two runs in one file": (TOGETHER, 2, "step 1 is printed twice"),
    "a rate beside a library's": (OWN, 3, "a rate of its own (2.5 samples/s)"),
}  # fmt: skip


@pytest.mark.parametrize("kind", REFUSED)
def test_what_is_refused(read: Read, kind: str) -> None:
    text, line, reason = REFUSED[kind]
    runs, refusals = read(text, ranks=8)
    assert runs == [] and reason in refusals[0].reason and refusals[0].line == line


def test_rates_of_all_and_of_a_device_tell_the_ranks(read: Read) -> None:
    """nanotron prints both; its header is lost, and ``--ranks`` names other ones."""
    log, ranks = LOGS["nanotron"], 8
    steps = "".join(text for text in log.text.splitlines(True) if "iteration: " in text)
    runs, (refusal,) = read(steps, ranks=4 * ranks)
    assert runs == [] and refusal.reason.endswith(f"are {ranks}, of {4 * ranks} ranks")
    assert read(steps, ranks=ranks)[0][0].point["ranks"] == ranks


MISTAKES = yaml.safe_load(Path(__file__).with_name("reader_mistakes.yaml").read_text())


@pytest.mark.parametrize("row", MISTAKES, ids=lambda row: row["said"])
def test_a_wrong_declaration_is_named(row: dict[str, Any]) -> None:
    good = {"marks": "x", "progress": "x <step:i> <ms>", "values": {"ms": "step_time"}}
    content = {**good, "main": "step_time", **row["change"]}
    content = {key: it for key, it in content.items() if it is not None}
    with pytest.raises(UserError) as error:
        reader_of(content, "mine", "mine.yaml")
    assert str(error.value).startswith("mine.yaml: ") and row["said"] in str(error.value)
