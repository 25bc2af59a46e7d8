"""The table ``comparisons``."""

from scalesweep.tables.comparisons import Comparison, comparison_rows
from scalesweep.tables.making import Maker

MAKERS = (Maker(Comparison, lambda i: comparison_rows(i.data, i.points, i.elsewhere, i.site)),)
