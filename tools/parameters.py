"""Write the parameter table of config/README.md from benchmark.yaml (--check: only compare)."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from scalesweep.benchmark import load_benchmark

README = ROOT / "config" / "README.md"
START = "<!-- parameters of data_loading: tools/parameters.py writes this table -->\n"
END = "<!-- end -->"


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
head, rest = text.split(START)
wanted = head + START + table("data_loading") + END + rest.split(END, 1)[1]
if "--check" in sys.argv:
    sys.exit(0 if wanted == text else "error: config/README.md is stale: tools/parameters.py")
README.write_text(wanted)
