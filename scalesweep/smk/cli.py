"""What every command-line script shares."""

import contextlib
import os
import stat
import sys
from collections.abc import Callable
from typing import NoReturn

from scalesweep.core.errors import UserError
from scalesweep.core.orphans import end_with_snakemake
from scalesweep.core.visible import visible

# Set by the rules (SCRIPT in the Snakefile): the process id of Snakemake. Descriptor 3 is then
# what Snakemake itself writes its messages to.
SNAKEMAKE = "SCALESWEEP_SNAKEMAKE"
_TERMINAL = 3
_state = {"in_rule": False}


def run_main(load: Callable[[], Callable[[], None]]) -> NoReturn:
    """Call what ``load`` imports and returns, and exit: 0, or 1 with ``error: ...`` for a mistake
    of the user.

    A full disk, a missing file or a lacking permission is reported in one line too. A script of a
    rule ends with its Snakemake: it never writes at the same time as the next one.
    """
    _state["in_rule"] = SNAKEMAKE in os.environ
    if _state["in_rule"]:
        end_with_snakemake(int(os.environ.pop(SNAKEMAKE)))
    try:
        main = load()
        if "logging" in sys.modules:  # milliseconds, which a launch is spared: it logs nothing
            from scalesweep.core.log import set_up

            set_up()
        main()
        _flush()
    except UserError as error:
        _fail(f"error: {error}")
    except KeyboardInterrupt:
        sys.exit("error: interrupted")
    except BrokenPipeError:
        # The reader (head, less) went away: nothing is wrong with the work.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except OSError as error:
        place = f": {error.filename}" if error.filename else ""
        _fail(f"error: {error.strerror or error}{place}")
    sys.exit(0)


def _flush() -> None:
    try:
        sys.stdout.flush()
    except OSError as error:
        error.filename = "standard output"
        raise


def warn(text: str) -> None:
    """Write ``warning: ...`` to standard error, and from a script of a rule for the user to see."""
    line = f"warning: {text}"
    _show(line)
    print(line, file=sys.stderr, flush=True)


def _fail(line: str) -> NoReturn:
    """Exit with 1 and a line that is seen, even if the log is on a disk that is full."""
    _show(line)
    sys.exit(line)


def _show(line: str) -> None:
    """Write a line where Snakemake writes its messages, if standard error is the log of a rule."""
    if _is_logged():
        with contextlib.suppress(OSError):
            os.write(_TERMINAL, f"{visible(line)}\n".encode())


def _is_logged() -> bool:
    """Whether standard error is the log of a rule."""
    try:
        return _state["in_rule"] and stat.S_ISREG(os.fstat(sys.stderr.fileno()).st_mode)
    except OSError:
        return False
