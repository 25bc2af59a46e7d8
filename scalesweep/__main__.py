"""``python -m scalesweep``: the command ``scalesweep``, and what the workflow's scripts call."""

from scalesweep.commands import main

main()
