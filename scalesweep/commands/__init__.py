"""The commands of ``scalesweep``, one module each; ``interface`` says what a user may type.

``run(args)`` of a module carries the command out. Of the verbs that rules of the workflow call
(``call``) three have ``add_arguments(parser)`` too; the others are functions of ``steps``.
Imports every other package, each command only what it needs: ``launch`` starts on compute nodes,
where nothing outside the standard library may be loaded.
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

from scalesweep.smk.cli import run_main

STEPS = ("accounting", "figures", "page", "summarise", "tables")


def main() -> NoReturn:
    """Carry out the command that comes first, and exit; without one, list the commands."""

    def load() -> Callable[[], None]:
        from scalesweep.commands.interface import read  # which a launch is spared

        module, args = read(sys.argv[1:])
        command = import_module(f"{__name__}.{module}")
        return lambda: command.run(args)

    run_main(load)


def call(verb: str, argv: Sequence[str]) -> NoReturn:
    """Parse the arguments of a verb that rules call (``workflow/scripts/step.py``), do it, and
    exit."""

    def load() -> Callable[[], None]:
        module = import_module(f"{__name__}.{'steps' if verb in STEPS else verb}")
        step: Any = getattr(module, verb) if verb in STEPS else module
        parser = argparse.ArgumentParser(prog=f"step.py {verb}", description=step.__doc__)
        if verb not in STEPS:
            module.add_arguments(parser)
            return lambda: module.run(parser.parse_args(argv))
        from inspect import signature  # which a launch is spared

        for name, it in signature(step).parameters.items():
            many = it.annotation == Sequence[str]
            kind: Any = {"nargs": "+"} if many else {"type": int if it.annotation is int else Path}
            required = it.default is it.empty
            parser.add_argument(f"--{name}", required=required, default=it.default, **kind)
        return lambda: step(**vars(parser.parse_args(argv)))

    run_main(load)
