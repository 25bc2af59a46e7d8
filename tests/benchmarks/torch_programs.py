"""What the tests of torch_training share: its program, made small."""

import subprocess

from tests.benchmarks.programs import BENCHMARKS, PYTORCH, Program, start_torch_ranks, warm
from tests.fakes.torch_python import TORCH

SMALL = {
    "model": "mlp", "layers": 2, "width": 32, "batch_size": 8, "warmup_batches": 1, "batches": 4,
    "intra_threads": 1, "inter_threads": 1,
}  # fmt: skip
PROGRAM = Program("torch_training", SMALL)
DEFAULTS = PROGRAM.defaults


def start(folder, data=None, env=(), **params):
    """Run the program; return a finished process, which failed if a rank did, and its output.

    With an `env`, which may matter before main is called, it takes seconds more.
    """
    path, out = PROGRAM.write_run(folder, data, **params)
    usual = [str(TORCH), str(BENCHMARKS), PROGRAM.name]
    words = [*(usual if env else warm(PROGRAM.name, PYTORCH)), "--run", str(path)]
    done = start_torch_ranks(words, params.get("ranks", 1), env=env)
    code = max(process.returncode for process in done)
    said = "".join(process.stderr for process in done)
    return subprocess.CompletedProcess(words, code, done[0].stdout, said), out


def stage(folder, files, **params):
    """Stage the data set of the small runs with other parameters; return the finished process."""
    return PROGRAM.stage(folder, {"train": files}, **params)
