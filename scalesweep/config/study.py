"""A study of one's own: the working folder, where it has campaigns, sites or benchmarks.

``snakemake -s CLONE/Snakefile --directory STUDY`` works in STUDY, whose files are found before the
shipped ones. A name means one file: where both have it, it is refused, unless the files are the
same (``snakedeploy`` copies the shipped configuration).
"""

from collections.abc import Iterable
from pathlib import Path

from scalesweep.core.errors import UserError, choices
from scalesweep.core.paths import CAMPAIGNS, REPO

# What makes a folder a study, and where its files are looked for.
OWN_BENCHMARKS, OWN_SITES = Path("benchmarks"), Path("config", "sites")
OWN_CAMPAIGNS = Path("config", "campaigns")
DEFAULT_CAMPAIGN = Path("config", "config.yaml")


def study_folder() -> Path | None:
    """The study that Snakemake works in; None in this repository, or without files of a study."""
    here = Path.cwd()
    if here == REPO or not any((here / name).is_dir() for name in ("config", "benchmarks")):
        return None
    return here


def named_file(kind: str, name: str, files: Iterable[Path], where: str) -> Path:
    """The file of a site, a campaign or a benchmark, which has the name of its folder, by its name;
    ``files``: those that there are, the study's first.

    Raises UserError that begins with ``where`` for an unknown name, and for files that differ.
    """
    named: dict[str, list[Path]] = {}
    for file in files:
        own = file.parent.name if file.name == "benchmark.yaml" else file.stem
        named.setdefault(own, []).append(file)
    if name not in named:
        raise UserError(f"{where}: no {kind} {name!r}; {choices(name, sorted(named))}")
    here, *others = named[name]
    for there in others:
        # A benchmark is more than its file.
        copy = here.name != "benchmark.yaml" and here.read_bytes() == there.read_bytes()
        if here != there and not copy:
            raise UserError(
                f"{shown(here)}: {there} has this name too; rename the one in your study, "
                "so that the name means one file"
            )
    return here


def file_names(own: Path, shipped: Path, pattern: str) -> list[Path]:
    """Files that fit the pattern, of the study's folder ``own`` and of ``shipped``."""
    study = study_folder()
    folders = [shipped] if study is None else [study / own, shipped]
    return [path for folder in folders for path in folder.glob(pattern)]


def find_campaign(name: str) -> Path:
    """The campaign ``<name>.yaml`` below ``config/campaigns``. Raises UserError."""
    files = file_names(OWN_CAMPAIGNS, CAMPAIGNS, "**/*.yaml")
    return named_file("campaign", name, files, "config/campaigns")


def default_campaign() -> Path:
    """The campaign to run if none is named: the study's ``config/config.yaml``, or the demo."""
    own = (study_folder() or REPO) / DEFAULT_CAMPAIGN
    return own if own.is_file() else REPO / DEFAULT_CAMPAIGN


def campaign_file(named: str | None, results: str | None = None) -> Path:
    """The file of a campaign that is named by its path or name; else that of an import in the
    folder ``results``, or the default one."""
    if not named and results and (made := Path(results) / "campaign.yaml").is_file():
        return shown(made)
    if not named:
        return shown(default_campaign())
    return shown(Path(named) if is_file(named) else find_campaign(named))


def is_file(named: str) -> bool:
    """Whether a text names a campaign by its path."""
    return "/" in named or named.endswith((".yaml", ".yml"))


def shown(path: Path) -> Path:
    """The path as a person would type it: relative to the working folder where it is below it."""
    path = path.absolute()
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
