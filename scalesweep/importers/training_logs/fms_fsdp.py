"""fms-fsdp (fms_fsdp/utils/train_utils.py): rank 0 prints one value a line, means
since the last. The configuration that it prints first has the batch of a rank.
"""

import re

from scalesweep.importers.training_logs.model_facts import count, stated
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
            "running with these configs",
            re.compile(r"\b(?P<name>[a-z_]{2,30})='?(?P<value>[\w.-]{1,60})'?(?=[,)])"),
            {
                "model_variant": "variant",
                "seq_length": "sequence_length",
                "batch_size": "micro_batch_size",
                "sharding_strategy": "data_parallel",
            },
        ),
        Stated(
            " Million params",
            re.compile(
                r"--> (?:model|(?P<model>\w\S{0,60})) has "
                r"(?P<parameters_printed>[\d.]+) Million params"
            ),
        ),
        Stated(
            "Sharding strategy = ", re.compile(r"Sharding strategy = (?P<data_parallel>\w{1,20})")
        ),
    ),
    settle=lambda facts: stated(
        model=facts.get("variant"),
        model_parameters=count(f"{facts.get('parameters_printed', '')} million"),
    ),
    begins=("running with these configs",),
)
