"""Refuse names that name no thing in product code: CONTRIBUTING.md, Style."""

import ast
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RESULTS = "ExperimentResults"  # a study is the user's repository (docs/reference/glossary.md)
VAGUE = {"one", "found", "some", "told", "those", f"study of {RESULTS}"}


def bound_names(node: ast.AST) -> list[str]:
    """The names that a node binds: of a variable, parameter, attribute, function, class."""
    if isinstance(node, ast.Name | ast.Attribute):
        name = node.id if isinstance(node, ast.Name) else node.attr
        return [name] if isinstance(node.ctx, ast.Store) else []
    if isinstance(node, ast.arg):
        results = node.annotation is not None and ast.unparse(node.annotation) == RESULTS
        return ["study of " + RESULTS if results and node.arg == "study" else node.arg]
    if isinstance(node, ast.alias):
        return [node.asname or node.name]
    if isinstance(node, ast.MatchMapping):
        return [node.rest or ""]
    return [getattr(node, "name", None) or ""]


vague = [
    f"{path.relative_to(ROOT)}:{node.lineno}: {name}: name the thing"
    for folder in ("scalesweep", "workflow", "plugins", "bench", "tools")
    for path in sorted((ROOT / folder).rglob("*.py"))
    for node in ast.walk(ast.parse(path.read_text()))
    for name in bound_names(node)
    if name.strip("_") in VAGUE
]
sys.exit("\n".join(vague) or None)
