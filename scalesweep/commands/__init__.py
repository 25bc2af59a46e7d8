"""The commands of ``scalesweep``, one module each; ``interface`` says what a user may type.

``run(args)`` of a module carries the command out. The verbs that rules of the workflow call
(``call``) are functions of ``launch`` and ``steps``.
Imports every other package, each command only what it needs: ``launch`` starts on compute nodes,
where nothing outside the standard library may be loaded.
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, NoReturn

from scalesweep.smk.cli import run_main


def main() -> NoReturn:
    """Carry out the command that comes first, and exit; without one, list the commands."""

    def load() -> Callable[[], None]:
        from scalesweep.commands.interface import read  # which a launch is spared

        module, args = read(sys.argv[1:])
        command = import_module(f"{__name__}.{module}")
        return lambda: command.run(args)

    run_main(load)


def call(verb: str, argv: Sequence[str]) -> NoReturn:
    """Parse the arguments of a verb that rules call (``workflow/scripts/step.py``), which are those
    of its function, do it, and exit."""

    def load() -> Callable[[], None]:
        module = import_module(f"{__name__}.{'launch' if verb == 'launch' else 'steps'}")
        step: Any = getattr(module, verb)
        parser = argparse.ArgumentParser(prog=f"step.py {verb}")
        kinds: dict[Any, Any] = {bool: {"action": "store_true"}, Sequence[str]: {"nargs": "+"}}
        # Not by inspect, which takes milliseconds that a launch is spared.
        names = step.__code__.co_varnames[: step.__code__.co_argcount]
        defaults = dict(zip(names[::-1], (step.__defaults__ or ())[::-1], strict=False))
        for name in names:
            kind = step.__annotations__[name]
            parser.add_argument(
                f"--{name.replace('_', '-')}",
                required=name not in defaults,
                default=defaults.get(name),
                **kinds.get(kind, {"type": kind}),
            )
        return lambda: step(**vars(parser.parse_args(argv)))

    run_main(load)
