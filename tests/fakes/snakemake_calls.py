"""Calls of Snakemake, each in a process forked from one server: see snakemake_server.py."""

import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from subprocess import CompletedProcess

SERVER = Path(__file__).with_name("snakemake_server.py")


@cache
def _server() -> "subprocess.Popen[str]":
    """The server of this process; it ends with it."""
    command = [sys.executable, "-P", str(SERVER)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def call_snakemake(
    words: Sequence[str], cwd: Path, env: Mapping[str, str], seconds: int
) -> "CompletedProcess[str]":
    """Do what `python -m snakemake WORDS` does: exit code and output; killed after so long."""
    server = _server()
    assert server.stdin is not None and server.stdout is not None
    with tempfile.TemporaryDirectory() as folder:
        out, err = Path(folder, "out"), Path(folder, "err")
        call = {"words": words, "cwd": str(cwd), "env": dict(env), "seconds": seconds}
        server.stdin.write(json.dumps({**call, "out": str(out), "err": str(err)}) + "\n")
        server.stdin.flush()
        code = int(server.stdout.readline())
        return CompletedProcess(["snakemake", *words], code, out.read_text(), err.read_text())
