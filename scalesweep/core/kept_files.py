"""Files that a step has made, kept for its next call by the part of the work they belong to.

What a step has made stays in a hidden folder next to its output, as further names of the same files
(hard links; copies where the file system has none). A part whose inputs are the same is put back
from there. Whatever is in doubt (an index that is not whole, a file whose content is not what was
noted) is made again.
"""

import contextlib
import hashlib
import json
import os
import shutil
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from scalesweep.core.files import file_digest, is_whole, sealed, write_atomic
from scalesweep.core.paths import PACKAGE, RESOURCES

INDEX = "index.json"
_FORMAT = 1


@cache
def code_digest(*distributions: str) -> str:
    """Digest of all that a result may owe to code.

    Of the sources of scalesweep, of its templates, and of the versions of ``distributions``
    (installed packages). Computed in every process, so that it cannot be out of date.
    """
    digest = hashlib.blake2b(digest_size=16)
    files = [*sorted(PACKAGE.rglob("*.py")), *sorted(RESOURCES.glob("*.j2"))]
    for path in files:
        content = path.read_bytes()
        digest.update(f"{path.name}\0{len(content)}\0".encode())
        digest.update(content)
    for name in distributions:
        digest.update(f"{name} {version(name)}\0".encode())
    return digest.hexdigest()


class KeptFiles:
    """What the last call of a step has left of its output folder, and what this one will leave.

    ``made_by`` says what code makes the files (``code_digest``): of other code nothing is taken.
    """

    def __init__(self, out: Path, made_by: str) -> None:
        """Read the index of what is kept; that nothing is kept is no error."""
        self._out = out
        self._folder = out.with_name(f".{out.name}.previous")
        self._made_by = made_by
        self._known: Mapping[str, Any] = self._read()
        self._digests: dict[str, str] = {
            name: digest for part in self._known.values() for name, digest in part["files"].items()
        }
        self._parts: dict[str, dict[str, Any]] = {}
        self._made: list[str] = []

    def _read(self) -> dict[str, Any]:
        try:
            content = (self._folder / INDEX).read_bytes()
            if not is_whole(content, needed=True):
                return {}
            index = json.loads(content)
            known = index["format"] == _FORMAT and index["made_by"] == self._made_by
            return dict(index["parts"]) if known else {}
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return {}

    def note(self, part: str) -> Any:
        """What was noted of a part, whatever it was made of; None if nothing is known of it."""
        return self._known.get(part, {}).get("note")

    def take(self, part: str, key: str) -> bool:
        """Put the files of a part in place, if they were made of ``key``; else the part is to be
        made, and its files may be there in part."""
        known = self._known.get(part)
        if (
            not key
            or known is None
            or known["key"] != key
            or not all(map(self.restore, known["files"]))
        ):
            return False
        self._parts[part] = known
        return True

    def restore(self, name: str) -> bool:
        """Put one file in place, whatever it was made of; whether it is there as it was left."""
        path = self._folder / name
        try:
            if file_digest(path) != self._digests.get(name):
                return False
            _place(path, self._out / name)
        except OSError:
            return False
        return True

    def add(self, part: str, key: str, files: Iterable[Path], note: Any = None) -> None:
        """Remember that ``files`` below the output folder were made of ``key``.

        An empty key, or a note that JSON would change, says that they are to be made again.
        """
        names = {str(path.relative_to(self._out)): file_digest(path) for path in files}
        if not _same_as_json(note):
            key, note = "", None
        self._parts[part] = {"key": key, "files": names, "note": note}
        self._made.append(part)

    def files(self, part: str) -> list[Path]:
        """The files of a part that was taken or added."""
        return [self._out / name for name in self._parts[part]["files"]]

    def link_to(self, folder: Path) -> None:
        """Give the files of all parts a further name in another folder; raises OSError."""
        folder.mkdir(parents=True, exist_ok=True)
        for part in self._parts.values():
            for name in part["files"]:
                _place(self._out / name, folder / name)

    def save(self) -> None:
        """Keep the parts that were taken or added, and no other.

        Where they cannot be kept (a full disk) the next call makes them again.
        """
        with contextlib.suppress(OSError):
            (self._folder / INDEX).unlink(missing_ok=True)
            for part in self._made:
                for name in self._parts[part]["files"]:
                    _place(self._out / name, self._folder / name)
            names = {name for part in self._parts.values() for name in part["files"]}
            self._remove_others(names)
            index = {"format": _FORMAT, "made_by": self._made_by, "parts": self._parts}
            self._folder.mkdir(parents=True, exist_ok=True)
            write_atomic(self._folder / INDEX, sealed(index), durable=False)

    def _remove_others(self, names: set[str]) -> None:
        """Remove what was kept and is not among ``names``."""
        for folder, _, files in os.walk(self._folder, topdown=False):
            here = Path(folder)
            for file in files:
                name = str((here / file).relative_to(self._folder))
                if name not in (*names, INDEX):
                    (here / file).unlink()
            with contextlib.suppress(OSError):  # not empty
                here.rmdir()


def _same_as_json(value: Any) -> bool:
    """Whether a value comes back from JSON unchanged, to the types of its numbers; NaN too."""
    try:
        return repr(json.loads(json.dumps(value))) == repr(value)
    except (TypeError, ValueError):
        return False


def remove_others(out: Path, kept: Iterable[Path]) -> None:
    """Remove what lies in the folders of ``out`` and is not ``kept``; empty folders go too."""
    keep = set(kept)
    for folder in [path for path in out.iterdir() if path.is_dir()]:
        for path in folder.iterdir():
            if path not in keep:
                path.unlink()
        with contextlib.suppress(OSError):  # not empty
            folder.rmdir()


def _place(source: Path, target: Path) -> None:
    """Give a file a further name, in the place of what is there."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(OSError):
        if target.samefile(source) and not target.is_symlink():
            return
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    temporary.unlink(missing_ok=True)
    try:
        os.link(source, temporary)
    except OSError:  # a file system without hard links
        shutil.copy2(source, temporary)
    try:
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)
