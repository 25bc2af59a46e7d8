"""Figures of where the time of a step goes."""

from scalesweep.aspects.breakdown.bars import first_epoch_figures, ledger_figures
from scalesweep.aspects.breakdown.waterfall import waterfall_figures

FIGURES = (ledger_figures, first_epoch_figures, waterfall_figures)
