"""Readers of logs: those in ``resources/readers``, and a user's own in a file."""

from functools import cache
from pathlib import Path

from scalesweep.compute.log_reader import Reader, reader_of
from scalesweep.config.yaml_loader import load_yaml
from scalesweep.core.errors import UserError, choices
from scalesweep.core.paths import RESOURCES

_FOLDER = RESOURCES / "readers"


@cache
def shipped_readers() -> dict[str, Reader]:
    """The readers that come with scalesweep, by the names of their files."""
    return {path.stem: load_reader(path) for path in sorted(_FOLDER.glob("*.yaml"))}


def find_reader(named: str, folder: Path, where: str) -> Reader:
    """A shipped reader by its name, or that in a file below ``folder``. Raises UserError."""
    if named.endswith(".yaml"):
        return load_reader(folder / named)
    if named not in shipped_readers():
        raise UserError(f"{where}: {choices(named, shipped_readers())}, or a file NAME.yaml")
    return shipped_readers()[named]


def load_reader(path: Path) -> Reader:
    """The reader in a file; its benchmark has the file's name. Raises UserError."""
    if not path.is_file():
        raise UserError(f"{path}: no such file")
    content = load_yaml(path)
    try:
        return reader_of(content, path.stem, str(path))
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise UserError(
            f"{path}: a value is of another kind than its key needs ({error})"
        ) from None
