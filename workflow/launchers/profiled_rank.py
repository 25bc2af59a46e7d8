"""A rank's program under a profiler that the site has (`profile: nsys`, `profile: tau`).

    profiled_rank.py KIND FOLDER PROGRAM [WORD]...

Started by the launcher of the ranks, once for each. The profile goes to FOLDER: of Nsight Systems
``rank<N>.nsys-rep`` and, exported, ``rank<N>.sqlite``; of TAU ``profile.<N>.0.0``. The exit code is
the program's; 127 where the profiler is not there, what the export has where it fails, and 1 where
two programs have the number of one rank. Standard library only.
"""

import os
import subprocess
import sys
from pathlib import Path

# The file alone: importing the package would set variables that the program inherits.
sys.path.append(str(Path(__file__).resolve().parents[1] / "benchmarks" / "harness"))

from rank_variables import LAUNCHERS, rank_of

sys.path.pop()


def commands(kind: str, report: Path, program: list[str]) -> list[list[str]]:
    """What is started one after the other: the program under its profiler, and an export.

    Options as in the Nsight Systems user guide (no sampling of the CPU: it makes reports huge) and
    TAU's reference guide, tau_exec.
    """
    if kind == "tau":
        return [["tau_exec", *program]]
    trace = ["-t", "cuda,nvtx,mpi", "-s", "none", "--force-overwrite=true", "-o", str(report)]
    export = ["--type=sqlite", "--force-overwrite=true", f"--output={report}.sqlite"]
    return [
        ["nsys", "profile", *trace, *program],
        ["nsys", "export", *export, f"{report}.nsys-rep"],
    ]


def main(kind: str, folder: str, program: list[str]) -> int | str:
    """Run the program under its profiler; the exit code of what failed first, else 0, or why."""
    environ = {**os.environ, "PROFILEDIR": folder} if kind == "tau" else dict(os.environ)
    report = Path(folder, f"rank{rank_of(environ) or 0}")
    try:  # every attempt of a run has a folder of its own
        report.with_suffix(".begun").touch(exist_ok=kind == "tau")
    except FileExistsError:
        names = ", ".join(launcher.rank for launcher in LAUNCHERS)
        said = f"two programs are {report.name} by {names}: the launcher sets none of these, and"
        return f"profile {kind}: {said} their reports would overwrite each other"
    for words in commands(kind, report, program):
        try:
            code = subprocess.run(words, env=environ, check=False).returncode
        except FileNotFoundError:
            said = f"{words[0]} is not on the PATH of this node: load its module in the site's"
            print(f"profile {kind}: {said} prologue, or leave out the profile", file=sys.stderr)
            return 127
        if code:
            # A rank that was ended by a signal says so as a shell does.
            return code if code > 0 else 128 - code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], sys.argv[3:]))
