"""A rank's program under a profiler that the site has (`profile: nsys`, `profile: tau`).

    profiled_rank.py KIND FOLDER PROGRAM [WORD]...

Started by the launcher of the ranks, once for each. The profile goes to FOLDER: of Nsight Systems
``rank<N>.nsys-rep`` and, exported, ``rank<N>.sqlite``; of TAU ``profile.<N>.0.0``. The exit code is
the program's; 127 where the profiler is not there, what the export has where it fails, and 1 where
two programs have the number of one rank, or Nsight Systems leaves no database.
Standard library only.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

# The file alone: importing the package would set variables that the program inherits.
sys.path.append(str(Path(__file__).resolve().parents[1] / "benchmarks" / "harness"))

from rank_variables import LAUNCHERS, rank_and_size

sys.path.pop()

NOT_THERE = 127


def commands(kind: str, folder: Path, rank: int, program: Sequence[str]) -> list[list[str]]:
    """What is started one after the other: the program under its profiler, and an export.

    Options as in the Nsight Systems user guide (no sampling of the CPU: it makes reports huge) and
    TAU's reference guide, tau_exec.
    """
    if kind == "tau":
        return [["tau_exec", *program]]
    report = folder / f"rank{rank}"
    trace = ["-t", "cuda,nvtx,mpi", "-s", "none", "--force-overwrite=true", "-o", str(report)]
    export = ["--type=sqlite", "--force-overwrite=true", f"--output={report}.sqlite"]
    return [
        ["nsys", "profile", *trace, *program],
        ["nsys", "export", *export, f"{report}.nsys-rep"],
    ]


def main(kind: str, folder: str, program: Sequence[str]) -> int:
    """Run the program under its profiler; the exit code of what failed first, else 0."""
    environ = {**os.environ, "PROFILEDIR": folder} if kind == "tau" else dict(os.environ)
    rank = rank_and_size(environ)[0] or 0
    try:  # every attempt of a run has a folder of its own
        Path(folder, f"rank{rank}.begun").touch(exist_ok=kind == "tau")
    except FileExistsError:
        names = ", ".join(launcher.rank for launcher in LAUNCHERS)
        said = f"two programs are rank {rank} by {names}: the launcher sets none of these, and"
        return failed(kind, f"{said} their reports would overwrite each other")
    for words in commands(kind, Path(folder), rank, program):
        if shutil.which(words[0]) is None:
            said = f"{words[0]} is not on the PATH of this node: load its module in the site's"
            return failed(kind, f"{said} prologue, or leave out the profile", NOT_THERE)
        code = subprocess.run(words, env=environ, check=False).returncode
        if code:
            # A rank that was ended by a signal says so as a shell does.
            return code if code > 0 else 128 - code
    database = Path(folder, f"rank{rank}.sqlite")
    if kind == "nsys" and not (database.is_file() and database.stat().st_size):
        return failed(kind, f"nsys left no database of rank {rank}")
    return 0


def failed(kind: str, line: str, code: int = 1) -> int:
    """Say why the profile cannot be, and return the exit code."""
    print(f"profile {kind}: {line}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], sys.argv[3:]))
