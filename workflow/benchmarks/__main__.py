"""Start a program of the benchmarks: ``python workflow/benchmarks PROGRAM [ARGUMENT ...]``.

PROGRAM is a package in this folder, or a module of one (``nt3.dataset``). What starts is the
function ``main(arguments) -> exit code`` of the module, or of the package's module main; a package
without one has the class `Program` in its module benchmark, which the frame runs. Python puts the
folder that it is given first on its search path, whatever PYTHONPATH and the working directory are:
under every launcher, every rank imports benchmarks, and what they share, by qualified names.
"""

import sys
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path

HERE = Path(__file__).resolve().parent
EXIT_UNKNOWN = 2


def find(name: str) -> Callable[[list[str]], int]:
    """Return the function that runs a program; SystemExit with one line where there is none."""
    package, _, module = name.partition(".")
    for file in [module] if "." in name else ["main", "benchmark"]:
        if not (HERE / package / f"{file}.py").is_file():
            continue
        if file == "benchmark":
            return partial(import_module("harness.frame").run_benchmark, package)
        program = getattr(import_module(f"{package}.{file}"), "main", None)
        if callable(program):
            return program
    programs = {
        path.parent.name for file in ("main", "benchmark") for path in HERE.glob(f"*/{file}.py")
    }
    allowed = ", ".join(sorted(programs))
    print(f"benchmarks: no program {name!r}; allowed: {allowed}", file=sys.stderr)
    raise SystemExit(EXIT_UNKNOWN)


# Not in a function: a stack then begins with the program's own.
if __name__ == "__main__":
    sys.exit(find(sys.argv[1] if len(sys.argv) > 1 else "")(sys.argv[2:]))
