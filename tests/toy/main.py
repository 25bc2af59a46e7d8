"""The toy benchmark's program."""

import cProfile
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

if os.environ.get("SLURM_PROCID", "0") != "0":
    sys.exit()
run = json.loads(Path(sys.argv[2]).read_text())
out, params = Path(run["out"]), run["params"]
ranks, behaviour = params["ranks"], params["behaviour"]
print("toy says hello")
if behaviour == "exit3":
    print("error: the toy is broken", file=sys.stderr)
    sys.exit(3)
if behaviour == "missing_data":
    print("error: no such data", file=sys.stderr)
    sys.exit(66)
if behaviour == "unsupported":
    print("toy: behaviour unsupported: this machine has no such thing", file=sys.stderr)
    sys.exit(69)
if behaviour == "hang_once" and out.name == "attempt-1":
    time.sleep(600)
if behaviour == "slow":
    time.sleep(9)
if behaviour == "hungry":
    held = bytearray(300 << 20)
    time.sleep(4)  # Slurm looks at memory every second
if behaviour == "stuck":  # with its launcher, so that only Slurm can end it
    found = subprocess.run(
        ["pgrep", "-f", f"step.py launch .*{run['run_id']}"], capture_output=True, check=True
    )
    for pid in found.stdout.split():
        os.kill(int(pid), signal.SIGSTOP)
    (out / "stopped").touch()
    time.sleep(600)
if behaviour == "killed":
    os.kill(os.getpid(), signal.SIGSEGV)
if behaviour == "silent":
    sys.exit(0)
if os.environ.get("SCALESWEEP_PROFILE") == "cprofile" and behaviour != "unprofiled":
    with cProfile.Profile() as profile:
        json.dumps(params)
    profile.dump_stats(Path(os.environ["SCALESWEEP_PROFILE_FOLDER"]) / "rank0.prof")


def held():
    """Whether the test wants no more records than it has written into the file `hold`."""
    try:
        most = int(Path("hold").read_text())  # in the folder of Snakemake
    except (OSError, ValueError):  # none, or being written
        return False
    return len(list(out.parent.parent.glob("*/record.json"))) >= most


while held():
    time.sleep(0.01)
value = float("nan") if behaviour == "nan" else 1.0 + 0.01 * run["repeat"]
if behaviour == "noisy":
    value = 1.0 + 0.2 * (-1) ** run["repeat"]
times = np.full((3, ranks), value)
alone = os.environ.get("SCALESWEEP_PROFILE") == "noexchange"
if alone:
    times *= 0.8
np.savez(out / "samples.npz", local_times=times, global_times=times * 1.01)
native = {
    "phases": {"timed": 3.0},
    "metrics": {},
    "work": {"samples_per_epoch": params["size"] * ranks, "bytes_per_epoch": 1000 * ranks},
    "resources": {
        "hosts": ["here"] * ranks,
        "slurm_nodes": [os.environ.get("SLURMD_NODENAME")] * ranks,
    },
    "environment": {
        "ranks": [{"host": "here", "affinity": "0", "pid": os.getpid()}] * ranks,
        "versions": {"python": sys.version.split()[0]},
        "variables": {k: v for k, v in os.environ.items() if k.startswith(("TOY_", "OMP_"))},
    },
    "notes": {"spans": {"method": "none", "steps_per_epoch": 10, "exchange": "left out"}}
    if alone and behaviour != "unprofiled"
    else {"spans": {"method": "none", "steps_per_epoch": 10}}
    if behaviour == "trains"
    else {},
}
(out / "native.json").write_text(json.dumps(native))
