"""Logs of today's training programs: those of the acceptance tests, and some that tests change."""

from collections.abc import Sequence
from dataclasses import dataclass

import yaml

from tests.conftest import ROOT

STAMP = "[titan] 2026-01-02 03:04:05,006 - root - INFO - "
FOLDER = ROOT / "tests" / "acceptance" / "imports"


@dataclass(frozen=True)
class Log:
    """A log, the program that prints it, and the ranks of ``--ranks``."""

    program: str
    text: str
    ranks: int | None


def titan_steps(count: int, first: int = 1, tps: float = 1000.0) -> str:
    """Lines of progress of torchtitan, the first of which is slow."""
    return "".join(
        f"{STAMP}step: {step:2}  loss: {12 - step / 10:8.4f}  grad_norm: 1.0000  memory: 10.00GiB"
        f"(12.65%)  tps: {round(tps / 10 if step == first else tps):,}  tflops: 50.00  mfu: 5.06%\n"
        for step in range(first, first + count)
    )


def titan(count: int, tps: float = 1000.0) -> str:
    """A log of torchtitan, its header too."""
    return (
        f"{STAMP}Building device mesh with parallelism: pp=1, dp_replicate=2, dp_shard=2, cp=1, "
        f"tp=2, ep=1, etp=1\n"
        f"{STAMP}CUDA capacity: NVIDIA H100 80GB HBM3 with 79.18GiB memory\n"
        f"{STAMP}Model llama3 8B size: 8,030,261,248 total parameters\n"
        f"{STAMP}Trainer is initialized with local batch size 2, global batch size 8, gradient "
        "accumulation steps 1, sequence length 100, total steps 10 (warmup 2)\n"
        f"{STAMP}Training starts at step 1\n"
    ) + titan_steps(count, tps=tps)


def megatron(step: int, ms: float, batch: int = 64, more: str = "") -> str:
    """A line of Megatron-LM."""
    return (
        f" [2026-01-02 03:04:05] iteration {step:8}/     100 | consumed samples: {step * batch:12} "
        f"| elapsed time per iteration (ms): {ms:.1f} |{more} learning rate: 1.000E-05 | global "
        f"batch size: {batch:5} | lm loss: 2.500000E+00 | loss scale: 1.0 | grad norm: 1.000 "
        "| number of skipped iterations:   0 | number of nan iterations:   0 |\n"
    )


def nanogpt(count: int, evaluations: Sequence[int] = (0,)) -> str:
    """A log of nanoGPT: an evaluation makes its iteration long."""
    text = "tokens per iteration will be: 491,520\nnumber of parameters: 123.59M\n"
    for step in range(count):
        ms = 100.0
        if step in evaluations:
            text += f"step {step}: train loss 3.0000, val loss 3.1000\n"
            ms = 5000.0
        mfu = -100.0 if step < 5 else 35.0
        text += f"iter {step}: loss 3.0000, time {ms:.2f}ms, mfu {mfu:.2f}%\n"
    return text


def _logs() -> dict[str, Log]:
    (call,) = (
        call
        for call in yaml.safe_load((FOLDER / "expected.yaml").read_text())
        if call["source"] == "logs"
    )
    ranks = yaml.safe_load(call["words"][1])
    programs = {
        "torchtitan": "torchtitan", "megatron-lm": "Megatron-LM", "megatron_bridge": "Megatron-LM",
        "gpt-neox": "GPT-NeoX", "deepspeed": "DeepSpeed", "nanotron": "nanotron", "nemo": "NeMo",
        "nanogpt": "nanoGPT", "nanochat": "nanochat", "maxtext": "MaxText", "litgpt": "litgpt",
        "aws_fsdp": "AWS FSDP", "fms-fsdp": "fms-fsdp", "prime-rl_later": "prime-rl",
        "prime-rl": "prime-rl",
    }  # fmt: skip
    logs = {
        name: Log(program, (FOLDER / "logs" / f"{name}.log").read_text(), ranks.get(f"{name}.log"))
        for name, program in programs.items()
    }
    for name, program in (
        ("modded_nanogpt", "modded-nanogpt"),
        ("horovod_synthetic", "Horovod's synthetic benchmark"),
    ):
        logs[name] = Log(program, (FOLDER / "case_logs" / f"{name}.log").read_text(), None)
    return {log.program: log for log in logs.values()} | logs


LOGS = _logs()
