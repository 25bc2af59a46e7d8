"""Write into pages of the documentation what code says (--check: only compare).

The parameters of the shipped benchmarks, the columns of declared tables, the causes of failure.
"""

import json
import re
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from scalesweep.aspects.registry import parts, shown_tables
from scalesweep.config.benchmark import BENCHMARKS, load_benchmark
from scalesweep.core.causes import Cause, NextJob, facts_of
from scalesweep.core.formatting import written
from scalesweep.table.declared import columns_of

REFERENCE = ROOT / "docs" / "reference"
TYPES = {
    bool: "true or false", int: "integer", float: "number", str: "text", list: "list (JSON)",
    object: "number or text",
}  # fmt: skip


def table(head: str, rows: Iterable[Iterable[object]]) -> str:
    """A table of Markdown; ``head``: its columns with | between."""
    lines = [f"| {head} |", "|---" * (head.count("|") + 1) + "|"]
    for row in rows:
        cells = (str(cell).replace("|", "\\|") for cell in row)
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def parameters() -> str:
    """Of each benchmark what it measures, and a table of its parameters."""
    text = ""
    for file in sorted(BENCHMARKS.glob("*/benchmark.yaml")):
        name = file.parent.name
        benchmark = load_benchmark(name)
        rows = [
            (f"`{key}`", it.allowed, f"`{written(it.default)}`", it.unit or "", it.doc)
            for key, it in benchmark.parameters.items()
        ]
        more = (file.parent / "README.md").is_file()
        link = f" [More](../../workflow/benchmarks/{name}/README.md)." if more else ""
        head = "parameter | allowed | default | unit | meaning"
        text += f"\n## {name}\n\n{benchmark.summary}{link}\n\n{table(head, rows)}"
    return text


def columns() -> str:
    """Declared tables: caption, and a row for each column."""
    captions = shown_tables()
    makers = [maker for each in parts("MAKERS") for maker in each]
    text = ""
    for name, kind in sorted((kind.TABLE, kind) for maker in makers for kind in maker.kinds):
        rows = [(f"`{it.name}`", TYPES[it.kind], it.unit, it.text) for it in columns_of(kind)]
        caption = f"{captions[name]}\n" if name in captions else ""
        text += f"\n### {name}\n\n{caption}\n{table('column | type | unit | meaning', rows)}"
    return text + "\n"


def retries() -> str:
    """What the next job of a failed run asks for, by cause."""
    rows = []
    for job in NextJob:
        names = [str(cause) for cause in Cause if facts_of(cause).next_job is job]
        rows.append((", ".join(names) if job is not NextJob.NONE else "any other", job))
    return table("cause | next job, in the same call", rows)


def causes() -> str:
    """All causes, who finds them and what they mean."""
    rows = ((it, ", ".join(facts_of(it).found_by), facts_of(it).meaning) for it in Cause)
    return table("cause | found by | meaning", rows)


def rates(script: str) -> str:
    """What a script of bench/ has measured last, a row for each kind of noise, in percent."""
    rows: dict[str, dict[str, object]] = {}
    for it in json.loads((ROOT / "bench/figures.json").read_text())[script]["figures"]:
        noise, _, what = it["name"].partition(": ")
        if what:
            rows.setdefault(noise, {"noise": noise})[what] = f"{it['value']:.3g}"
    return table(" | ".join(next(iter(rows.values()))), (of.values() for of in rows.values()))


MADE: dict[str, tuple[str, Callable[[], str]]] = {
    "parameters": ("parameters.md", parameters),
    "declared tables": ("tables.md", columns),
    "causes of runs": ("causes.md", causes),
    "retries of runs": ("causes.md", retries),
    "error rates": ("../methods/clear.md", lambda: rates("clear")),
    "first lines": ("../methods/clear.md", lambda: rates("comparisons")),
}


def main(check: bool) -> str | None:
    """Write all, or with ``check`` say which page is not as it would be written."""
    for name, (page, make) in MADE.items():
        path, made = REFERENCE / page, make()
        place = re.compile(rf"(<!-- {name}: tools/pages.py [^>]*-->\n).*?(<!-- end -->)", re.S)
        text = path.read_text()
        wanted, places = place.subn(lambda match, made=made: match[1] + made + match[2], text)
        if not places:
            return f"error: {path}: has no place for {name}"
        if check and wanted != text:
            return f"error: {path} is stale: python tools/pages.py"
        path.write_text(wanted)
    return None


if __name__ == "__main__":
    sys.exit(main("--check" in sys.argv))
