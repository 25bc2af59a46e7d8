"""The training programs whose logs are read. A new one is a file beside this, and a line here."""

import re

from scalesweep.importers.training_logs import (
    aws_fsdp,
    deepspeed,
    fms_fsdp,
    gpt_neox,
    litgpt,
    maxtext,
    megatron,
    nanochat,
    nanogpt,
    nanotron,
    nemo,
    prime_rl,
    torchtitan,
)

PROGRAMS = (
    torchtitan.TORCHTITAN, megatron.MEGATRON, gpt_neox.GPT_NEOX, nanotron.NANOTRON,
    nanogpt.NANOGPT, nanochat.NANOCHAT, maxtext.MAXTEXT, litgpt.LITGPT, deepspeed.DEEPSPEED,
    aws_fsdp.AWS_FSDP, fms_fsdp.FMS_FSDP, prime_rl.PRIME_RL, nemo.NEMO,
)  # fmt: skip
TRAINING_PROGRAMS = ", ".join(program.name for program in PROGRAMS)
RULES = {program.benchmark: program.rules for program in PROGRAMS}
SIGN = re.compile("|".join(f"(?:{program.sign.pattern})" for program in PROGRAMS))
