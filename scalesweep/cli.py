"""What every command-line script shares."""

import os
import sys
from collections.abc import Callable
from typing import NoReturn

from scalesweep.errors import UserError


def run_main(main: Callable[[], None]) -> NoReturn:
    """Call ``main`` and exit: 0, or 1 with ``error: ...`` for a mistake of the user.

    A full disk, a missing file or a lacking permission is also told in one line.
    """
    try:
        main()
        sys.stdout.flush()
    except UserError as error:
        sys.exit(f"error: {error}")
    except BrokenPipeError:
        # The reader (head, less) went away: nothing is wrong with the work.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except OSError as error:
        place = f": {error.filename}" if error.filename else ""
        sys.exit(f"error: {error.strerror or error}{place}")
    sys.exit(0)
