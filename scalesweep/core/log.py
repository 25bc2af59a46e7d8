"""Where what the library logs goes: to standard error, as ``warning: ...`` or ``error: ...``.

Library code calls ``logging.getLogger(__name__)``; nothing is set up on import. What a command is
there to say (a plan, a table's path) is its output and not logged.
"""

import logging
import os
import sys

from scalesweep.core.visible import visible

# Set by the Snakefile from --verbose and --quiet (smk.snakemake_facts.verbosity).
VERBOSITY = "SCALESWEEP_VERBOSITY"
_LEVELS = {"quiet": logging.WARNING, "normal": logging.INFO, "verbose": logging.DEBUG}


def set_up() -> None:
    """Have what scalesweep logs written to standard error; doing it again changes nothing."""
    log = logging.getLogger("scalesweep")
    log.setLevel(_LEVELS.get(os.environ.get(VERBOSITY, ""), logging.INFO))
    if not any(isinstance(handler, _Stderr) for handler in log.handlers):
        log.addHandler(_Stderr())


class _Stderr(logging.Handler):
    """Writes to what is standard error at that moment: tests and reports may have changed it."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write one line, information without a word in front."""
        level = "" if record.levelno == logging.INFO else f"{record.levelname.lower()}: "
        line = f"{level}{record.getMessage()}"
        try:
            print(visible(line), file=sys.stderr, flush=True)
        except OSError:
            self.handleError(record)
