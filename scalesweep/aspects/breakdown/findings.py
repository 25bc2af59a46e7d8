"""Findings on where the time of a step goes: losses, and the machine's part."""

from scalesweep.aspects.breakdown.causes import RULES as CAUSES
from scalesweep.aspects.breakdown.first_epoch_loss import RULES as FIRST
from scalesweep.aspects.breakdown.losses import RULES as LOSSES
from scalesweep.aspects.breakdown.machine import RULES as MACHINE

RULES = (*LOSSES, *FIRST, *CAUSES, *MACHINE)
