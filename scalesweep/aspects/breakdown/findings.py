"""Findings on where the time of a step goes: losses, and the machine's part."""

from scalesweep.analysis.multiple import STEP
from scalesweep.aspects.breakdown.causes import RULES as CAUSES
from scalesweep.aspects.breakdown.first_epoch_loss import RULES as FIRST
from scalesweep.aspects.breakdown.losses import RULE as LOSS
from scalesweep.aspects.breakdown.losses import largest_loss
from scalesweep.aspects.breakdown.machine import RULES as MACHINE
from scalesweep.findings.base import Rule

RULES = (
    Rule(LOSS, largest_loss, part=STEP, figures=("waterfall", "ledger")),
    *FIRST,
    *CAUSES,
    *MACHINE,
)
