"""Write docs/reference/parameters.md from every benchmark.yaml (--check: only compare)."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from scalesweep.config.benchmark import BENCHMARKS, load_benchmark

PAGE = ROOT / "docs" / "reference" / "parameters.md"
HEAD = """\
<!-- tools/parameters.py writes this page from workflow/benchmarks/*/benchmark.yaml. -->
# Parameters of the shipped benchmarks

A value that is not allowed is refused before anything runs.
"""


def section(name: str) -> str:
    """What a benchmark measures, and a table of its parameters."""
    benchmark = load_benchmark(name)
    lines = ["| parameter | allowed | default | unit | meaning |", "|---|---|---|---|---|"]
    for parameter in benchmark.parameters.values():
        default = "null" if parameter.default is None else str(parameter.default)
        default = default.lower() if isinstance(parameter.default, bool) else default
        cells = (f"`{parameter.name}`", parameter.allowed, f"`{default}`", parameter.unit or "")
        lines.append("| " + " | ".join([*cells, parameter.doc.replace("|", "\\|")]) + " |")
    more = (BENCHMARKS / name / "README.md").is_file()
    link = f" [More](../../workflow/benchmarks/{name}/README.md)." if more else ""
    return "\n".join([f"\n## {name}\n", f"{benchmark.summary}{link}\n", *lines]) + "\n"


names = sorted(path.parent.name for path in BENCHMARKS.glob("*/benchmark.yaml"))
wanted = HEAD + "".join(map(section, names))
if "--check" in sys.argv:
    fresh = PAGE.is_file() and PAGE.read_text() == wanted
    sys.exit(0 if fresh else "error: docs/reference/parameters.md is stale: tools/parameters.py")
PAGE.write_text(wanted)
