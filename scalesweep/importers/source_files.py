"""The files of a source that is to be imported."""

import os
from pathlib import Path

from scalesweep.core.files import natural_order
from scalesweep.importers.imported_run import Refusal


def files_below(path: Path, refusals: list[Refusal]) -> list[Path]:
    """A file, or all files below a folder in the natural order of their names.

    Links to folders and hidden files are not followed. Folders that cannot be read are added to
    ``refusals``.
    """
    if not path.is_dir():
        return [path]

    def unreadable(error: OSError) -> None:
        refusals.append(Refusal(Path(error.filename), error.strerror or "cannot be read"))

    paths = []
    for root, folders, files in os.walk(path, onerror=unreadable):
        folders[:] = [name for name in folders if not name.startswith(".")]
        paths += [Path(root, name) for name in files if not name.startswith(".")]
    return sorted(paths, key=natural_order)
