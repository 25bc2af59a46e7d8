"""One line for a faulty ``--configfile``, which Snakemake answers with a traceback.

Snakemake reads the files before it looks at any Snakefile, so nothing there can say it better.
"""

import sys
from pathlib import Path
from typing import Any


def explain_config_files() -> None:
    """Wrap Snakemake's reader of these files: one that it cannot read ends it with a line."""
    from snakemake.settings import types

    read = types.load_configfile

    def load(path: Any) -> Any:
        try:
            return read(path)
        except Exception as error:
            sys.exit(f"error: {_explain(Path(path), error)}")

    types.load_configfile = load


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
        return f"{path}: the file holds no mapping (key: value)"
    return f"{path}: Snakemake cannot read it: {error}"
