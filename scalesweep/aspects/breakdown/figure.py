"""Figures of where the time of a step goes."""

from scalesweep.aspects.breakdown.bars import ledger_figures
from scalesweep.aspects.breakdown.waterfall import waterfall_figures

FIGURES = (ledger_figures, waterfall_figures)
