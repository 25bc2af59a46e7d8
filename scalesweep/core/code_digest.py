"""A digest of the code: what other code has made is made again."""

import hashlib
from functools import cache
from importlib.metadata import version

from scalesweep.core.paths import PACKAGE, RESOURCES


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
