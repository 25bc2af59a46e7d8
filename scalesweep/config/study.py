"""A study of one's own: the working folder, if it has campaigns, sites or benchmarks, whose files
come before the shipped ones of the same name."""

from collections.abc import Iterable
from pathlib import Path

from scalesweep.core.errors import UserError, choices
from scalesweep.core.paths import REPO

# What makes a folder a study, and where its files are looked for.
OWN_BENCHMARKS, OWN_SITES = Path("benchmarks"), Path("config", "sites")


def study_folder() -> Path | None:
    """The study that Snakemake works in; None in this repository, or without files of a study."""
    here = Path.cwd()
    if here == REPO or not any((here / name).is_dir() for name in ("config", "benchmarks")):
        return None
    return here


def named_file(kind: str, name: str, files: Iterable[Path], where: str) -> Path:
    """The first file of a site, a campaign or a benchmark by its name. Raises UserError."""
    named: dict[str, Path] = {}
    for file in files:
        named.setdefault(file.parent.name if file.name == "benchmark.yaml" else file.stem, file)
    if name not in named:
        raise UserError(f"{where}: no {kind} {name!r}; {choices(name, sorted(named))}")
    return named[name]


def file_names(own: Path, shipped: Path, pattern: str) -> list[Path]:
    """Files that fit the pattern, of the study's folder ``own`` and of ``shipped``."""
    study = study_folder()
    folders = [shipped] if study is None else [study / own, shipped]
    return [path for folder in folders for path in sorted(folder.glob(pattern))]


def shown(path: Path) -> Path:
    """The path as a person would type it: relative to the working folder where it is below it."""
    path = path.absolute()
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
