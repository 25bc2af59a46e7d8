"""prime-rl (src/zeroband/train.py, src/prime_rl/trainer): tokens per second, a moving mean.

Early versions print ``tokens_per_second: ..., mfu: ...`` of all ranks, later ones
``Throughput: ... tokens/s | MFU: ...%``, without the colons since June 2026 (PR 2639). The
time of a step then stands there in words (``350ms``, ``1m 23s``), cut to a whole second: it is not
read.
None says how many GPUs there are.
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
_PEAK = RESERVED._replace(metric="peak_memory", definition=_MEMORY, times=GIB)

PRIME_RL = Program(
    name="prime-rl",
    benchmark="prime_rl",
    summary="Training by prime-rl, from its trainer's log.",
    marks=("tokens_per_second: ", "| Loss: ", "| Loss "),
    sign=re.compile(
        r"\bstep: \d{1,9}, loss: \S{1,20}, tokens_per_second: "
        r"|\bStep \d{1,9} \| (?:Time: [\d.]+s \| Loss: | *\d[\ddhms .]{0,12} \| Loss )"
    ),
    progress=line(
        r"\b(?:step: |Step )<step:i>(?:, loss: <loss:w>, tokens_per_second: <tokens>, mfu: ",
        r"<mfu>\s*$| \| Time: <s>s \| Loss: <later_loss:w> \|.{0,100}?Throughput: ",
        r"<later_tokens> tokens/s \| MFU: <later_mfu>% \| Peak Mem\.: <memory>(?:/\S+)? GiB",
        r"| \|  *\d[\ddhms .]{0,12} \| Loss <latest_loss:w> \|.{0,100}?Throughput ",
        r"<latest_tokens> tokens/s \| MFU <latest_mfu>% \| Peak Mem\. <latest_memory>(?:/\S+)? ",
        r"GiB)",
    ),
    values={
        "s": STEP_S,
        **dict.fromkeys(("tokens", "later_tokens", "latest_tokens"), _TOKENS),
        **dict.fromkeys(("mfu", "later_mfu", "latest_mfu"), own_mfu("prime_rl", "a moving mean")),
        **dict.fromkeys(("memory", "latest_memory"), _PEAK),
        **dict.fromkeys(("loss", "later_loss", "latest_loss"), FINAL_LOSS),
    },
    main="tokens_per_second",
    averages=False,
)
