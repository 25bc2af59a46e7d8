"""Where the parts of this repository are."""

from pathlib import Path

REPO = Path(__file__).resolve().parents[2]
BENCHMARKS = REPO / "workflow" / "benchmarks"
CANARY = REPO / "workflow" / "canary" / "canary.py"
LAUNCHERS = REPO / "workflow" / "launchers"
SCHEMAS = REPO / "workflow" / "schemas"
RESOURCES = REPO / "resources"
SITES = REPO / "config" / "sites"
CAMPAIGNS = REPO / "config" / "campaigns"
