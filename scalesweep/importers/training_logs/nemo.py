"""NeMo 2 and BioNeMo on Lightning (MegatronProgressPrinter): a line per step, or per log interval.

``train_step_timing`` is the time of forward, backward and optimiser of the step that is printed.
"""

import re

from scalesweep.importers.training_logs import values as v
from scalesweep.importers.training_logs.patterns import line
from scalesweep.importers.training_logs.program import Program, Stated

NEMO = Program(
    name="NeMo",
    benchmark="nemo",
    summary="Training by NeMo 2 or BioNeMo, from the progress lines of its log.",
    marks=("Training epoch ",),
    sign=re.compile(r"\bTraining epoch \d{1,9}, iteration \d{1,9}/\d{1,9} \| "),
    progress=line(
        r"\bTraining epoch \d+, iteration \d+/\d+ \|.{0,200}?",
        r"(?:global_batch_size: <global_batch_size:i> \| )?global_step: <step:i> \|",
        r"(?:.{0,99}?max_memory_reserved: <memory:i> \|)?.{0,200}?reduced_train_loss: <loss:w>",
        r"(?: \|.{0,300}?train_step_timing in s: <s>)?(?: \| TFLOPS_per_GPU: <tflops>)?",
        r"(?: \| tokens_per_sec_per_gpu: <each>)?(?= \||\s*$)",
    ),
    values={
        "s": v.STEP_S,
        "tflops": v.tflops("nemo"),
        "each": v.TOKENS_EACH,
        "memory": v.RESERVED,
        "loss": v.FINAL_LOSS,
    },
    main="step_time",
    averages=False,
    settings=("global_batch_size",),
    stated=(
        Stated(
            "distributed processes registered",
            line(r"distributed processes registered. Starting with <ranks:i> processes"),
        ),
    ),
    begins=("distributed_backend=nccl",),
)
