"""One line where Snakemake answers a faulty ``--configfile`` with a traceback.

Snakemake reads the files before it looks at any Snakefile, so nothing there can say it better. Its
reader is wrapped, where it is as known: what it can read is left to it.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any


def explain_config_files() -> None:
    """Wrap the reader of Snakemake's settings; leave a Snakemake without it as it is."""
    from snakemake.settings import types

    read = getattr(types, "load_configfile", None)
    if read is not None:
        types.load_configfile = explained(read)


def explained(read: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """``read``, which ends Snakemake with one line for a file that it cannot read."""

    def load(path: Any) -> Any:
        try:
            content = read(path)
        except Exception as error:
            sys.exit(f"error: {_explain(Path(path), error)}")
        if _contains_itself(content):  # which breaks what Snakemake does with it
            sys.exit(f"error: {_explain(Path(path), RecursionError('it contains itself'))}")
        return content

    return load


def _contains_itself(content: Any) -> bool:
    """Whether a value is part of itself, by an anchor; each part is looked at once."""
    known: set[int] = set()

    def inside(value: Any, around: frozenset[int]) -> bool:
        if not isinstance(value, dict | list) or id(value) in known:
            return False
        if id(value) in around:
            return True
        parts = value.values() if isinstance(value, dict) else value
        within = around | {id(value)}
        within_itself = any(inside(part, within) for part in parts)
        known.add(id(value))
        return within_itself

    return inside(content, frozenset())


def _explain(path: Path, error: Exception) -> str:
    """What is wrong with a file: as for every YAML file of the workflow."""
    from scalesweep.config.yaml_loader import load_yaml
    from scalesweep.core.errors import UserError

    if not path.exists() and not path.suffix:
        return (
            f"--configfile {path}: no such file; --configfile takes all words that follow: name "
            f"what to make before it (snakemake {path} --configfile FILE)"
        )
    try:
        content = load_yaml(path)
    except UserError as mistake:
        return str(mistake)
    if not isinstance(content, dict):
        what = "is empty" if content is None else "holds no mapping (key: value)"
        return f"{path}: the file {what}"
    return f"{path}: Snakemake cannot read it: {error}"
