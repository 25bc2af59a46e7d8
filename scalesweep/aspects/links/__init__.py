"""The latency between every two ranks, and which links are slow."""

from scalesweep.aspects.aspect import Aspect

# Its table has a row per run and pair of ranks: no caption, since nobody reads it as a page.
ASPECT = Aspect(__name__, parts=("table", "figure", "findings"))
