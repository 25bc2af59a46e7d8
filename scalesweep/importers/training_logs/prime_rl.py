"""prime-rl (src/zeroband/train.py, src/prime_rl/trainer): tokens per second, a moving mean.

Early versions print ``tokens_per_second: ..., mfu: ...`` of all ranks, later ones
``Throughput: ... tokens/s | MFU: ...%``. Neither says how many GPUs there are.
"""

import re

from scalesweep.importers.training_logs.patterns import line
from scalesweep.importers.training_logs.program import Program
from scalesweep.importers.training_logs.values import (
    FINAL_LOSS,
    GIB,
    RESERVED,
    STEP_S,
    TOKENS,
    own_mfu,
)

_TOKENS = TOKENS._replace(definition="tokens per second of all devices, a moving mean, as printed")
_MEMORY = "largest memory of PyTorch: reserved since October 2025, allocated before"

PRIME_RL = Program(
    name="prime-rl",
    benchmark="prime_rl",
    summary="Training by prime-rl, from its trainer's log.",
    marks=("tokens_per_second: ", "| Loss: "),
    sign=re.compile(
        r"\bstep: \d{1,9}, loss: \S{1,20}, tokens_per_second: "
        r"|\bStep \d{1,9} \| Time: [\d.]+s \| Loss: "
    ),
    progress=line(
        r"\b(?:step: |Step )<step:i>(?:, loss: <loss:w>, tokens_per_second: <tokens>, mfu: ",
        r"<mfu>\s*$| \| Time: <s>s \| Loss: <later_loss:w> \|.{0,100}?Throughput: ",
        r"<later_tokens> tokens/s \| MFU: <later_mfu>% \| Peak Mem\.: <memory>(?:/\S+)? GiB)",
    ),
    values={
        "s": STEP_S,
        **dict.fromkeys(("tokens", "later_tokens"), _TOKENS),
        **dict.fromkeys(("mfu", "later_mfu"), own_mfu("prime_rl", "a moving mean")),
        "memory": RESERVED._replace(metric="peak_memory", definition=_MEMORY, times=GIB),
        **dict.fromkeys(("loss", "later_loss"), FINAL_LOSS),
    },
    main="tokens_per_second",
    averages=False,
)
