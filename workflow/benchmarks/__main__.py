"""Start a program of the benchmarks: ``python workflow/benchmarks PROGRAM [ARGUMENT ...]``.

PROGRAM is a package in this folder (``nt3``: its module main) or a module of one (``nt3.stage``),
with a function ``main(arguments) -> exit code``. Python puts the folder that it is given first on
its search path, whatever PYTHONPATH and the working directory are: under every launcher, every rank
imports benchmarks, and what they share, by qualified names.
"""

import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

HERE = Path(__file__).resolve().parent
EXIT_UNKNOWN = 2


def find(name: str) -> Callable[[list[str]], int]:
    """Return the function `main` of a program; SystemExit with one line where there is none."""
    package, _, module = (name if "." in name else f"{name}.main").partition(".")
    named = package.isidentifier() and module.isidentifier()
    if named and (HERE / package / f"{module}.py").is_file():
        program = getattr(import_module(f"{package}.{module}"), "main", None)
        if callable(program):
            return program
    allowed = ", ".join(programs())
    print(f"benchmarks: no program {name!r}; allowed: {allowed}", file=sys.stderr)
    raise SystemExit(EXIT_UNKNOWN)


def programs() -> list[str]:
    """Return the names of all programs: packages with a module main, and modules named stage."""
    mains = [path.parent.name for path in HERE.glob("*/main.py")]
    stages = [f"{path.parent.name}.stage" for path in HERE.glob("*/stage.py")]
    return sorted([*mains, *stages])


# Not in a function: a stack then begins with the program's own.
if __name__ == "__main__":
    sys.exit(find(sys.argv[1] if len(sys.argv) > 1 else "")(sys.argv[2:]))
