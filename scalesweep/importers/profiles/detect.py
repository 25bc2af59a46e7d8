"""Which files are profiles, of which tool, and what they hold."""

import contextlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from scalesweep.analysis.profile import Profile
from scalesweep.config.yaml_loader import load_yaml
from scalesweep.core.paths import RESOURCES
from scalesweep.core.visible import visible
from scalesweep.importers.imported_run import Refusal, files_below
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
from scalesweep.importers.profiles.base import Read, head_of
from scalesweep.importers.rank_map import RankMap

_READERS: tuple[tuple[Callable[[str], bool], Read], ...] = (
    *((it.sign, it.read) for it in (pop_modelfactors, mpitrace, talp, tau, horovod_timeline, nsys)),
    *exports.READERS,
    (kineto.sign, kineto.read),
)


class Source(NamedTuple):
    """What a file or a folder holds; ``others`` are the files that are no profile."""

    profiles: list[Profile]
    refusals: list[Refusal]
    others: list[Path]


def instead_of(file: Path) -> str | None:
    """What is to be given instead of a file that is known and not read; None of any other file."""
    head = ""
    with contextlib.suppress(OSError):
        head = head_of(file) if file.is_file() else ""
    for it in load_yaml(RESOURCES / "imported" / "instead.yaml"):
        ends = file.name.lower().endswith(tuple(it.get("ends", ())))
        if ends or re.search(it.get("sign", "(?!)"), head):
            return str(it["read"]).replace("{name}", visible(file.name))
    return None


def reader_of(file: Path) -> Read | None:
    """The reader of a profile by how it begins; None of another file. Raises OSError."""
    head = head_of(file)
    return next((read for sign, read in _READERS if sign(head)), None)


def read_source(path: Path, ranks: RankMap | None = None) -> Source:
    """Every profile of a file, or at or below a folder in the natural order of their names.

    ``ranks`` are those of profiles that state none. Raises UserError if there is no such file or
    folder, or ranks do not fit it.
    """
    source = Source([], [], [])
    groups: dict[tuple[Path, Read, int | None], list[Path]] = {}
    ranks = ranks or RankMap({})
    files = files_below(path, source.refusals)
    ranks.check(files)
    for file in files:
        try:
            read = reader_of(file)
        except OSError as error:
            source.refusals.append(Refusal(file, error.strerror or "cannot be read"))
            continue
        if read is not None:
            groups.setdefault((file.parent, read, ranks.of(file)), []).append(file)
        elif reason := instead_of(file):
            source.refusals.append(Refusal(file, reason))
        else:
            source.others.append(file)
    for (_, read, count), files in groups.items():
        for item in read(files, count):
            (source.profiles if isinstance(item, Profile) else source.refusals).append(item)  # type: ignore[arg-type]
    return source
