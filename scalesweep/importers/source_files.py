"""The files of a source that is to be imported."""

import os
from pathlib import Path

from scalesweep.core.files import natural_order
from scalesweep.importers.imported_run import Refusal


def files_below(path: Path, refusals: list[Refusal]) -> list[Path]:
    """A file, or all files below a folder in the natural order of their names.

    Links to folders and hidden files are not followed. Folders that cannot be read are added to
    ``refusals``, and so are the ``._`` files that macOS puts beside others.
    """
    if not path.is_dir():
        return [path]

    def unreadable(error: OSError) -> None:
        refusals.append(Refusal(Path(error.filename), error.strerror or "cannot be read"))

    paths = []
    for root, folders, files in os.walk(path, onerror=unreadable):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in files:
            if name.startswith("._"):
                reason = "a file of macOS's that holds attributes of the one beside it"
                refusals.append(Refusal(Path(root, name), reason))
        paths += [Path(root, name) for name in files if not name.startswith(".")]
    return sorted(paths, key=natural_order)
