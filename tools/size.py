"""How heavy the house is: lines of Python, words of documentation, and their budgets.

Pages and tables that a tool writes do not count. Budgets are in ``[tool.size]`` of pyproject.toml
and are only ever lowered; ``--check`` fails if one is exceeded.

    python tools/size.py [--check]
"""

import re
import subprocess
import sys
import tomllib
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# A page, the rest of a page, or a table that a tool writes.
GENERATED = re.compile(
    r"\A<!-- (?:tools|bench)/\S+ writes this page.*|<!-- [^>]*tools/\S+ writes what follows.*"
    r"|<!-- [^>]*tools/\S+ writes[^>]*-->\s*(?:^\|[^\n]*\n?)+",
    re.DOTALL | re.MULTILINE,
)


def lines(*paths: str, suffix: str = ".py") -> dict[Path, int]:
    """Lines of the files below some paths that git tracks, or would."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z", "--", *paths]
    names = subprocess.run(command, cwd=ROOT, capture_output=True, check=True, text=True).stdout
    files = {Path(name) for name in names.split("\0") if name.endswith(suffix)}
    there = sorted(it for it in files if (ROOT / it).is_file() and not (ROOT / it).is_symlink())
    return {it: len((ROOT / it).read_text(errors="replace").splitlines()) for it in there}


def words(*paths: str) -> int:
    """Words that somebody wrote in the Markdown below some paths."""
    texts = ((ROOT / file).read_text() for file in lines(*paths, suffix=".md"))
    return sum(len(GENERATED.sub("", text).split()) for text in texts)


def budgets() -> list[tuple[str, int, int]]:
    """What each budget is for, what there is, and what is allowed."""
    said = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["size"]
    rows = [(n, sum(lines(*n.split()).values()), most) for n, most in said["lines"].items()]
    prose = words("docs", "README.md", "CONTRIBUTING.md")
    return [*rows, ("words of documentation", prose, said["words"])]


def table() -> str:
    """Everything that is counted, as text."""
    text = ["budget                              now   allowed"]
    text += [f"{name:<30} {now:>8,} {most:>9,}" for name, now, most in budgets()]
    packages: Counter[str] = Counter()
    every = lines("scalesweep", "plugins", "workflow", "bench", "tools", "tests")
    for file, count in every.items():
        packages["/".join(file.parts[: min(2, len(file.parts) - 1)])] += count
    for suffix in (".yaml", ".js", ".j2", ".css"):
        packages[f"*{suffix}"] = sum(lines(suffix=suffix).values())
    return "\n".join([*text, "", *(f"{name:<30} {n:>8,}" for name, n in packages.items())])


if __name__ == "__main__":
    if "--check" not in sys.argv:
        print(table())
        sys.exit()
    for name, now, most in budgets():
        if now > most:
            sys.exit(f"error: {name}: {now:,}, more than {most:,} (pyproject.toml, [tool.size])")
