"""The verbs of the command line, one module each: ``python -m scalesweep VERB``.

A verb's docstring is its help, ``add_arguments(parser)`` names its arguments and ``run(args)``
carries it out. Imports every other package, each verb only what it needs: ``launch`` starts on
compute nodes, where nothing outside the standard library may be loaded.
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import NoReturn

from scalesweep.smk.cli import run_main


def main(argv: Sequence[str] | None = None) -> NoReturn:
    """Carry out the verb that comes first; without one, or with ``--help``, list the verbs."""
    words = list(sys.argv[1:] if argv is None else argv)
    names = verbs()
    if not words or words[0] not in names:
        parser = argparse.ArgumentParser(prog="python -m scalesweep")
        parser.add_argument("verb", choices=names, metavar="VERB", help=", ".join(names))
        parser.parse_args(words[:1])
    call(words[0], words[1:])


def verbs() -> list[str]:
    """Names of all verbs, sorted."""
    from pkgutil import iter_modules  # milliseconds, which a launch is spared

    return sorted(module.name for module in iter_modules(__path__))


def call(verb: str, argv: Sequence[str] | None = None) -> NoReturn:
    """Parse ``argv`` (None: this process's arguments) for the verb, carry it out, and exit."""

    def load() -> Callable[[], None]:
        module = import_module(f"{__name__}.{verb}")
        parser = argparse.ArgumentParser(
            prog=f"python -m scalesweep {verb}", description=module.__doc__
        )
        module.add_arguments(parser)
        return lambda: module.run(parser.parse_args(argv))

    run_main(load)
