"""Which parts of the library know a framework by its name: readers of tools' formats, no others.

What ran is data in the record: versions by name, and ``notes.exchange``. A part that asks for a
framework's name would be wrong for the next one.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import scalesweep

PACKAGE = Path(scalesweep.__file__).parent
NAMES = re.compile(r"horovod|tensorflow|torch|\bddp\b|\bfsdp2?\b", re.IGNORECASE)
# Readers of what a tool writes or of how it is started, and what looks after its installation.
READERS = (
    "importers/*", "importers/profiles/*", "aspects/profiles/*",
    "aspects/registry.py", "analysis/trace_account.py", "analysis/kineto_*.py",
    "analysis/xplane.py",
    "compute/external_program.py",
    "compute/log_lines.py", "compute/log_metrics.py", "compute/log_reader.py", "compute/stamps.py",
    "compute/failure_cause.py", "compute/hangs.py",
    "doctor/*",
    # Names of variables that launchers set.
    "compute/program.py", "tables/provenance.py",
    # A site's file, whose single Python is that of the framework of before.
    "config/site.py", "config/site_keys.py",
    # What keys of benchmark.yaml are for, with examples.
    "config/benchmark_keys.py", "config/experiment_keys.py", "config/log_patterns.py",
    "config/shapes.py",
    # Conventions of FLOP have the names of those who publish by them.
    "analysis/flop_conventions.py",
    # The one list of kinds of profiles, by the names that users give.
    "core/profilers.py",
)  # fmt: skip


def words(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Names and texts of a module with their lines, without docstrings."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, documented) and node.body and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            if id(node) not in docstrings:
                yield node.lineno, node.value
        elif isinstance(node, ast.Name):
            yield node.lineno, node.id
        elif isinstance(node, ast.Attribute):
            yield node.lineno, node.attr
        elif isinstance(node, ast.ImportFrom):
            yield node.lineno, node.module or ""


def named(folder: Path) -> list[str]:
    """Places outside the readers that have a framework's name."""
    places = []
    for file in sorted(folder.rglob("*.py")):
        path = file.relative_to(folder)
        if not any(path.match(pattern) for pattern in READERS):
            tree = ast.parse(file.read_text())
            places += [f"{path}:{at}: {text}" for at, text in words(tree) if NAMES.search(text)]
    return places


def test_only_readers_of_tools_know_frameworks() -> None:
    assert named(PACKAGE) == []


def test_a_name_is_seen_and_a_docstring_is_not(tmp_path: Path) -> None:
    text = '"""Of Horovod."""\n\nif by == "horovod":\n    torch_only()\n'
    (tmp_path / "part.py").write_text(text)
    assert named(tmp_path) == ["part.py:3: horovod", "part.py:4: torch_only"]
