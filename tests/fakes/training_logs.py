"""Logs of today's training programs: those of the acceptance tests, and some that tests change."""

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


def megatron(step: int, ms: float, batch: int = 64) -> str:
    """A line of Megatron-LM."""
    return (
        f" [2026-01-02 03:04:05] iteration {step:8}/     100 | consumed samples: {step * batch:12} "
        f"| elapsed time per iteration (ms): {ms:.1f} | learning rate: 1.000E-05 | global "
        f"batch size: {batch:5} | lm loss: 2.500000E+00 | loss scale: 1.0 | grad norm: 1.000 "
        "| number of skipped iterations:   0 | number of nan iterations:   0 |\n"
    )


PROGRAMS = {
    "torchtitan": "torchtitan", "megatron-lm": "Megatron-LM", "megatron_bridge": "Megatron-LM",
    "gpt-neox": "GPT-NeoX", "deepspeed": "DeepSpeed", "nanotron": "nanotron", "nemo": "NeMo",
    "nanogpt": "nanoGPT", "nanochat": "nanochat", "maxtext": "MaxText", "litgpt": "litgpt",
    "aws_fsdp": "AWS FSDP", "fms-fsdp": "fms-fsdp", "prime-rl_later": "prime-rl",
    "prime-rl": "prime-rl", "modded_nanogpt": "modded-nanogpt",
    "horovod_synthetic": "Horovod's synthetic benchmark",
}  # fmt: skip
RANKS = yaml.safe_load(yaml.safe_load((FOLDER / "expected.yaml").read_text())[0]["words"][1])
# By file and by program.
LOGS: dict[str, Log] = {}
for _name, _program in PROGRAMS.items():
    (_path,) = FOLDER.glob(f"*logs/{_name}.log")
    LOGS[_name] = LOGS[_program] = Log(_program, _path.read_text(), RANKS.get(_path.name))


def titan(count: int, tps: float = 1000.0) -> str:
    """A log of torchtitan, its header too."""
    return LOGS["torchtitan"].text.partition(f"{STAMP}step:")[0] + titan_steps(count, tps=tps)
