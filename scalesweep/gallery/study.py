"""A published study: ``gallery/NAME/study.yaml``.

``workflow/schemas/gallery_study.yaml`` is its schema, docs/guide/gallery.md explains it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scalesweep.config.yaml_loader import check_schema, load_yaml
from scalesweep.core.errors import UserError, choices
from scalesweep.core.paths import GALLERY

STUDY = "study.yaml"
Constant = str | int | float | bool


@dataclass(frozen=True)
class Import:
    """Something that is imported: ``files`` are patterns in the user's source, ``shipped`` is what
    stands for it in the repository; the rest is as ``scalesweep import`` takes it."""

    name: str
    files: tuple[str, ...]
    shipped: Path | None
    tables: str | None  # markdown, plotly
    columns: Mapping[str, str]
    only: str | None
    map: Path | None
    ranks: Any
    kind: str | None
    test: str | None


@dataclass(frozen=True)
class Recomputed:
    """Where a published number comes out: rows of a table, and a formula over their columns.

    Values of ``rows`` and ``over`` are constants, lists of them, or ``{"column": NAME}`` of the
    published row.
    """

    table: str
    value: str
    experiment: str
    rows: Mapping[str, Any]
    over: Mapping[str, Any] | None
    over_value: str
    combine: str | None


@dataclass(frozen=True)
class Known:
    """Published numbers whose difference is known, by what stands in their rows: up to how much,
    relative, and why."""

    rows: Mapping[str, Constant]
    up_to: float
    because: str


@dataclass(frozen=True)
class Check:
    """Published numbers of one kind. ``published`` is as the schema has it; ``within``: what they
    may differ by beyond their digits, relative. ``cut``: these are cut, not rounded."""

    name: str
    where: str
    unit: str
    published: Any
    recomputed: Recomputed
    within: float
    cut: bool
    own_values: bool
    known: tuple[Known, ...]


@dataclass(frozen=True)
class Study:
    """A published study, checked; ``folder`` is its own in the gallery."""

    name: str
    folder: Path
    title: str
    citation: str
    source: str
    licence: str
    needs: str
    imports: tuple[Import, ...]
    checks: tuple[Check, ...]

    @property
    def is_shipped(self) -> bool:
        """Whether all that it imports is in the repository."""
        return all(part.shipped for part in self.imports)

    def reads_numbers_of(self, part: Import) -> bool:
        """Whether a check takes its published numbers from the file that ``part`` imports."""
        return any(
            not isinstance(check.published, list) and check.published.get("rows_of") == part.name
            for check in self.checks
        )


def study_names(gallery: Path = GALLERY) -> list[str]:
    """The names of all studies, in order."""
    return sorted(path.parent.name for path in gallery.glob(f"*/{STUDY}"))


def load_study(name: str, gallery: Path = GALLERY) -> Study:
    """Read a study of the gallery. Raises UserError for one that is not there, or is wrong."""
    names = study_names(gallery)
    if name not in names:
        raise UserError(f"{name}: no study of the gallery; {choices(name, names)}")
    folder = gallery / name
    path = folder / STUDY
    content = load_yaml(path)
    check_schema(content, "gallery_study", path)
    imports = tuple(_import(entry, folder, path) for entry in content["imports"])
    _check_names([part.name for part in imports], path)
    checks = tuple(
        _check(entry, [part.name for part in imports], path) for entry in content["checks"]
    )
    texts = {key: content[key] for key in ("title", "citation", "source", "licence", "needs")}
    return Study(name, folder, **texts, imports=imports, checks=checks)


def _import(entry: Mapping[str, Any], folder: Path, path: Path) -> Import:
    name = entry["name"]
    if "files" not in entry and "shipped" not in entry:
        raise UserError(f"{path}: imports: {name}: name files of the source, or what is shipped")
    shipped = _file(entry.get("shipped"), (folder,), f"{path}: imports: {name}: shipped")
    return Import(
        name,
        tuple(entry.get("files", ())),
        shipped,
        entry.get("tables"),
        entry.get("columns", {}),
        entry.get("only"),
        _file(entry.get("map"), (folder, GALLERY.parent), f"{path}: imports: {name}: map"),
        entry.get("ranks"),
        entry.get("kind"),
        entry.get("test"),
    )


def _file(name: str | None, folders: Sequence[Path], where: str) -> Path | None:
    if name is None:
        return None
    for folder in folders:
        if (folder / name).exists():
            return folder / name
    raise UserError(f"{where}: {name}: no such file in {folders[0]}")


def _check_names(names: Sequence[str], path: Path) -> None:
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise UserError(f"{path}: imports: {twice[0]}: two have this name")


def _check(entry: Mapping[str, Any], imports: Sequence[str], path: Path) -> Check:
    where = f"{path}: checks: {entry['name']}"
    published = entry["published"]
    if isinstance(published, dict):
        if ("file" in published) == ("rows_of" in published):
            raise UserError(f"{where}: published: name either file or rows_of")
        if (of := published.get("rows_of")) and of not in imports:
            raise UserError(f"{where}: published: rows_of: {of}: {choices(of, imports)}")
        _file(published.get("file"), (path.parent,), f"{where}: published: file")
    made = entry["recomputed"]
    recomputed = Recomputed(
        made["table"],
        made["value"],
        made.get("experiment", "*"),
        made.get("rows", {}),
        made.get("over"),
        made.get("over_value", made["value"]),
        made.get("combine"),
    )
    return Check(
        entry["name"],
        entry["where"],
        entry["unit"],
        published,
        recomputed,
        entry.get("within", {}).get("relative", 0.0),
        entry.get("cut", False),
        entry.get("own_values", False),
        tuple(
            Known(each["rows"], each["up_to"], each["because"]) for each in entry.get("known", ())
        ),
    )
