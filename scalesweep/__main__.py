"""``python -m scalesweep``: the command ``scalesweep``."""

from scalesweep.commands import main

main()
