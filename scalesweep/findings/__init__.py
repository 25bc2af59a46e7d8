"""What a finding is, and the rules that are of no aspect of their own (``scalesweep.aspects``)."""
