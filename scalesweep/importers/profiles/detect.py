"""Which files are profiles, of which tool, and what they hold."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from scalesweep.analysis.profile import Profile
from scalesweep.core.errors import UserError
from scalesweep.importers.imported_run import Refusal, shown
from scalesweep.importers.profiles import (
    exports,
    horovod_timeline,
    kineto,
    mpitrace,
    nsys,
    pop_modelfactors,
    talp,
    tau,
)
from scalesweep.importers.profiles.nsys_database import NO_WINDOW, Window
from scalesweep.importers.profiles.source import ReadResult, head_of, read_each
from scalesweep.importers.rank_map import RankMap
from scalesweep.importers.source_files import files_below

_Read = Callable[[Sequence[Path]], ReadResult]
_Reader = tuple[Callable[[str], bool], _Read]


@dataclass
class Source:
    """What a file or a folder holds; ``others`` are the files that are no profile."""

    profiles: list[Profile]
    refusals: list[Refusal]
    others: list[Path]


def _readers(ranks: int | None, window: Window | None = None) -> tuple[_Reader, ...]:
    """The sign of each format, and its reader; with a window, those that can cut it out."""
    if window is not None:
        cut = partial(nsys.read, ranks=ranks, window=window)
        signs = [sign for sign, _ in _readers(ranks)]
        return tuple((s, cut if s is nsys.recognise else _without_window) for s in signs)

    def each(read_file: Callable[[Path, int | None], Profile]) -> _Read:
        return lambda files: read_each(files, lambda file: [read_file(file, ranks)])

    return (
        (pop_modelfactors.recognise, pop_modelfactors.read),
        (mpitrace.recognise, mpitrace.read),
        (talp.recognise, partial(talp.read, ranks=ranks)),
        (tau.recognise, partial(tau.read, ranks=ranks)),
        (horovod_timeline.recognise, partial(horovod_timeline.read, ranks=ranks)),
        (nsys.recognise, partial(nsys.read, ranks=ranks)),
        (exports.is_scorep, each(exports.read_scorep)),
        (exports.is_hpctoolkit, each(exports.read_hpctoolkit)),
        (exports.is_map, each(exports.read_map)),
        (kineto.recognise, partial(kineto.read, ranks=ranks)),
    )


# Files of profilers that are in no text, by the end of their names, and what is read instead.
_NOT_TEXT = {
    (".cubex", ".cube"): "Score-P's CUBE files are not read: import what `scorep-score -r {name}` "
    "prints",
    (".nsys-rep", ".qdrep", ".qdstrm"): "Nsight Systems' report is not read: import what `nsys "
    "export --type sqlite {name}` or `nsys stats {name}` makes of it",
    (".map",): "MAP's own files are not read: import what `map --export=FILE.json {name}` writes",
    (".hpcrun", ".metric-db", "profile.db", "meta.db", "cct.db", "thread.db"): "HPCToolkit's "
    "binary files are not read: import an experiment.xml that holds sums (hpcprof until 2021)",
    (".ncu-rep",): "Nsight Compute's reports are not read: `nsys` tells where the time goes",
}


def not_text(file: Path) -> str | None:
    """What is read instead of a profiler's file that is in no text; None of any other file."""
    for ends, words in _NOT_TEXT.items():
        if file.name.lower().endswith(ends):
            return words.replace("{name}", shown(file.name))
    return None


def _without_window(files: Sequence[Path]) -> ReadResult:
    """Refuse files whose events have no times."""
    return ReadResult([], [Refusal(file, NO_WINDOW) for file in files])


def read_source(path: Path, ranks: RankMap | None = None, window: Window | None = None) -> Source:
    """Every profile of a file, or at or below a folder in the natural order of their names.

    ``ranks`` are those of profiles that state none, ``window`` is the part of recordings that is
    read. Links to folders and hidden files
    are not followed. Raises UserError if there is no such file or folder, or ranks do not fit it.
    """
    if not path.exists():
        raise UserError(f"{path}: no such file or folder")
    source = Source([], [], [])
    groups: dict[tuple[Path, int, int | None], list[Path]] = {}
    ranks = ranks or RankMap({})
    signs = [recognise for recognise, _ in _readers(None)]
    files = files_below(path, source.refusals)
    ranks.check(files)
    for file in files:
        try:
            if not file.is_file():
                raise OSError(0, "not a regular file")
            head = head_of(file)
        except OSError as error:
            source.refusals.append(Refusal(file, error.strerror or "cannot be read"))
            continue
        kind = next((i for i, recognise in enumerate(signs) if recognise(head)), None)
        if kind is None and (reason := not_text(file)):
            source.refusals.append(Refusal(file, reason))
        elif kind is None:
            source.others.append(file)
        else:
            groups.setdefault((file.parent, kind, ranks.of(file)), []).append(file)
    for (_, kind, count), files in groups.items():
        held = _readers(count, window)[kind][1](files)
        source.profiles += held.profiles
        source.refusals += held.refusals
    return source


def is_profile(file: Path) -> bool:
    """Whether a file begins as a profile of a known tool does."""
    try:
        head = head_of(file)
    except OSError:
        return False
    return any(recognise(head) for recognise, _ in _readers(None))
