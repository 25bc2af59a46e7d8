"""No class of ours shadows an attribute of the library class that it extends.

``Progress`` was a thread and kept its ``stop`` as ``self._stop``, which ``Thread.join`` of CPython
calls: each SIGTERM cancelled the jobs that were to stay. A public method that replaces the base's
is what inheritance is for; anything else is a meeting of names.
"""

import ast
import importlib
import sys
import threading
from collections.abc import Iterator
from enum import Enum
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.fakes.inheritance import OURS, of_library, shadowed

# Replaced on purpose, each read in the source of the base.
MEANT = {
    # What it reports of a submission is judged before Snakemake hears of it; the name and logs of
    # all jobs.
    "Executor": {"_report_job_error_threadsafe", "run_uuid", "slurm_logdir"},
}


def modules() -> Iterator[str]:
    """The modules of ours with a class that has a base."""
    for folder in (ROOT / "scalesweep", ROOT / "plugins" / OURS[1]):
        for path in sorted(folder.rglob("*.py")):
            tree = ast.parse(path.read_bytes())
            if any(isinstance(node, ast.ClassDef) and node.bases for node in ast.walk(tree)):
                parts = path.relative_to(folder.parent).with_suffix("").parts
                yield ".".join(part for part in parts if part != "__init__")


@pytest.mark.slow
def test_no_class_shadows_an_attribute_of_its_library_class() -> None:
    # What an enumeration has of its own is made by its metaclass.
    classes = {
        f"{name}.{cls.__name__}": cls
        for name in modules()
        for cls in vars(importlib.import_module(name)).values()
        if isinstance(cls, type) and cls.__module__ == name and not issubclass(cls, Enum)
    }
    looked_at = {
        name: shadowed(cls) - MEANT.get(cls.__name__, set())
        for name, cls in classes.items()
        if any(of_library(base) for base in cls.__mro__[1:])
    }
    assert "snakemake_executor_plugin_scalesweep.Executor" in looked_at
    assert {name: names for name, names in looked_at.items() if names} == {}


def test_launchers_shadow_nothing_either(monkeypatch: pytest.MonkeyPatch) -> None:
    folder = ROOT / "workflow" / "launchers"
    monkeypatch.syspath_prepend(str(folder))
    for path in sorted(Path(folder).glob("*.py")):
        module = importlib.import_module(path.stem)
        monkeypatch.delitem(sys.modules, path.stem)
        for cls in vars(module).values():
            if isinstance(cls, type) and cls.__module__ == path.stem:
                assert shadowed(cls) == set(), f"{path.name}: {cls.__name__}"


def test_what_was_shadowed_is_seen() -> None:
    class Watcher(threading.Thread):
        def __init__(self) -> None:
            super().__init__()
            self._stop = print
            self.further = 1

        def run(self) -> None:
            """As the base wants it."""

        def _bootstrap(self) -> None:
            """Nobody meant this one."""

    assert shadowed(Watcher) == {"_stop", "_bootstrap"}
