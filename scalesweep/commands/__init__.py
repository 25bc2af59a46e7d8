"""The commands of ``scalesweep``, one module each; ``interface`` says what a user may type.

``run(args)`` of a module carries the command out. The verbs that rules of the workflow call
(``INTERNAL``) have ``add_arguments(parser)`` too. Imports every other package, each command only
what it needs: ``launch`` starts on compute nodes, where nothing outside the standard library may be
loaded.
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import NoReturn

from scalesweep.smk.cli import run_main

# What the scripts of the workflow call, and no help lists: `python -m scalesweep VERB`.
INTERNAL = (
    *("accounting", "figures", "inventory", "launch", "page"),
    *("session", "summarise", "tables"),
)


def main(argv: Sequence[str] | None = None) -> NoReturn:
    """Carry out the command that comes first, and exit; without one, list the commands."""
    words = list(sys.argv[1:] if argv is None else argv)
    if words and words[0] in INTERNAL:
        call(words[0], words[1:])

    def load() -> Callable[[], None]:
        from scalesweep.commands.interface import read  # which a launch is spared

        module, args = read(words)
        command = import_module(f"{__name__}.{module}")
        return lambda: command.run(args)

    run_main(load)


def call(verb: str, argv: Sequence[str] | None = None) -> NoReturn:
    """Parse ``argv`` (None: this process's arguments) for an internal verb, do it, and exit."""

    def load() -> Callable[[], None]:
        module = import_module(f"{__name__}.{verb}")
        parser = argparse.ArgumentParser(
            prog=f"python -m scalesweep {verb}", description=module.__doc__
        )
        module.add_arguments(parser)
        return lambda: module.run(parser.parse_args(argv))

    run_main(load)
