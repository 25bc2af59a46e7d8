"""`python -m snakemake`, forked from a process that has imported Snakemake: that takes a second.

    python -P tests/fakes/snakemake_server.py

A line of its input is a call, ``{"words": [...], "cwd": ..., "env": {...}, "seconds": N,
"out": FILE, "err": FILE}``; it is answered by its exit code. A call is killed after N seconds.
"""

import json
import os
import runpy
import signal
import sys
from typing import Any

import snakemake.cli  # noqa: F401


def calls() -> dict[str, Any]:
    """Serve calls until the input ends; returns in the process of each, with the call."""
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            call: dict[str, Any] = json.loads(line)
            return call
        _, status = os.waitpid(pid, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)
    sys.exit()


def become(call: dict[str, Any]) -> None:
    """Make this process what the interpreter would have started: files, folder, environment."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    files = [(os.devnull, os.O_RDONLY), (call["out"], flags), (call["err"], flags)]
    for number, (path, mode) in enumerate(files):
        file = os.open(path, mode, 0o644)
        os.dup2(file, number)
        os.close(file)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.alarm(call["seconds"])
    os.chdir(call["cwd"])
    os.environ.clear()
    os.environ.update(call["env"])
    sys.argv = ["snakemake", *call["words"]]
    sys.path.insert(0, call["cwd"])


if __name__ == "__main__":
    become(calls())
    runpy.run_module("snakemake", run_name="__main__", alter_sys=True)
