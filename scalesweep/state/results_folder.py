"""A folder that results go into: new, empty or marked as ours; any other is refused.

So nothing of a user is touched. Inside a marked folder all names that docs/reference/files.md lists
are ours: their files are replaced and removed without a question.
"""

import json
import os
from pathlib import Path

from scalesweep.core.errors import UserError
from scalesweep.core.files import read_json, write_atomic
from scalesweep.core.formatting import listed
from scalesweep.core.paths import MARKER

# Says nothing about whose a folder is, like hidden names: logs of a call that was refused, what a
# history holds that has no page yet.
_NOBODYS = frozenset({"logs", "lost+found", "sessions", "alternate"})


def is_marked(folder: Path) -> bool:
    """Whether a folder has the marker."""
    return (read_json(folder / MARKER) or {}).get("scalesweep") == "results"


def claim_folder(
    folder: Path, where: str, write: bool = True, campaign: Path | None = None
) -> None:
    """Take a folder for results; with ``write`` it has the marker then.

    ``where`` begins the message: what named the folder. ``campaign``: the file of a campaign that
    names no folder; it takes none that is another file's. Raises UserError.
    """
    try:
        if is_marked(folder):
            if campaign:
                _refuse_other(folder, campaign)
            return
        _refuse_foreign(folder, where)
        if write:
            folder.mkdir(parents=True, exist_ok=True)
            # Relative: a study is copied whole.
            of = campaign and os.path.relpath(campaign.resolve(), folder.resolve())
            text = json.dumps({"scalesweep": "results", "campaign": of})
            write_atomic(folder / MARKER, f"{text}\n", durable=False)
    except OSError as error:
        raise UserError(f"{where}: {folder}: cannot be used: {error.strerror}") from None


def _refuse_other(folder: Path, campaign: Path) -> None:
    """Raise UserError if the folder is that of another campaign file, which is still there.

    What advice and imports have written into the folder belongs to it.
    """
    named = (read_json(folder / MARKER) or {}).get("campaign")
    inside = campaign.absolute().parent == folder.absolute()
    if named and not inside and (other := folder / named).exists() and not other.samefile(campaign):
        raise UserError(
            f"{campaign}: results: {folder} holds the results of {os.path.relpath(other)}; add "
            f"`results: results/{campaign.stem}`, or name a folder with --config results=FOLDER "
            "(`scalesweep`: --results FOLDER)"
        )


def _refuse_foreign(folder: Path, where: str) -> None:
    """Raise UserError if a folder without a marker holds anything but results folders."""
    try:
        names = [
            path.name
            for path in sorted(folder.iterdir())
            if not path.name.startswith(".") and path.name not in _NOBODYS and not is_marked(path)
        ]
    except FileNotFoundError:
        return
    if names:
        raise UserError(
            f"{where}: {folder}: holds files that scalesweep did not make "
            f"({listed(names)}): name a new or an empty folder"
        )
