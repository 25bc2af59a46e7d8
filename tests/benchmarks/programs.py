"""Benchmark programs as the tests start them: what they declare, a run file, ranks, the result."""

import atexit
import functools
import importlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import yaml

from scalesweep.compute.program_output import read_native
from tests.benchmarks import warm as warm_start
from tests.fakes.torch_python import TORCH

ROOT = Path(__file__).resolve().parents[2]
WORKFLOW = ROOT / "workflow"
BENCHMARKS = WORKFLOW / "benchmarks"
GLOO = {"HOROVOD_CONTROLLER": "gloo", "HOROVOD_CPU_OPERATIONS": "gloo"}
# Programs that `warm` starts, by the framework that they find imported, and what starts its ranks.
TENSORFLOW, PYTORCH = "programs", "torch programs"
LAUNCHERS = {TENSORFLOW: ("horovodrun.py", "--gloo", "-np"), PYTORCH: ("local_ranks.py",)}
# Of scripts in this folder, which import benchmarks without being started by them.
HELPER = {"PYTHONPATH": f"{BENCHMARKS}{os.pathsep}{ROOT}"}


class Later:
    """A module that is imported once something of it is asked for. TensorFlow would cost each
    worker of pytest seconds and half a GB to collect a file with it."""

    def __init__(self, name):
        self._name = name

    def __getattr__(self, attribute):
        if attribute.startswith("_"):  # as pytest asks while it collects
            raise AttributeError(attribute)
        return getattr(importlib.import_module(self._name), attribute)


def entry(program):
    """Words that start a program of the benchmarks, as benchmark.yaml has them."""
    return [sys.executable, str(BENCHMARKS), program]


def warm(program, kind=TENSORFLOW):
    """Words that start a program, or a script of this folder, with its framework at hand."""
    if program.endswith(".py"):
        program = str(Path(__file__).parent / program)
    # Isolated: with a site or PYTHONPATH it would take longer to start.
    return [sys.executable, "-IS", warm_start.__file__, warm_socket(kind), program]


@functools.cache
def warm_socket(kind=TENSORFLOW):
    """Path of the socket of a `warm_start.serve`, for scripts or for programs of the benchmarks. It
    ends with this process."""
    folder = tempfile.TemporaryDirectory(prefix="warm-")
    path = f"{folder.name}/socket"
    python = TORCH if kind == PYTORCH else sys.executable
    server = subprocess.Popen(
        [python, warm_start.__file__, "--serve", path, kind],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=rank_environment(HELPER),
        text=True,
    )

    def end():
        server.stdin.close()
        server.wait(60)
        folder.cleanup()

    atexit.register(end)
    assert server.stdout.readline() == "ready\n"
    return path


class Program:
    """A benchmark's folder and declaration, with parameters that make its runs small."""

    def __init__(self, name, small, kind=TENSORFLOW):
        self.name, self.small, self.kind = name, small, kind
        self.folder = BENCHMARKS / name
        self.declared = yaml.safe_load((self.folder / "benchmark.yaml").read_text())
        self.defaults = {key: spec["default"] for key, spec in self.declared["parameters"].items()}

    def write_run(self, folder, data=None, repeat=0, **params):
        """Write a run file to `folder`; return its path and where the program is to write."""
        out = folder / "out"
        content = {
            "run_id": f"{self.name}-test",
            "benchmark": self.name,
            "version": 1,
            "params": self.defaults | self.small | params,
            "repeat": repeat,
            "data": data and str(data),
            "out": str(out),
            "node_local": str(folder / "local"),
        }
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / "run.json"
        path.write_text(json.dumps(content))
        return path, out

    def start(self, folder, data=None, repeat=0, env=(), **params):
        """Run the program; return the finished process and its output folder."""
        path, out = self.write_run(folder, data, repeat, **params)
        words = [*warm(self.name, self.kind), "--run", str(path)]
        return start_ranks(words, params.get("ranks", 1), env, self.kind), out

    def stage_words(self, out, files, *more, how=entry, **changes):
        """Words that stage the data set of some parameters: numbers of files by split."""
        known = self.defaults | self.small | changes
        identity = {name: known[name] for name in self.declared["data"]["parameters"]}
        words = [*how(self.declared["data"]["program"]), "--out", out]
        for split, count in files.items():
            words += [f"--{split}", count]
        words += ["--params", json.dumps(identity), *more]
        return [str(word) for word in words]

    def stage(self, *args, **params):
        """Stage a data set (`stage_words`); return the finished process."""
        words = self.stage_words(*args, **params)
        return subprocess.run(words, capture_output=True, text=True, check=False, timeout=240)

    def staged(self, tmp_path_factory, files):
        """Stage the data set of the small runs in a folder of its own, and return that."""
        folder = tmp_path_factory.mktemp("data") / "set"
        done = self.stage(folder, files, how=warm)
        assert done.returncode == 0, done.stderr
        return folder


def start_ranks(words, ranks, env=(), kind=TENSORFLOW):
    """Start a program on some ranks; return the finished process."""
    if ranks > 1:
        launcher, *options = LAUNCHERS[kind]
        path = str(WORKFLOW / "launchers" / launcher)
        words = [sys.executable, path, *options, str(ranks), *words]
    return subprocess.run(
        words, capture_output=True, text=True, check=False, timeout=240, env=rank_environment(env)
    )


def rank_environment(more=()):
    """This process's environment, without Horovod's variables but with those of the tests."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("HOROVOD_")}
    return kept | GLOO | {"TF_CPP_MIN_LOG_LEVEL": "2"} | dict(more)


def start_helper(name, *arguments, ranks=1, env=(), kind=TENSORFLOW):
    """Run a script of this folder on some ranks; it must end well."""
    done = start_ranks([*warm(name, kind), *map(str, arguments)], ranks, env, kind)
    assert done.returncode == 0, done.stderr[-4000:]
    return done


def read(done, out):
    """Return native.json and the arrays of a run that must have ended well."""
    assert done.returncode == 0, done.stderr[-4000:]
    with np.load(out / "samples.npz") as arrays:
        samples = dict(arrays)
    assert all(np.isfinite(each).all() for each in samples.values())
    read_native(out)  # as the launcher checks it
    return json.loads((out / "native.json").read_text()), samples


def value(native, name):
    """Return the value of a metric."""
    return native["metrics"][name]["value"]


def check_failure(program, done, out, code, words, ranks=1):
    """Check that a run which failed has an exit code, one line and no result."""
    assert done.returncode == code or (ranks > 1 and done.returncode), done.stderr
    error = json.loads((out / "native_error.json").read_text())
    assert error["exit_code"] == code, error
    assert [word for word in words if word not in error["message"]] == [], error
    line = f"{program.name}: {error['message']}\n"
    assert done.stderr.count(line) == 1
    assert ranks > 1 or done.stderr.endswith(line)
    assert "Graph execution error" not in done.stderr
    assert not (out / "native.json").exists()
