"""What every command-line script shares."""

import contextlib
import os
import signal
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
    _open_closed()
    _state["in_rule"] = SNAKEMAKE in os.environ
    if _state["in_rule"]:
        end_with_snakemake(int(os.environ.pop(SNAKEMAKE)))
    try:
        main = _load(load)
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


def _open_closed() -> None:
    """Open standard streams that the caller has closed: their numbers would else be given to the
    next files, and a program that is started would have none."""
    for number, name in ((1, "stdout"), (2, "stderr")):
        if getattr(sys, name) is None:
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, number)
            os.set_inheritable(number, True)  # where both are the same
            setattr(sys, name, open(number, "w", closefd=False))  # noqa: SIM115


def _load(load: Callable[[], Callable[[], None]]) -> Callable[[], None]:
    """What ``load`` returns. Raises KeyboardInterrupt for Ctrl-C, whatever became of it on its way
    through a library that is imported: numpy says that it lies in a wrong folder."""
    interrupts: list[int] = []

    def interrupt(number: int, _: object) -> None:
        interrupts.append(number)
        raise KeyboardInterrupt

    before = signal.getsignal(signal.SIGINT)
    if before is not signal.default_int_handler:
        return load()
    signal.signal(signal.SIGINT, interrupt)
    try:
        main = load()
    except Exception:
        if interrupts:
            raise KeyboardInterrupt from None
        raise
    finally:
        signal.signal(signal.SIGINT, before)
    if interrupts:
        raise KeyboardInterrupt
    return main


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
