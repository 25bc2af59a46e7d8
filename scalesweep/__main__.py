"""``python -m scalesweep VERB``: what the rules call, from a command line."""

from scalesweep.commands import main

main()
