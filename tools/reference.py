"""Write the declared tables into docs/reference/tables.md (--check: only compare)."""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from scalesweep.aspects.registry import parts, shown_tables
from scalesweep.table.declared import columns_of

PAGE = ROOT / "docs" / "reference" / "tables.md"
TYPES = {
    bool: "true or false", int: "integer", float: "number", str: "text", list: "list (JSON)",
    object: "number or text",
}  # fmt: skip
DECLARED = re.compile(
    r"(<!-- declared tables: tools/reference.py writes what follows -->\n).*?(<!-- end -->)",
    re.DOTALL,
)


def columns() -> str:
    """Declared tables: caption, and a row for each column."""
    captions = shown_tables()
    makers = [maker for part in parts("table") for maker in part.MAKERS]
    kinds = {kind.TABLE: kind for maker in makers for kind in maker.kinds}
    lines = []
    for name, kind in sorted(kinds.items()):
        lines += [f"### {name}\n", f"{captions[name]}\n" if name in captions else ""]
        lines += ["| column | type | unit | meaning |", "|---|---|---|---|"]
        for item in columns_of(kind):
            cells = (f"`{item.name}`", TYPES[item.kind], item.unit, item.text)
            lines.append("| " + " | ".join(text.replace("|", "\\|") for text in cells) + " |")
        lines.append("")
    return "\n".join(lines)


def tables() -> str:
    """The page of tables with what is declared in its place."""
    page = PAGE.read_text()
    made = columns()
    if twice := [name for name in re.findall("^### (.*)$", made, re.M) if f"* `{name}`" in page]:
        sys.exit(f"error: docs/reference/tables.md: declared and by hand: {', '.join(twice)}")
    return DECLARED.sub(lambda match: f"{match[1]}\n{made}\n{match[2]}", page)


if __name__ == "__main__":
    text = tables()
    if "--check" in sys.argv and PAGE.read_text() != text:
        sys.exit("error: docs/reference/tables.md is stale: python tools/reference.py")
    PAGE.write_text(text)
