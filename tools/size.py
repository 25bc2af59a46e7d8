"""How heavy the house is: lines of Python, words of documentation, and their budgets.

A line is a line of the file as ``ruff format`` leaves it. A word is one that somebody wrote: pages
and tables that a tool writes do not count. Budgets are in ``[tool.size]`` of pyproject.toml and
are only ever lowered; ``--check`` fails, and prints, if one is exceeded.

    python tools/size.py [--check]
"""

import ast
import re
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
GENERATED_PAGE = re.compile(r"<!-- tools/\S+ writes this page")
GENERATED_REST = re.compile(r"<!-- [^>]*tools/\S+ writes what follows.*", re.DOTALL)
GENERATED_TABLE = re.compile(r"<!-- [^>]*tools/\S+ writes[^>]*-->\s*(?:^\|.*\n?)+", re.MULTILINE)
PROSE = ("docs", "README.md", "CONTRIBUTING.md")
BESIDE = {".yaml": "YAML", ".yml": "YAML", ".js": "JavaScript", ".j2": "templates", ".css": "CSS"}
LARGEST = 10


def tracked(*paths: str) -> list[Path]:
    """Files that git tracks, or would, below some paths."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z", "--", *paths]
    names = subprocess.run(command, cwd=ROOT, capture_output=True, check=True, text=True).stdout
    files = [ROOT / name for name in names.split("\0") if name]
    return sorted({file for file in files if file.is_file() and not file.is_symlink()})


def lines(file: Path) -> int:
    """Lines of a file."""
    return len(file.read_text(errors="replace").splitlines())


def python_lines(*paths: str) -> int:
    """Lines of Python below some paths."""
    return sum(lines(file) for file in tracked(*paths) if file.suffix == ".py")


def words(*paths: str) -> int:
    """Words that somebody wrote in the Markdown below some paths."""
    texts = (file.read_text() for file in tracked(*paths) if file.suffix == ".md")
    pages = (GENERATED_REST.sub("", text) for text in texts if not GENERATED_PAGE.match(text))
    return sum(len(GENERATED_TABLE.sub("", page).split()) for page in pages)


def packages(*roots: str) -> dict[str, int]:
    """Lines of Python by package: a folder directly below a root, or the root itself."""
    counts: Counter[str] = Counter()
    for file in tracked(*roots):
        if file.suffix == ".py":
            parts = file.relative_to(ROOT).parts
            counts["/".join(parts[: min(2, len(parts) - 1)])] += lines(file)
    return dict(counts)


def functions() -> Iterator[tuple[int, str]]:
    """The lines and place of every function and class method."""
    for file in tracked("scalesweep", "plugins", "workflow", "bench", "tools", "tests"):
        if file.suffix != ".py":
            continue
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                length = (node.end_lineno or node.lineno) - node.lineno + 1
                yield length, f"{file.relative_to(ROOT)}:{node.lineno} {node.name}"


def budgets() -> list[tuple[str, int, int]]:
    """What each budget is for, what there is, and what is allowed."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["size"]
    rows = [(name, python_lines(*name.split()), most) for name, most in settings["lines"].items()]
    return [*rows, ("words of documentation", words(*PROSE), settings["words"])]


def table() -> str:
    """Everything that is counted, as text."""
    text = ["budget                              now   allowed"]
    text += [f"{name:<30} {now:>8,} {most:>9,}" for name, now, most in budgets()]
    text.append("\nlines of Python by package")
    counts = packages("scalesweep", "plugins", "workflow", "bench", "tools", "tests")
    text += [f"{name:<30} {count:>8,}" for name, count in counts.items()]
    beside: Counter[str] = Counter()
    for file in tracked():
        if kind := BESIDE.get(file.suffix):
            beside[kind] += lines(file)
    text.append("\nlines beside Python")
    text += [f"{kind:<30} {count:>8,}" for kind, count in beside.most_common()]
    text.append("\nlargest files")
    files = [(lines(file), str(file.relative_to(ROOT))) for file in tracked("*.py")]
    text += [f"{count:>6,}  {name}" for count, name in sorted(files, reverse=True)[:LARGEST]]
    text.append("\nlargest functions")
    text += [f"{count:>6,}  {name}" for count, name in sorted(functions(), reverse=True)[:LARGEST]]
    return "\n".join(text)


def main() -> None:
    """Print the table, or fail with what exceeds its budget."""
    if "--check" not in sys.argv[1:]:
        print(table())
        return
    over = [
        f"error: {name}: {now:,} is more than the budget of {most:,} (pyproject.toml, [tool.size])"
        for name, now, most in budgets()
        if now > most
    ]
    if over:
        sys.exit("\n".join(over))


if __name__ == "__main__":
    main()
