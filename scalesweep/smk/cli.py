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


def run_main(load: Callable[[], Callable[[], None]]) -> NoReturn:
    """Call what ``load`` imports and returns, and exit: 0, or 1 with ``error: ...`` for a mistake
    of the user.

    A full disk, a missing file or a lacking permission is reported in one line too. A script of a
    rule ends with its Snakemake: it never writes at the same time as the next one.
    """
    if snakemake := os.environ.pop(SNAKEMAKE, ""):
        end_with_snakemake(int(snakemake))
    try:
        main = load()
        if "logging" in sys.modules:  # milliseconds, which a launch is spared: it logs nothing
            from scalesweep.core.log import set_up

            set_up()
        main()
        try:
            sys.stdout.flush()
        except OSError as error:
            error.filename = "standard output"
            raise
    except UserError as error:
        _fail(f"error: {error}", bool(snakemake))
    except KeyboardInterrupt:
        sys.exit("error: interrupted")
    except BrokenPipeError:
        # The reader (head, less) went away: nothing is wrong with the work.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except OSError as error:
        place = f": {error.filename}" if error.filename else ""
        _fail(f"error: {error.strerror or error}{place}", bool(snakemake))
    sys.exit(0)


def _fail(line: str, in_rule: bool) -> NoReturn:
    """Exit with 1 and a line that is seen where Snakemake writes its messages too, if standard
    error is the log of a rule, which may be on a disk that is full."""
    with contextlib.suppress(OSError):
        if in_rule and stat.S_ISREG(os.fstat(sys.stderr.fileno()).st_mode):
            os.write(_TERMINAL, f"{visible(line)}\n".encode())
    sys.exit(line)
