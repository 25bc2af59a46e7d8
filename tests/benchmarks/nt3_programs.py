"""What the tests of nt3 share: its modules, its data sets, how the program is started."""

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import yaml

WORKFLOW = Path(__file__).resolve().parents[2] / "workflow"
FOLDER = WORKFLOW / "benchmarks" / "nt3"
DECLARED = yaml.safe_load((FOLDER / "benchmark.yaml").read_text())
DEFAULTS = {name: spec["default"] for name, spec in DECLARED["parameters"].items()}
SMALL = {
    "features": 400,
    "train_samples": 80,
    "test_samples": 30,
    "filters": [4, 4],
    "dense_units": [16, 8],
    "total_epochs": 2,
    "learning_rate": 0.01,
}
GLOO = {"HOROVOD_CONTROLLER": "gloo", "HOROVOD_CPU_OPERATIONS": "gloo"}


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


def write_run(folder, data, repeat=0, **params):
    """Write a run file to `folder`; return its path and where the program is to write."""
    out = folder / "out"
    content = {
        "run_id": "nt3-test",
        "benchmark": "nt3",
        "version": 1,
        "params": DEFAULTS | SMALL | params,
        "repeat": repeat,
        "data": data and str(data),
        "out": str(out),
        "node_local": str(folder / "local"),
    }
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "run.json"
    path.write_text(json.dumps(content))
    return path, out


def start_ranks(words, ranks, env=()):
    """Start a program on some ranks; return the finished process."""
    if ranks > 1:
        launcher = str(WORKFLOW / "launchers" / "horovodrun.py")
        words = [sys.executable, launcher, "--gloo", "-np", str(ranks), *words]
    kept = {name: value for name, value in os.environ.items() if not name.startswith("HOROVOD_")}
    return subprocess.run(
        words,
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
        env=kept | GLOO | {"TF_CPP_MIN_LOG_LEVEL": "2"} | dict(env),
    )


def start(folder, data, env=(), repeat=0, **params):
    """Run the program; return the finished process and its output folder."""
    path, out = write_run(folder, data, repeat, **params)
    words = [sys.executable, str(FOLDER / "main.py"), "--run", str(path)]
    return start_ranks(words, params.get("ranks", 1), env), out


def read(done, out):
    assert done.returncode == 0, done.stderr[-4000:]
    with np.load(out / "samples.npz") as arrays:
        samples = dict(arrays)
    assert all(np.isfinite(each).all() for each in samples.values())
    return json.loads((out / "native.json").read_text()), samples
