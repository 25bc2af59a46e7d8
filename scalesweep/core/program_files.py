"""The files of a program, as a record says what was started: content, and repository.

Standard library only: the launcher describes them on compute nodes.
"""

import contextlib
import hashlib
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from scalesweep.core.files import file_digest
from scalesweep.core.host import git_state

# A larger file is known by its size: reading it before every run would take longer than many runs.
MAX_BYTES = 1 << 28
MAX_FILES = 1000  # of a folder: more are an environment or data, not a program


def located(program: str, search: str | None = None) -> Path:
    """Where a program is: a word without a slash is looked for in ``search`` (None: in PATH)."""
    if "/" in program:
        return Path(program)
    return Path(shutil.which(program, path=search) or program)


def described_file(path: Path) -> dict[str, Any]:
    """Path, size in bytes and digest of a program; of a folder those of its Python files.

    Size and digest are None where nothing can be read and of a folder with more than ``MAX_FILES``,
    the digest also of a file above ``MAX_BYTES``.
    """
    size = digest = None
    with contextlib.suppress(OSError, ValueError):  # ValueError: no path at all
        if path.is_dir():
            size, digest = _folder(path)
        elif path.is_file():
            size = path.stat().st_size
            digest = file_digest(path) if size <= MAX_BYTES else None
    return {"path": str(path), "bytes": size, "blake2b": digest}


def described_image(image: str) -> dict[str, Any]:
    """What a record says of a container's image: ``described_file``, and ``sif_id``, the UUID that
    `apptainer sif header` prints (None for anything but a SIF file)."""
    path, sif = Path(image), None
    if path.is_file():
        with path.open("rb") as file:
            head = file.read(64)
        # SIF's header: 32 bytes of a launch script, a magic of 10, version 3, architecture 3, UUID.
        if head[32:41] == b"SIF_MAGIC" and len(head) == 64:
            import uuid  # takes milliseconds, which runs without a container are spared

            sif = str(uuid.UUID(bytes=head[48:64]))
    return {**described_file(path), "path": image, "sif_id": sif}


def _folder(folder: Path) -> tuple[int | None, str | None]:
    """Size and digest of all Python files below a folder, by name and content."""
    paths: list[Path] = []
    for top, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith((".", "__"))]
        paths += [Path(top, name) for name in names if name.endswith(".py")]
        if len(paths) > MAX_FILES:
            return None, None
    digest, size = hashlib.blake2b(digest_size=16), 0
    for path in sorted(paths):
        content = path.read_bytes()
        size += len(content)
        digest.update(f"{path.relative_to(folder)}\0{len(content)}\0".encode())
        digest.update(content)
    return size, digest.hexdigest()


def described_program(
    program: Mapping[str, Any], foreign: bool, search: str | None = None
) -> dict[str, Any]:
    """What a record says of the program (``Order.program``): its files are described.

    ``foreign``: with commit and state of the repository that each lies in. ``search``: the PATH of
    the run.
    """
    files = {}
    for name, word in program["files"].items():
        path = located(word, search)
        files[name] = described_file(path)
        if foreign:
            files[name]["git"] = git_state(path.parent) if path.is_file() else None
    return {**program, "files": files}
