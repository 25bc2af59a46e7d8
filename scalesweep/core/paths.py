"""Where the parts of scalesweep are: in a checkout, or in the package that a wheel installs."""

import hashlib
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]
_SHIPPED = PACKAGE / "shipped"  # made by pyproject.toml, in wheels only
CHECKOUT = None if _SHIPPED.is_dir() else PACKAGE.parent
REPO = CHECKOUT or _SHIPPED
SNAKEFILE = REPO / "Snakefile"
BENCHMARKS = REPO / "workflow" / "benchmarks"
LAUNCHERS = REPO / "workflow" / "launchers"
RESOURCES = REPO / "resources"
PROFILES = REPO / "profiles"
SITES = REPO / "config" / "sites"
CAMPAIGNS = REPO / "config" / "campaigns"

MARKER = ".scalesweep"  # in a folder whose files are ours


@cache
def code_digest(*distributions: str) -> str:
    """Digest of all that a result may owe to code.

    Of the sources of scalesweep, of its templates, and of the versions of ``distributions``
    (installed packages). Computed in every process, so that it cannot be out of date.
    """
    from importlib.metadata import version  # milliseconds, which a launch is spared

    digest = hashlib.blake2b(digest_size=16)
    files = [*sorted(PACKAGE.rglob("*.py")), *sorted(RESOURCES.glob("*.j2"))]
    for path in files:
        content = path.read_bytes()
        digest.update(f"{path.name}\0{len(content)}\0".encode())
        digest.update(content)
    for name in distributions:
        digest.update(f"{name} {version(name)}\0".encode())
    return digest.hexdigest()
