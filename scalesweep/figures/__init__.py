"""Style, choice and files of figures, and those that are of no aspect (``scalesweep.aspects``)."""
