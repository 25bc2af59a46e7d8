"""Write the parameter tables of config/README.md from benchmark.yaml (--check: only compare)."""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from scalesweep.config.benchmark import BENCHMARKS, load_benchmark

README = ROOT / "config" / "README.md"
TABLE = re.compile(
    r"(<!-- parameters of (\w+): tools/parameters.py writes this table -->\n).*?(<!-- end -->)",
    re.DOTALL,
)


def table(name: str) -> str:
    """Markdown table of a benchmark's parameters."""
    lines = ["| parameter | allowed | default | unit | meaning |", "|---|---|---|---|---|"]
    for parameter in load_benchmark(name).parameters.values():
        default = "null" if parameter.default is None else str(parameter.default)
        default = default.lower() if isinstance(parameter.default, bool) else default
        cells = (f"`{parameter.name}`", parameter.allowed, f"`{default}`", parameter.unit or "")
        lines.append("| " + " | ".join([*cells, parameter.doc.replace("|", "\\|")]) + " |")
    return "\n".join(lines) + "\n"


text = README.read_text()
wanted = TABLE.sub(lambda match: match[1] + table(match[2]) + match[3], text)
missing = {path.parent.name for path in BENCHMARKS.glob("*/benchmark.yaml")} - {
    match[2] for match in TABLE.finditer(text)
}
if missing:
    sys.exit(f"error: config/README.md has no table of {', '.join(sorted(missing))}")
if "--check" in sys.argv:
    sys.exit(0 if wanted == text else "error: config/README.md is stale: tools/parameters.py")
README.write_text(wanted)
