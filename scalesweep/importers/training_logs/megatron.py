"""Megatron-LM and Megatron Bridge (megatron/training/training.py): the last rank prints the mean
of the iterations since its last line. Megatron-DeepSpeed's lines have more between the same words;
Primus prints ``this/mean of all`` where others print one number.

Bridge prints ``Step Time : 14.26s GPU utilization: 58.2TFLOP/s/GPU`` besides: TFLOP/s, no share.
The time of evaluations and checkpoints is not in the iterations'.
"""

import re
from typing import Any

from scalesweep.importers.training_logs import values as v
from scalesweep.importers.training_logs.patterns import line
from scalesweep.importers.training_logs.program import MEAN, Facts, Printed, Program, Stated

NAMES = {
    "world_size": "ranks", "micro_batch_size": "micro_batch_size", "seq_length": "sequence_length",
    "tensor_model_parallel_size": "tp", "pipeline_model_parallel_size": "pp",
    "context_parallel_size": "cp", "expert_model_parallel_size": "ep", "params_dtype": "dtype",
}  # fmt: skip
_ARGUMENT = re.compile(r"^[^.]{0,80}?\b(?P<name>\w{1,60}) \.{3,80} (?P<value>[\w.]{1,40})\s*$")


def precision(facts: Facts) -> dict[str, Any]:
    """The number format by ``params_dtype``."""
    dtype = facts.get("dtype", "").removeprefix("torch.")
    return {"precision": dtype} if dtype else {}


MEGATRON = Program(
    name="Megatron-LM",
    benchmark="megatron_lm",
    summary="Training by Megatron-LM or Megatron Bridge, from its log.",
    marks=("elapsed time per iteration",),
    sign=re.compile(r"(?:^|[\]:]) {0,8}iteration {1,12}\d{1,9}/ *\d{1,9} \| (?:consumed|elapsed)"),
    progress=line(
        r"\biteration +<step:i>/ *\d+ \|.{0,300}?elapsed time per iteration ",
        r"\((?:ms\): <ms>|s\): <s>)(?:/[\d.]+)? \|",
        r"(?:.{0,120}?throughput per GPU \(TFLOP/s/GPU\): <tflops>(?:/[\d.]+)? \|)?",
        r"(?: tokens per GPU \(tokens/s/GPU\): <each>(?:/[\d.]+)? \|)?",
        r"(?: energy per GPU \(J/iter/GPU\): <energy> \| power per GPU \(W/GPU\): <power> \|)?",
        r"(?:.{0,400}?global batch size: +<global_batch_size:i> \|)?(?=.{0,2000}\|\s*$)",
        r"(?:.{0,200}?lm loss: <loss:w> \|)?",
    ),
    more=(
        ("GPU utilization: ", line(r"GPU utilization: <bridge> ?(?:MODEL_)?TFLOP/s/GPU")),
        (
            " memory (MB) | ",
            line(r"\| max allocated: <allocated> \|.{0,60}? max reserved: <reserved>"),
        ),
    ),
    values={
        "ms": v.STEP_MS,
        "s": v.STEP_S,
        "tflops": v.tflops("megatron"),
        "each": v.TOKENS_EACH,
        "bridge": v.tflops("megatron_bridge", way=MEAN),
        "allocated": v.RESERVED._replace(metric="peak_memory_allocated", times=2.0**20),
        "reserved": v.RESERVED._replace(times=2.0**20),
        "energy": Printed("energy_per_step_per_device", "J", "rank", "of a GPU", better="lower"),
        "power": Printed("power_per_device", "W", "rank", "mean power of a GPU", better="lower"),
        "loss": v.FINAL_LOSS,
    },
    main="samples_per_second",
    averages=True,
    settings=("global_batch_size",),
    stated=(Stated(" ...", _ARGUMENT, NAMES),),
    settle=precision,
    begins=("arguments -----", "using world size: "),
    also=("DeepSpeed",),
)
