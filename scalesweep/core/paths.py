"""Where the parts of scalesweep are: in a checkout, or in the package that a wheel installs."""

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
