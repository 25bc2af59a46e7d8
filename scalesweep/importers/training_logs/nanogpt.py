"""nanoGPT (train.py): the time of the iteration that is printed, and an MFU that is no measure.

Its MFU is an exponential mean from the fifth line on (-100.00 % until then), of the 312 TFLOP/s of
one A100, whatever the GPU is and however many there are. An iteration with an evaluation is long.
"""

import re

from scalesweep.importers.training_logs.model_facts import count, stated
from scalesweep.importers.training_logs.patterns import line
from scalesweep.importers.training_logs.program import LAST, Printed, Program, Stated
from scalesweep.importers.training_logs.values import FINAL_LOSS, STEP_MS

NANOGPT = Program(
    name="nanoGPT",
    benchmark="nanogpt",
    summary="Training by nanoGPT, from its log.",
    marks=(": loss ",),
    sign=re.compile(r"(?:^|\s)iter \d{1,9}: loss \S{1,20}, time "),
    progress=line(
        r"(?:^|\s)iter <step:i>: loss <loss:w>, time <ms>ms(?:, mfu (?:-100\.00|<mfu>)%)?\s*$"
    ),
    values={
        "ms": STEP_MS,
        "mfu": Printed(
            "nanogpt_mfu",
            "1",
            "total",
            "nanoGPT's MFU of the last line: an exponential mean, of one A100's peak",
            LAST,
            0.01,
        ),
        "loss": FINAL_LOSS,
    },
    main="step_time",
    averages=False,
    stated=(
        Stated(
            "tokens per iteration",
            line(r"tokens per iteration(?: will be)?: <tokens_per_step:i>\s*$"),
        ),
        Stated(
            "_size",
            re.compile(
                r"^(?:Overriding: )?(?P<name>batch_size|block_size) ?= ?(?P<value>\d{1,9})\b"
            ),
            {"batch_size": "micro_batch_size", "block_size": "sequence_length"},
        ),
        # Without the vectors of positions, 0.6 % of GPT-2's.
        Stated(
            "number of parameters: ",
            line(r"^number of parameters: <counted_parameters>\s*$"),
        ),
    ),
    settle=lambda facts: stated(model_parameters=count(facts.get("counted_parameters"))),
    begins=("tokens per iteration",),
    spoils=(": train loss ",),
)
