"""NeMo 2 and BioNeMo on Lightning (MegatronProgressPrinter): a line per step, or per log interval.

``train_step_timing`` is the time of forward, backward and optimiser of the step that is printed.
"""

import re

from scalesweep.importers.training_logs.patterns import line
from scalesweep.importers.training_logs.program import Program, Stated
from scalesweep.importers.training_logs.values import FINAL_LOSS, STEP_S

NEMO = Program(
    name="NeMo",
    benchmark="nemo",
    summary="Training by NeMo 2 or BioNeMo, from the progress lines of its log.",
    sign=re.compile(r"^Training epoch \d{1,9}, iteration \d{1,9}/\d{1,9} \| "),
    progress=(
        line(
            r"^Training epoch \d+, iteration \d+/\d+ \|.{0,200}?(?:global_batch_size: ",
            r"<global_batch_size:i> \| )?global_step: <step:i> \|.{0,200}?",
            r"reduced_train_loss: <loss:w>(?: \|.{0,300}?train_step_timing in s: <s>)?(?= \||\s*$)",
        ),
    ),
    values={
        "s": STEP_S,
        "loss": FINAL_LOSS,
    },
    main="step_time",
    averages=False,
    settings=("global_batch_size",),
    stated=(Stated(line(r"distributed processes registered. Starting with <ranks:i> processes")),),
    begins=re.compile(r"distributed_backend=nccl"),
)
