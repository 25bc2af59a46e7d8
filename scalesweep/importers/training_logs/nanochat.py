"""nanochat (scripts/base_train.py): the time of each step, and tokens per second of all ranks.

Its MFU is of an H100's peak, unless a version knows the GPU.
"""

import re
from typing import Any

from scalesweep.importers.training_logs.model_facts import stated
from scalesweep.importers.training_logs.patterns import line
from scalesweep.importers.training_logs.program import Facts, Program, Stated
from scalesweep.importers.training_logs.values import FINAL_LOSS, STEP_MS, TOKENS, own_mfu


def _settle(facts: Facts) -> dict[str, Any]:
    """Ranks: tokens of a micro-batch of all ranks over those of one; the GPU."""
    gpu = stated(gpu=facts.get("gpu_shown"))
    each, every = (int(facts.get(name, "0").replace(",", "")) for name in ("each", "every"))
    return gpu | ({"ranks": every // each} if each and every and every % each == 0 else {})


NANOCHAT = Program(
    name="nanochat",
    benchmark="nanochat",
    summary="Pretraining by nanochat, from its log.",
    marks=("| loss: ",),
    sign=re.compile(r"\bstep \d{1,9}/\d{1,9} \([\d.]+%\) \| loss: "),
    progress=line(
        r"\bstep <step:i>/\d+ \(\S+%\) \| loss: <loss:w> \|.{0,100}?dt: <ms>ms \| ",
        r"tok/sec: <tokens:i> \| (?:bf16_)?mfu: <mfu>\*?(?= \|)",
    ),
    values={
        "ms": STEP_MS,
        "tokens": TOKENS,
        "mfu": own_mfu("nanochat", "of an H100's peak unless its version knows the GPU"),
        "loss": FINAL_LOSS,
    },
    main="tokens_per_second",
    averages=False,
    stated=(
        Stated(
            "Tokens / ",
            re.compile(
                r"^Tokens / micro-batch / rank: (?P<micro_batch_size>\d+) x "
                r"(?P<sequence_length>\d+) = (?P<each>[\d,]{1,20})\s*$"
            ),
        ),
        Stated("Tokens / ", re.compile(r"^Tokens / micro-batch: (?P<every>[\d,]{1,20})\s*$")),
        Stated(
            "Total batch size ",
            re.compile(r"^Total batch size (?P<tokens_per_step>[\d,]{1,20}) => "),
        ),
        Stated(
            "Number of parameters: ",
            re.compile(r"^Number of parameters: (?P<model_parameters>[\d,]{1,20})\b"),
        ),
        Stated("Peak FLOPS", re.compile(r"^GPU: (?P<gpu_shown>\S.{0,60}?) \| Peak FLOPS")),
        Stated("total  ", re.compile(r"^total {2,40}: (?P<model_parameters>[\d,]{1,20})\s*$")),
    ),
    settle=_settle,
    begins=("Tokens / micro-batch / rank: ",),
    spoils=("Validation bpb", "CORE metric"),
)
