"""Starts programs and scripts in a fraction of a second, each in a process of its own.

Importing TensorFlow or PyTorch takes most of the seconds of a small run, and importing Snakemake,
pandas, SciPy and Matplotlib most of those of a small campaign. So one process (`serve`) imports
them once and forks itself for each program, before any operation of the framework has run;
`harness.staging` does the same for its workers. ``python warm.py SOCKET PROGRAM [ARGUMENT ...]``
then replaces the usual command, also in a launcher of ranks: the program gets the environment,
working directory and streams of that process, which exits as the program does, and the program is
killed with it. PROGRAM is one of ``python workflow/benchmarks``, the path of a script, or ``-m
MODULE``.

Not for programs whose environment matters to Python or its libraries before main is called.
"""

import array
import atexit
import contextlib
import ctypes
import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import sys
import traceback
from pathlib import Path

# What a script of a rule knows of its Snakemake: its process, and descriptor 3 for its messages.
SNAKEMAKE = "SCALESWEEP_SNAKEMAKE"
STREAMS = (0, 1, 2, 3)
# What `sys.executable` is to be, if it is not the interpreter of this process.
EXECUTABLE = "WARM_EXECUTABLE"
# What is imported before programs start. Of scripts of the workflow nothing that is scalesweep's: a
# test has its own copy of that.
MODULES = {
    "programs": [
        "tensorflow", "cnn_training.benchmark", "cosmoflow_training.benchmark",
        "data_loading.benchmark", "input_pipeline.benchmark", "nt3.benchmark",
    ],
    "torch programs": ["torch_training.benchmark", "harness.torch_ranks"],
    "scripts": [
        "jinja2", "matplotlib.backends.backend_agg", "matplotlib.backends.backend_svg",
        "matplotlib.pyplot", "pandas", "pyarrow.parquet", "scipy.optimize", "scipy.special",
        "snakemake.cli", "yaml",
    ],
}  # fmt: skip
REQUEST_BYTES = 1 << 20
EXIT_NO_ANSWER = 70
PR_SET_PDEATHSIG = 1


def import_modules(kind):
    """Import what programs of a kind need; return what finds one of the benchmarks by its name."""
    find = None
    if kind != "scripts":
        import harness

        find = runpy.run_path(str(Path(harness.__file__).parents[1] / "__main__.py"))["find"]
    if kind == "programs":
        harness.import_without("pandas", "scipy", "PIL")
    for name in MODULES[kind]:
        importlib.import_module(name)
    if kind == "programs":
        _ = sys.modules["tensorflow"].keras.Model  # loaded when it is first looked at
    return find


def serve(path, kind):
    """Import, then start programs until standard input ends."""
    find = import_modules(kind)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listener.bind(path)
    listener.listen(64)
    gc.freeze()  # else collecting garbage would copy all pages of every child
    print("ready", flush=True)
    while True:
        ready, _, _ = select.select([listener, sys.stdin], [], [])
        if sys.stdin in ready:
            return 0
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG) != (0, 0):
                pass  # one more that has answered
        connection, _ = listener.accept()
        if os.fork() == 0:
            listener.close()
            return answer(connection, find)
        connection.close()


def answer(connection, find):
    """Start the program that is asked for: run it in a child, say how it ended from here."""
    size = socket.CMSG_SPACE(4 * len(STREAMS))
    text, ancillary, _, _ = connection.recvmsg(REQUEST_BYTES, size)
    streams = array.array("i", ancillary[0][2])
    request = json.loads(text)
    child = os.fork()
    if child == 0:
        connection.close()
        for stream, given in zip(STREAMS, streams, strict=False):  # those that whoever asked has
            if given != stream:
                os.dup2(given, stream)
                os.close(given)
        run(find, **request)
    ended = os.pidfd_open(child)
    if ended not in select.select([ended, connection], [], [])[0]:  # whoever asked has gone
        os.kill(child, signal.SIGKILL)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    with contextlib.suppress(OSError):
        connection.send(str(status).encode())
    os._exit(0)


def run(find, words, folder, environment):
    """Be the program, to its end; taking TensorFlow down in order would cost a second more."""
    try:
        code = main_of(find, words, folder, environment)
    except SystemExit as ended:
        code = ended.code or 0
        if isinstance(code, str):
            print(code, file=sys.stderr)
            code = 1
    except BaseException:
        traceback.print_exc()
        code = 1
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def main_of(find, words, folder, environment):
    """Do what the program does; return its exit code."""
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    if EXECUTABLE in environment:
        sys.executable = os.environ.pop(EXECUTABLE)
    if SNAKEMAKE in environment:  # ends with whoever asked, who ends with Snakemake
        os.environ[SNAKEMAKE] = str(os.getppid())
    program, *arguments = words
    if program == "-m":
        sys.argv = arguments
        sys.path.insert(0, folder)
        runpy.run_module(arguments[0], run_name="__main__", alter_sys=True)
        return 0
    if program.endswith(".py"):
        sys.argv = words
        runpy.run_path(program, run_name="__main__")
        return 0
    return find(program)(arguments)


def ask(path, words):
    """Have a program started; return its exit code when it has ended."""
    streams = array.array("i", STREAMS)
    try:
        os.fstat(streams[-1])
    except OSError:
        streams.pop()
    if SNAKEMAKE in os.environ:
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
        os.kill(int(os.environ[SNAKEMAKE]), 0)  # as scalesweep.core.orphans.end_with_snakemake
    request = {"words": words, "folder": str(Path.cwd()), "environment": dict(os.environ)}
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
        connection.connect(path)
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, streams)]
        connection.sendmsg([json.dumps(request).encode()], rights)
        status = connection.recv(64)
    if not status:
        return EXIT_NO_ANSWER
    code = int(status)
    if code < 0:
        signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    return code


if __name__ == "__main__":
    sys.exit(serve(*sys.argv[2:]) if sys.argv[1] == "--serve" else ask(sys.argv[1], sys.argv[2:]))
