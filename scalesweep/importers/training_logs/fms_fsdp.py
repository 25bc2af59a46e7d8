"""fms-fsdp (fms_fsdp/utils/train_utils.py): rank 0 prints one value a line, means
since the last.
"""

import re

from scalesweep.importers.training_logs.patterns import line
from scalesweep.importers.training_logs.program import Program, Stated
from scalesweep.importers.training_logs.values import FINAL_LOSS, RESERVED, STEP_S, TOKENS_EACH

FMS_FSDP = Program(
    name="fms-fsdp",
    benchmark="fms_fsdp",
    summary="Pretraining by fms-fsdp, from its log.",
    marks=("step: ",),
    sign=re.compile(r"^step: \d{1,9}\s*$"),
    progress=line(r"^step: <step:i>\s*$"),
    more=(
        ("loss: ", line(r"^loss: <loss:w>\s*$")),
        ("current step time: ", line(r"^current step time: <s>\s*$")),
        ("current token per gpu per sec: ", line(r"^current token per gpu per sec: <each>\s*$")),
        ("reserved memory: ", line(r"^reserved memory: <memory:i>\s*$")),
    ),
    values={
        "s": STEP_S,
        "each": TOKENS_EACH,
        "memory": RESERVED,
        "loss": FINAL_LOSS,
    },
    main="tokens_per_second",
    averages=True,
    stated=(
        Stated(
            " Million params",
            re.compile(
                r"--> (?P<model>\w\S{0,60}) has (?P<parameters_printed>[\d.]+) Million params"
            ),
        ),
        Stated(
            "Sharding strategy = ", re.compile(r"Sharding strategy = (?P<data_parallel>\w{1,20})")
        ),
    ),
    begins=("running with these configs",),
)
