"""What the tests of nt3 share: its modules and its data sets."""

import importlib
import json
import os
import subprocess
import sys
from types import ModuleType

from tests.benchmarks.programs import Program

SMALL = {
    "features": 400,
    "train_samples": 80,
    "test_samples": 30,
    "filters": [4, 4],
    "dense_units": [16, 8],
    "total_epochs": 2,
    "learning_rate": 0.01,
}
PROGRAM = Program("nt3", SMALL)
FOLDER, DECLARED, DEFAULTS = PROGRAM.folder, PROGRAM.declared, PROGRAM.defaults
start, write_run = PROGRAM.start, PROGRAM.write_run


def modules(*names: str) -> list[ModuleType]:
    """Modules of the benchmark, whose names other benchmarks have too: not left in sys.modules."""
    own = {path.stem for path in FOLDER.glob("*.py")}
    others = {name: sys.modules.pop(name) for name in own if name in sys.modules}
    paths = [str(FOLDER), str(FOLDER.parent)]
    sys.path[:0] = paths
    try:
        return [importlib.import_module(name) for name in names]
    finally:
        for name in own:
            sys.modules.pop(name, None)
        sys.modules.update(others)
        sys.path.remove(paths[0])


def stage(out, *more, env=(), **params):
    """Run stage.py for the data set of these parameters; return the finished process."""
    identity = {name: (SMALL | params).get(name, DEFAULTS[name]) for name in identity_names()}
    words = [sys.executable, FOLDER / "stage.py", "--out", out, "--train", 1, "--test", 1]
    return subprocess.run(
        [str(word) for word in (*words, "--params", json.dumps(identity), *more)],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | dict(env),
    )


def identity_names():
    return DECLARED["data"]["parameters"]
