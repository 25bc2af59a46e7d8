"""A folder that results go into: made with a marker, adopted if it is ours, or refused.

Nothing is written before that. ``core.own_files`` says which files in it are ours.
"""

import contextlib
import errno
import logging
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from scalesweep.config.study import study_folder
from scalesweep.core import own_files
from scalesweep.core.errors import UserError
from scalesweep.core.files import file_digest, read_json, stamp_of
from scalesweep.core.kept_files import digests_of
from scalesweep.core.locks import REPORT, RUNS, is_lock
from scalesweep.core.paths import REPO
from scalesweep.core.plan_format import PLAN
from scalesweep.core.record import FAILURE, RECORD
from scalesweep.core.stamps import make_way_for_stamp
from scalesweep.state.artifacts import FILES, MADE, OUTPUTS, STATES_FOLDER, noted_made
from scalesweep.state.reextract import MARKERS

_log = logging.getLogger(__name__)

# What says nothing about whose folder it is.
_NOBODYS = frozenset(
    {".gitignore", ".gitkeep", ".gitattributes", ".DS_Store", ".snakemake", "lost+found"}
)
_LOGS, TABLE = "logs", "plan.csv"
# The folders in it.
_PARTS = ("runs", _LOGS, OUTPUTS, STATES_FOLDER)
# The folders of stamps.
_STAMPS = (STATES_FOLDER, MARKERS)
# What builds of earlier versions made and noted nothing of.
_NOT_NOTED = (TABLE, "figures/index.json", ".jobs.csv.previous")
# Earlier versions kept these with an index.
_WITH_DIGESTS = (".tables.previous", ".figures.previous")
_OF_A_RUN = (RECORD, FAILURE, "order.json", "launcher.log")
_SHOWN = 3
# The start of plan.csv, which is all that `snakemake plan` of earlier versions left, and of what
# imports write.
_BEGINNINGS = {
    TABLE: b"experiment,scaling,run_id,benchmark,site,repeat,",
    "campaign.yaml": b"# Written by import",
    "refused.csv": b"file,line,what,benchmark,reason",
}
# Of a page of earlier versions, which wrote no manifest, only the title is known.
_TITLES = {"report.html": b": scaling report</title>", "history.html": b"<title>History of "}
_TITLE_WITHIN = 4096  # bytes


def claim_folder(folder: Path, where: str, write: bool = True) -> None:
    """Make a folder for results, or take one that is ours; with ``write`` it has the marker then.

    ``where`` begins the message: what named the folder. Raises UserError if it is none of ours, is
    no folder, or is one that others need.
    """
    path = folder.absolute()
    try:
        exists = _is_folder(path, where)
        _check_place(path, folder, where)
        marked = own_files.is_marked(path)
        if exists and not marked and not _is_ours(path):
            _refuse_foreign(path, folder, where)
        _check_parts(folder)
        if write and not marked:
            own_files.mark(path)
            own_files.note(_known_before(path))
            _keep_logs(path)
        if write and exists:
            own_files.shorten_manifest(path)
            for stamps in _STAMPS:
                for file in list(_entries(path / stamps)):
                    make_way_for_stamp(file)
    except OSError as error:
        said = error.strerror or str(error)
        raise UserError(f"{where}: {folder}: cannot be used: {said}") from None


def _check_parts(results: Path) -> None:
    """Raise UserError for what lies under a name of ours that Snakemake cannot deal with."""
    for path in (results / name for name in _PARTS):
        if os.path.lexists(path) and not path.is_dir():
            what = "a link to no folder" if path.is_symlink() else "a file, not a folder"
            raise UserError(f"{path}: is {what}: move it away, scalesweep needs this name")
    for path in (results / name for name in FILES):
        if path.is_symlink() and not path.exists():
            raise UserError(f"{path}: is a link to what does not exist: remove it")


def check_writable(results: Path) -> None:
    """Raise UserError if no log can be kept in a results folder.

    Snakemake removes the log of a job before it starts, and breaks where that fails.
    """
    try:
        logs = results / "logs"
        logs.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=logs):
            pass
    except OSError as error:
        where = f"{results}: cannot write to this folder"
        raise UserError(f"{where}: {error.strerror}; every call keeps its log there") from None


def _is_folder(path: Path, where: str) -> bool:
    """Whether a folder is there; raises UserError if something else is in its way."""
    try:
        path.stat()
    except FileNotFoundError:
        if path.is_symlink():
            raise UserError(f"{where}: {path}: is a link to what does not exist") from None
        return False
    except NotADirectoryError:
        raise UserError(f"{where}: {path}: lies below a file, not a folder") from None
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise UserError(f"{where}: {path}: is a link that leads back to itself") from None
        raise
    if not path.is_dir():
        raise UserError(f"{where}: {path}: is a file; name a folder")
    return True


def _check_place(path: Path, named: Path, where: str) -> None:
    """Raise UserError for a folder that holds more than results by what it is."""
    real = path.resolve()
    places = {
        "the working folder": Path.cwd(),
        "the folder of scalesweep": REPO,
        "your study": study_folder(),
        "your home folder": Path.home(),
    }
    for what, place in places.items():
        if place is not None and (real == (of := place.resolve()) or real in of.parents):
            is_it = "is" if real == of else "contains"
            raise UserError(
                f"{where}: {named}: {is_it} {what}: results need a folder of their own, "
                "such as results/NAME"
            )


def _refuse_foreign(path: Path, named: Path, where: str) -> None:
    """Raise UserError if a folder that is not ours holds anything."""
    names = sorted(entry.name for entry in path.iterdir() if not _is_nobodys(entry))
    if names:
        shown = ", ".join(names[:_SHOWN])
        more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
        raise UserError(
            f"{where}: {named}: holds files that scalesweep did not make ({shown}{more}): "
            "name a new or an empty folder"
        )


def _is_nobodys(entry: Path) -> bool:
    """Whether an entry says nothing about whose folder it is: of the system, a lock, logs, or
    a results folder of its own, such as ``results/imported``."""
    name = entry.name
    if own_files.is_marked(entry) or (entry.is_dir() and _is_ours(entry)):
        return True
    if name in (RUNS, REPORT):
        return is_lock(entry)
    if name == _LOGS and entry.is_dir():
        return all(file.suffix in (".log", ".failed") for file in entry.iterdir())
    return name in _NOBODYS or name.startswith((".nfs", f".{own_files.MARKER}."))


def _keep_logs(path: Path) -> None:
    """Set aside the logs that are there before the folder is ours: nothing says whose they are."""
    kept = [
        own_files.set_aside(file)
        for file in list(_entries(path / _LOGS))
        if file.suffix in (".log", ".failed") and (file.is_symlink() or file.stat().st_size)
    ]
    if kept:
        said = "%s: what was there before is kept as NAME%s"
        _log.info(said, path / _LOGS, own_files.SET_ASIDE)


def _is_ours(path: Path) -> bool:
    """Whether a folder without a marker is recognisably one of an earlier version."""
    if noted_made(path):
        return True
    if any(digests_of(path / kept) for kept in _WITH_DIGESTS):
        return True
    for name, beginning in _BEGINNINGS.items():
        if _begins(path / name, beginning):
            return True
    plan = read_json(path / PLAN)
    if plan is not None and {"campaign", "experiments"} <= plan.keys():
        return True
    runs = (folder for site in _folders(path / "runs") for folder in _folders(site))
    if any((folder / name).is_file() for folder in runs for name in _OF_A_RUN):
        return True
    # A history.
    return _is_history(path)


def _made_with_plan(path: Path) -> Iterator[Path]:
    """Files of a build that nothing is noted of, if nobody has edited them: they are no older than
    the plan, with which a build begins, and no younger than the notes, with which it ends."""
    first, last = ((path / name).stat().st_mtime for name in (PLAN, MADE))
    for name in _NOT_NOTED:
        with contextlib.suppress(OSError):
            if first <= (path / name).stat().st_mtime <= last:
                yield path / name


def _is_history(path: Path) -> bool:
    return any(file.suffix == ".parquet" for file in _entries(path / "sessions"))


def _begins(file: Path, beginning: bytes) -> bool:
    if not file.is_file():
        return False
    with file.open("rb") as content:
        return content.read(len(beginning)) == beginning


def _entries(folder: Path) -> Iterator[Path]:
    if folder.is_dir():
        yield from folder.iterdir()


def _folders(folder: Path) -> Iterator[Path]:
    return (path for path in _entries(folder) if path.is_dir())


def _known_before(path: Path) -> Iterator[Path]:
    """The files of a folder of an earlier version that are as that version left them."""
    made = noted_made(path)
    yield from (path / name for name, stamp in made.items() if stamp_of(f"{path}/{name}") == stamp)
    if PLAN in made and made[PLAN] == stamp_of(f"{path}/{PLAN}"):
        yield from _made_with_plan(path)
    for kept in _WITH_DIGESTS:
        out = path / kept.removeprefix(".").removesuffix(".previous")
        for name, digest in digests_of(path / kept).items():
            with contextlib.suppress(OSError):
                if file_digest(out / name) == digest:
                    yield out / name
    for name, title in _TITLES.items():
        page = path / name
        if page.is_file():
            with page.open("rb") as content:
                if title in content.read(_TITLE_WITHIN):
                    yield page
    if _is_history(path):
        yield from (path / "tables" / f"verdicts.{suffix}" for suffix in ("csv", "parquet"))
