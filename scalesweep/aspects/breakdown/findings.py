"""Findings on where the time of a step goes: losses, their causes, and the machine's part."""

from scalesweep.aspects.breakdown.causes import RULE as CAUSES
from scalesweep.aspects.breakdown.causes import step_causes
from scalesweep.aspects.breakdown.first_epoch_loss import RULE as FIRST
from scalesweep.aspects.breakdown.first_epoch_loss import first_epoch_loss
from scalesweep.aspects.breakdown.losses import RULE as LOSS
from scalesweep.aspects.breakdown.losses import largest_loss
from scalesweep.aspects.breakdown.machine import COMPUTATION, EXCHANGE, READING, against_machine
from scalesweep.findings.base import Rule

RULES = (
    Rule(largest_loss, figures={LOSS: ("waterfall", "ledger")}),
    Rule(first_epoch_loss, figures={FIRST: ("ledger-first",)}),
    Rule(step_causes, figures={CAUSES: ("steps",)}),
    Rule(
        against_machine,
        figures={COMPUTATION: ("ledger",), EXCHANGE: ("ledger",), READING: ("ledger",)},
    ),
)
