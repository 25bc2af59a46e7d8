"""Executables that behave as Nsight Systems' and TAU's do, for runs on machines without them.

Options as in the Nsight Systems user guide (``nsys profile``, ``nsys export``) and TAU's reference
guide (``tau_exec``, ``pprof``); what else is asked of them they refuse.
"""

import sys
from pathlib import Path

from tests.fakes import profiles

_NSYS = """\
import pathlib, re, subprocess, sys
words = sys.argv[1:]
if words[0] == "profile":
    options = words[1:8]
    if options[:6] != ["-t", "cuda,nvtx,mpi", "-s", "none", "--force-overwrite=true", "-o"]:
        sys.exit("nsys: unrecognised option " + " ".join(options))
    code = subprocess.run(words[8:]).returncode
    pathlib.Path(options[6] + ".nsys-rep").write_bytes(b"report")
    sys.exit(code)
if words[0] == "export":
    report, output = words[-1], re.fullmatch("--output=(.*)", words[3])[1]
    if words[1:3] != ["--type=sqlite", "--force-overwrite=true"] or not report.endswith("-rep"):
        sys.exit("nsys: unrecognised option " + " ".join(words))
    pathlib.Path(report).read_bytes()
    pathlib.Path(output).write_bytes(pathlib.Path({database!r}).read_bytes())
    sys.exit(0)
sys.exit("nsys: unknown command " + words[0])
"""
_TAU_EXEC = """\
import os, pathlib, subprocess, sys
code = subprocess.run(sys.argv[1:]).returncode
rank = os.environ.get("OMPI_COMM_WORLD_RANK", "0")
folder = pathlib.Path(os.environ.get("PROFILEDIR", "."))
(folder / f"profile.{rank}.0.0").write_text("templated_functions_MULTI_TIME\\n")
sys.exit(code)
"""
_PPROF = """\
import pathlib, sys
if not list(pathlib.Path(".").glob("profile.*.0.0")):
    sys.exit("Error: no profile files found")
print("pprof: a warning", file=sys.stderr)
print(pathlib.Path({table!r}).read_text(), end="")
"""


def install(folder: Path) -> Path:
    """Write the executables into a folder, which is to be the first of a PATH."""
    folder.mkdir()
    database = profiles.database(folder / "database", "nsys")
    table = folder / "table"
    table.write_text((profiles.FOLDER / "tau.txt").read_text().partition("NODE 2")[0])
    programs = {
        "nsys": _NSYS.format(database=str(database)),
        "tau_exec": _TAU_EXEC,
        "pprof": _PPROF.format(table=str(table)),
    }
    for name, text in programs.items():
        path = folder / name
        path.write_text(f"#!{sys.executable}\n{text}")
        path.chmod(0o755)
    return folder
