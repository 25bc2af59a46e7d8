"""What is made of the runs (plan, summary, tables, figures): is it still as it was made?

Snakemake goes by times, and looks at no file inside a folder. A table that was cut, edited or lost
would stay so, and the next figure would be drawn from it.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from scalesweep.config.campaign import Campaign
from scalesweep.core.files import content_digest, digest_of, stamp_of, write_atomic
from scalesweep.core.kept_files import code_digest
from scalesweep.state.run_state import RunState, lines_of, other_sites

MADE = ".made.json"  # in the results folder: file -> its time and size
# In the results folder: what Snakemake takes for the outputs of the rules ``tables`` and
# ``figures``, and removes before each of their jobs. Further names of the files in the folders of
# these names, which people read, and put files of their own into.
OUTPUTS = ".outputs"
FOLDERS = ("tables", "figures")
# Outputs of other rules for people, which Snakemake removes before it makes them again.
FILES = ("plan.json", "plan.csv", "summary.parquet", "jobs.csv", "report.html")
# Of these something else is made.
_MADE = ("plan.json", "summary.parquet", "jobs.csv", *FOLDERS)
# In the notes, beside the files: what code made them, in the form of a stamp.
_CODE = "code"


def note_made(results: Path) -> None:
    """Remember what lies in the results folder, which has just been made."""
    stamps = {str(path.relative_to(results)): stamp_of(str(path)) for path in _files(results)}
    stamps[_CODE] = _code()
    write_atomic(results / MADE, json.dumps(stamps), durable=False)


def _code() -> str:
    return f"{int(code_digest()[:12], 16)}:0"


def forget_made(results: Path) -> None:
    """Before all of it is made again."""
    (results / MADE).unlink(missing_ok=True)


def was_changed(results: Path) -> bool:
    """Whether something has been changed since, was lost from a folder, or is of another kind, or
    other code of scalesweep made it: its tables and sentences may say what ours no longer do.

    Snakemake itself notices the loss of a file of its own.
    """
    made = [name for name in FOLDERS if (results / OUTPUTS / name).is_dir()]
    if not all((results / name).is_dir() for name in made):
        return True
    if any((results / name).is_dir() for name in FILES):
        return True
    try:
        noted = json.loads((results / MADE).read_bytes())
        stamps = {str(name): str(stamp) for name, stamp in noted.items()}
    except FileNotFoundError:
        return False
    except (OSError, ValueError, AttributeError, RecursionError):
        return True
    if stamps.pop(_CODE, "") != _code():
        return True
    whole = {name for name in _MADE if (results / name).exists()}
    return any(
        stamp_of(f"{results}/{name}") != stamp
        for name, stamp in stamps.items()
        if name.partition("/")[0] in whole
    )


def _files(results: Path) -> Iterator[Path]:
    for name in _MADE:
        path = results / name
        if not path.is_dir():
            yield from [path] if path.is_file() else []
            continue
        # Those that were made: there may be a user's beside them.
        made = results / OUTPUTS / name
        top = made if made.is_dir() else path
        # Snakemake keeps a time in hidden files of its own.
        files = (file for file in top.rglob("*") if not file.name.startswith("."))
        paths = (path / file.relative_to(top) for file in files)
        yield from (file for file in paths if file.is_file())


STATES_FOLDER = ".state"  # in the results folder


def state_digest(campaign: Campaign, states: Mapping[str, RunState]) -> str:
    """Digest of all that tables and report are made from: the campaign and every run's files.

    Equal digests mean that nothing downstream has to be made again.
    """
    # As one text: as lists of strings, 100,000 runs take four times as long.
    here = content_digest("\n".join(lines_of(states)).encode())
    # A folder's time changes with every run that begins in it.
    elsewhere = [[path.name, path.stat().st_mtime_ns] for path in other_sites(campaign.runs_folder)]
    return digest_of([campaign.digest, here, elsewhere])


def state_file(campaign: Campaign, digest: str) -> Path:
    """Stamp that exists while plan, tables and report are of the state ``digest``."""
    return campaign.results / STATES_FOLDER / digest


def stamp_state(campaign: Campaign, states: Mapping[str, RunState]) -> None:
    """Leave the stamp of this state, and of no other."""
    stamp = state_file(campaign, state_digest(campaign, states))
    stamp.parent.mkdir(parents=True, exist_ok=True)
    for old in stamp.parent.iterdir():
        # Snakemake still asks for the others.
        if old != stamp and not old.name.startswith("look-"):
            old.unlink()
    stamp.touch()
