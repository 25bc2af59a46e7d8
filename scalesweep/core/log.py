"""Where what the library logs goes: to standard error, as ``warning: ...`` or ``error: ...``.

Library code calls ``logging.getLogger(__name__)``; nothing is set up on import. What a command is
there to say (a plan, a table's path) is its output and not logged.
"""

import logging
import os
import sys
from collections.abc import Callable

from scalesweep.core.visible import visible

# Set by the Snakefile from --verbose and --quiet (smk.snakemake_facts.verbosity).
VERBOSITY = "SCALESWEEP_VERBOSITY"
_LEVELS = {"quiet": logging.WARNING, "normal": logging.INFO, "verbose": logging.DEBUG}
# ``extra`` of a line that its reader is to see though the log of a rule takes standard error.
SEEN = {"seen": True}


def set_up(show: Callable[[str], object] | None = None) -> None:
    """Have what scalesweep logs written to standard error; doing it again changes nothing.

    ``show`` is called with lines that are to be seen too (``SEEN``).
    """
    log = logging.getLogger("scalesweep")
    log.setLevel(_LEVELS.get(os.environ.get(VERBOSITY, ""), logging.INFO))
    if not any(isinstance(handler, _Stderr) for handler in log.handlers):
        log.addHandler(_Stderr(show))


class _Stderr(logging.Handler):
    """Writes to what is standard error at that moment: tests and reports may have changed it."""

    def __init__(self, show: Callable[[str], object] | None) -> None:
        super().__init__()
        self._show = show

    def emit(self, record: logging.LogRecord) -> None:
        """Write one line, information without a word in front."""
        level = "" if record.levelno == logging.INFO else f"{record.levelname.lower()}: "
        line = f"{level}{record.getMessage()}"
        if self._show and hasattr(record, "seen"):
            self._show(line)
        try:
            print(visible(line), file=sys.stderr, flush=True)
        except OSError:
            self.handleError(record)
