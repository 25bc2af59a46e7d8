"""The training programs whose logs are read. A new one is a file beside this, and a line here."""

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
from scalesweep.importers.training_logs.patterns import bare
from scalesweep.importers.training_logs.program import LONGEST_LINE, Program

PROGRAMS = (
    torchtitan.TORCHTITAN, megatron.MEGATRON, gpt_neox.GPT_NEOX, nanotron.NANOTRON,
    nanogpt.NANOGPT, nanochat.NANOCHAT, maxtext.MAXTEXT, litgpt.LITGPT, deepspeed.DEEPSPEED,
    aws_fsdp.AWS_FSDP, fms_fsdp.FMS_FSDP, prime_rl.PRIME_RL, nemo.NEMO,
)  # fmt: skip
TRAINING_PROGRAMS = ", ".join(program.name for program in PROGRAMS)
RULES = {program.benchmark: program.rules for program in PROGRAMS}


_MARKS = tuple((mark, program) for program in PROGRAMS for mark in program.marks)


class _Sign:
    """Finds the program that prints a line, as a pattern that many lines are searched for."""

    def search(self, text: str) -> Program | None:
        """The program whose line of progress a line is; None if it is none's."""
        if len(text) > LONGEST_LINE:
            return None
        for mark, program in _MARKS:
            if mark in text and program.sign.search(bare(text)):
                return program
        return None


SIGN = _Sign()
