"""What of a user's source a study imports, as words of `scalesweep import`."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

from scalesweep.core.errors import UserError
from scalesweep.core.own_files import publish
from scalesweep.gallery.markdown_tables import tables_as_csv
from scalesweep.gallery.plotly_points import points_as_csv
from scalesweep.gallery.study import Import, Study

# Below the results folder: tables that were read out of files of other kinds.
TABLES = "source_tables"
PLOTLY = "plotly"


@dataclass(frozen=True)
class Brought:
    """A file or folder that is imported, for which part of the study, and as which words."""

    part: Import
    path: Path
    words: tuple[str, ...]


def files_of(study: Study, source: Path | None) -> list[tuple[Import, Path]]:
    """What a study reads of ``source``, or of what the repository holds if that is None; writes
    nothing. Raises UserError for a source that does not hold what the study needs."""
    files = list(_files(study, source))
    if not files:
        raise UserError(f"{study.name}: holds nothing to import; SOURCE is {study.needs}")
    return files


def bring(files: Sequence[tuple[Import, Path]], results: Path, site: str) -> list[Brought]:
    """What is imported of ``files_of``; tables that are read out of other files are written below
    ``results``. Raises UserError for a file that has none."""
    return [
        Brought(part, path, _words(part, path, results, site))
        for part, file in files
        for path in (_as_tables(part, file, results) if part.tables else [file])
    ]


def _files(study: Study, source: Path | None) -> Iterator[tuple[Import, Path]]:
    if source is None:
        if not study.is_shipped:
            raise UserError(
                f"{study.name}: its numbers are not shipped: name SOURCE, {study.needs}"
            )
        yield from ((part, part.shipped) for part in study.imports if part.shipped)
        return
    if not source.exists():
        raise UserError(f"{source}: no such file or folder; SOURCE is {study.needs}")
    if not any(part.files for part in study.imports):
        raise UserError(f"{study.name}: reads no SOURCE: all of its numbers are shipped")
    for part in study.imports:
        if not part.files:
            if part.shipped:
                yield part, part.shipped
            continue
        matches = list(_matches(part, source, len(study.imports) == 1))
        if not matches:
            raise UserError(
                f"{source}: holds no {' or '.join(part.files)}; SOURCE is {study.needs}"
            )
        if len(matches) > 1 and (part.tables or study.reads_numbers_of(part)):
            raise UserError(
                f"{source}: {len(matches)} files match {' or '.join(part.files)}, and"
                f" {study.name}: {part.name} reads one: name it as SOURCE"
            )
        yield from ((part, path) for path in matches)


def _matches(part: Import, source: Path, alone: bool) -> Iterator[Path]:
    if source.is_file():
        if alone or any(fnmatch(source.name, Path(name).name) for name in part.files):
            yield source
        return
    for name in part.files:
        yield from [source] if name == "." else sorted(source.glob(name))


def _as_tables(part: Import, path: Path, results: Path) -> Iterator[Path]:
    """A file's tables as a CSV file. One that is CSV already is taken as it is."""
    if path.suffix == ".csv":
        yield path
        return
    read = points_as_csv if part.tables == PLOTLY else tables_as_csv
    text = read(path, part.only, part.columns)
    table = results / TABLES / f"{part.name}.csv"
    table.parent.mkdir(parents=True, exist_ok=True)
    publish(table, text)
    yield table


def _words(part: Import, path: Path, results: Path, site: str) -> tuple[str, ...]:
    ranks = part.ranks if isinstance(part.ranks, str | None) else json.dumps(part.ranks)
    options = {
        "--map": part.map, "--ranks": ranks, "--as": part.kind, "--test": part.test,
        "--site": site, "--results": results,
    }  # fmt: skip
    words = [str(path)]
    for option, value in options.items():
        if value is not None:
            words += [option, str(value)]
    return tuple(words)
