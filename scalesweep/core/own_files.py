"""Which files of a results or history folder scalesweep has made: it replaces and removes no other.

A folder of ours has a marker (``MARKER``). Beside it a manifest (``MANIFEST``) has a line for each
file that was put into the folder for people to read: the digest of its content and its path. The
line is written before the file gets its name, so that a file is recognised however a process ends.
What lies under such a name with another content is a user's: it is set aside, never overwritten.
"""

import contextlib
import json
import logging
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from scalesweep.core.files import (
    file_digest,
    is_whole,
    read_json,
    read_regular,
    replacing,
    write_atomic,
)
from scalesweep.core.log import SEEN

MARKER, MANIFEST = ".scalesweep", ".scalesweep.files"
FORMAT = 1
# What a file that is not ours is called once its name is needed; followed by -2, -3, ...
SET_ASIDE = ".set-aside"
# A manifest that has grown beyond this is written again, with the files that are there.
_LONG = 1 << 21  # bytes
_LAST = 3  # contents of a file that stay known
# Snakemake keeps the time of a folder in it.
_TIME_OF_SNAKEMAKE = ".snakemake_timestamp"
_DRAFT = re.compile(r"\..+\.([0-9]+)\.tmp")

_log = logging.getLogger(__name__)


def is_marked(folder: Path) -> bool:
    """Whether a folder has the marker."""
    content = read_json(folder / MARKER)
    return content is not None and content.get("scalesweep") == "results"


def mark(folder: Path) -> None:
    """Make a folder and its marker; raises OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    text = {
        "scalesweep": "results",
        "format": FORMAT,
        "what": "scalesweep writes into this folder, and removes what it has made here",
    }
    write_atomic(folder / MARKER, json.dumps(text) + "\n", durable=False)


@dataclass
class _Manifest:
    """The contents that a folder's files had as scalesweep left them; read on as it grows."""

    root: Path
    _known: dict[str, list[str]] = field(default_factory=dict)
    _read_to: int = 0
    _inode: int = -1

    def knows(self, path: Path, digest: str) -> bool:
        """Whether a file had this content when it was written."""
        self._read()
        return digest in self._known.get(self._name(path), ())

    def names(self) -> list[Path]:
        """The files that were ever written."""
        self._read()
        return [self.root / name for name in self._known]

    def add(self, entries: Iterable[tuple[Path, str]]) -> None:
        """Note files and their digests; raises OSError."""
        lines = [json.dumps([digest, self._name(path)]) for path, digest in entries]
        if lines:
            # In one piece behind what others write meanwhile; a line that a killed process has
            # cut off is ended.
            with (self.root / MANIFEST).open("ab", buffering=0) as file:
                file.write(("\n" + "\n".join(lines) + "\n").encode())

    def shorten(self) -> None:
        """Leave out files that are gone and contents of long ago, once there are many."""
        path = self.root / MANIFEST
        if path.stat().st_size < _LONG:
            return
        self._read()
        lines = [
            json.dumps([digest, name])
            for name, digests in self._known.items()
            if (self.root / name).exists()
            for digest in digests[-_LAST:]
        ]
        write_atomic(path, "".join(f"{line}\n" for line in lines), durable=False)

    def _name(self, path: Path) -> str:
        return os.path.relpath(path.absolute(), self.root)

    def _read(self) -> None:
        try:
            with (self.root / MANIFEST).open("rb") as file:
                status = os.fstat(file.fileno())
                if status.st_ino != self._inode or status.st_size < self._read_to:
                    self._inode, self._read_to, self._known = status.st_ino, 0, {}
                file.seek(self._read_to)
                content = file.read()
        except OSError:
            self._known = {}
            return
        whole = content[: content.rfind(b"\n") + 1]
        self._read_to += len(whole)
        for line in whole.splitlines():
            try:
                digest, name = json.loads(line)
                known = self._known.setdefault(name, [])
            except (ValueError, TypeError, RecursionError):
                continue  # damaged: that file is taken for a user's
            if digest in known:
                known.remove(digest)
            known.append(digest)


_manifests: dict[Path, _Manifest] = {}


def _manifest_of(path: Path) -> _Manifest | None:
    """The manifest of the marked folder that a file lies in; None in a folder without a marker."""
    for folder in path.absolute().parents:
        if (folder / MARKER).is_file():
            return _manifests.setdefault(folder, _Manifest(folder))
    return None


def _is_known(manifest: _Manifest, path: Path, name: Path | None = None) -> bool:
    """Whether a file has a content that scalesweep gave it, or the file ``name``."""
    try:
        return not path.is_symlink() and manifest.knows(name or path, file_digest(path))
    except OSError:  # a folder, a pipe, a file that cannot be read
        return False


def is_ours(path: Path) -> bool:
    """Whether a file is as scalesweep left it."""
    manifest = _manifest_of(path)
    return manifest is not None and _is_known(manifest, path)


def note(paths: Iterable[Path]) -> None:
    """Take files for ours, with the content that they have; those that cannot be read are not."""
    entries: dict[Path, list[tuple[Path, str]]] = {}
    for path in paths:
        if manifest := _manifest_of(path):
            with contextlib.suppress(OSError):
                entries.setdefault(manifest.root, []).append((path, file_digest(path)))
    for root, files in entries.items():
        _manifests[root].add(files)


def make_way(
    path: Path, further: Path | None = None, why: str = "is not as scalesweep left it"
) -> Path | None:
    """Set aside what lies under a name that is needed, unless it is ours; a line says ``why``.

    ``further``: the file that ``path`` is to be a further name of, or a copy. Returns the new name;
    None if nothing was to be moved. In a folder without a marker nothing is known, and nothing
    moved. Raises OSError.
    """
    manifest = _manifest_of(path)
    if manifest is None or not os.path.lexists(path) or _is_known(manifest, path, further):
        return None
    aside = set_aside(path)
    # What lies in a hidden folder is a further name of what people read.
    hidden = any(part.startswith(".") for part in path.absolute().relative_to(manifest.root).parts)
    _log.warning("%s: %s: kept as %s", path, why, aside.name, extra={} if hidden else SEEN)
    return aside


def set_aside(path: Path) -> Path:
    """Give a file another name, which is returned; raises OSError."""
    aside = _free_name(path.with_name(path.name + SET_ASIDE))
    path.rename(aside)
    return aside


def _free_name(path: Path) -> Path:
    """A name that nothing has: this one, or with a number behind it."""
    number, free = 1, path
    while os.path.lexists(free):
        number += 1
        free = path.with_name(f"{path.name}-{number}")
    return free


def save_others(folder: Path, published: Path) -> None:
    """Before a folder of further names is removed: move what is not ours out of it.

    Its files are further names of those in ``published``, or copies. What others have put there
    keeps its place below FOLDER.set-aside. Raises OSError.
    """
    manifest = _manifest_of(folder)
    if manifest is None or folder.is_symlink():
        return
    saved = folder.with_name(folder.name + SET_ASIDE)
    for top, folders, files in os.walk(folder):
        here = Path(top)
        links = [name for name in folders if (here / name).is_symlink()]
        for path in (here / name for name in (*files, *links)):
            name = path.relative_to(folder)
            if str(name) == _TIME_OF_SNAKEMAKE or _is_further(manifest, path, published / name):
                continue
            target = _free_name(saved / name)
            target.parent.mkdir(parents=True, exist_ok=True)
            path.rename(target)
            said = "%s: scalesweep did not make it: kept as %s"
            _log.warning(said, path, target, extra=SEEN)


def _is_further(manifest: _Manifest, path: Path, name: Path) -> bool:
    """Whether a file is ours as ``name`` is, or another name of it, which stays."""
    with contextlib.suppress(OSError):
        if not path.is_symlink() and path.samefile(name):
            return True
    return _is_known(manifest, path, name)


@contextlib.contextmanager
def publishing(path: Path, durable: bool = False) -> Iterator[Path]:
    """``files.replacing`` for a file that people read: a user's under its name is set aside."""
    with replacing(path, durable) as temporary:
        yield temporary
        ready_to_replace(temporary, path)


def publish(path: Path, content: str | bytes, durable: bool = True) -> None:
    """``files.write_atomic`` for a file that people read (``publishing``)."""
    with publishing(path, durable) as temporary:
        temporary.write_bytes(content.encode() if isinstance(content, str) else content)


def replace_sealed(path: Path, content: bytes, durable: bool = False) -> None:
    """Write a hidden file that its seal tells from a user's (``files.seal``).

    What is there without a whole seal is set aside. Raises OSError.
    """
    if os.path.lexists(path) and not is_sealed(path):
        make_way(path)
    write_atomic(path, content, durable)


def is_sealed(path: Path) -> bool:
    """Whether a file is as a process of ours has sealed it."""
    try:
        return not path.is_symlink() and is_whole(read_regular(path), needed=True)
    except OSError:
        return False


def ready_to_replace(temporary: Path, path: Path) -> None:
    """Before ``temporary`` is renamed to ``path``: note it as ours, and make way for it."""
    if manifest := _manifest_of(path):
        make_way(path)
        digest = file_digest(temporary)
        if not manifest.knows(path, digest):
            manifest.add([(path, digest)])


def remove(path: Path, further: Path | None = None) -> bool:
    """Remove a file if it is ours, or lies in a folder without a marker; whether it is gone.

    ``further``: the file that it is a further name of.
    """
    manifest = _manifest_of(path)
    if manifest is None or _is_known(manifest, path, further):
        path.unlink(missing_ok=True)
    return not os.path.lexists(path)


def remove_others(out: Path, kept: Iterable[Path]) -> None:
    """Remove what scalesweep has made in the folders of ``out`` and is not ``kept``.

    Folders that are empty then go too; nothing else.
    """
    top, keep = out.absolute(), {path.absolute() for path in kept}
    if (manifest := _manifest_of(top / MANIFEST)) is None:
        return
    # Files of ``out`` itself are another step's (of a history in the same folder).
    names = [path for path in manifest.names() if top in path.parents and path.parent != top]
    for path in names:
        if path not in keep and _is_known(manifest, path):
            path.unlink()
    drafts = [path for path in top.glob("*/.*.tmp") if _is_abandoned(path)]
    for path in drafts:
        path.unlink(missing_ok=True)
    for folder in {path.parent for path in (*names, *drafts)}:
        with contextlib.suppress(OSError):  # not empty, or not there
            folder.rmdir()


def _is_abandoned(path: Path) -> bool:
    """Whether a file is what a process that was killed has left of writing (``replacing``)."""
    match = _DRAFT.fullmatch(path.name)
    return match is not None and not Path("/proc", match[1]).exists()


def shorten_manifest(folder: Path) -> None:
    """Write a long manifest again, without what it no longer needs."""
    with contextlib.suppress(OSError):
        _Manifest(folder.absolute()).shorten()
