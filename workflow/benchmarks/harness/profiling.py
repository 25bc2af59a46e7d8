"""Profiles of a benchmark program, where the launcher asks for one (by its variables).

cprofile: each rank's Python functions, from the imports of its benchmark on, as ``rank<r>.prof``
(module pstats reads it). tensorflow, torch: what the framework's own profiler sees on each rank,
from the start of the ranks to their end (`ranks`). A Horovod timeline is Horovod's own business.
"""

import contextlib
import cProfile
import os
from collections.abc import Iterator
from pathlib import Path

from harness.rank_variables import rank_of

CPROFILE = "cprofile"


def folder_of(kind: str) -> Path | None:
    """Return where to leave a profile of this kind; None if it was not asked for."""
    if os.environ.get("SCALESWEEP_PROFILE") != kind:
        return None
    return Path(os.environ["SCALESWEEP_PROFILE_FOLDER"])


@contextlib.contextmanager
def python_functions() -> Iterator[None]:
    """Profile the body of a ``with`` statement with cProfile, also when it raises."""
    folder = folder_of(CPROFILE)
    if folder is None:
        yield
        return
    profile = cProfile.Profile()
    try:
        profile.enable()
        yield
    finally:
        profile.disable()
        profile.dump_stats(folder / f"rank{rank_of(os.environ) or 0}.prof")
