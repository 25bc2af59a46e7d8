"""A limit of memory that the site sets: the run that reaches it is OUT_OF_MEMORY, by its words."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from scalesweep.compute.launcher import launch
from scalesweep.compute.memory_limit import (
    gpu_memory_facts,
    judged,
    memory_facts,
    size_text,
)
from scalesweep.core.paths import LAUNCHERS
from tests.conftest import ROOT
from tests.fakes.toy_run import spec

MIB = 2**20


@pytest.mark.parametrize(
    "line",
    [
        "MemoryError",
        "numpy._core._exceptions._ArrayMemoryError: Unable to allocate 3.73 GiB for an array",
        "  what():  std::bad_alloc",
        "OpenBLAS error: Memory allocation still failed after 10 retries, giving up.",
        "python: error while loading shared libraries: libm.so.6: cannot map zero-fill pages",
        "ImportError: libc10.so: failed to map segment from shared object",
        "cut: memory exhausted",
    ],
)
def test_words_of_memory_under_a_limit_are_the_cause(line: str) -> None:
    cause, detail = judged("NON_ZERO_EXIT", "exit code 1", ["begin", line, "Aborted"], 400 * MIB)
    assert cause == "OUT_OF_MEMORY"
    end = line.strip().replace("():  ", "(): ")
    assert detail == f"no memory for the program, under the site's limit of 400 MiB a rank: {end}"


@pytest.mark.parametrize(
    "line",
    [
        # Of /tmp that is mounted noexec, of too many processes, and of nothing in particular.
        "ImportError: libc10.so: failed to map segment from shared object: Operation not permitted",
        "RuntimeError: can't start new thread",
        "SystemError: error return without exception set",
        "the memory of a step is good",
    ],
)
def test_other_words_say_only_that_there_was_a_limit(line: str) -> None:
    assert judged("KILLED", "signal SIGSEGV", [line], 3 * 2**30 // 2) == (
        "KILLED", "signal SIGSEGV (under the site's limit of 1.5 GiB a rank)"
    )  # fmt: skip


def test_a_cause_that_the_program_names_stays() -> None:
    assert judged("MISSING_DATA", "no such data", ["MemoryError"], MIB) == (
        "MISSING_DATA", "no such data"
    )  # fmt: skip


def test_bytes_come_from_the_program_or_from_pytorchs_words() -> None:
    said = "DefaultCPUAllocator: can't allocate memory: you tried to allocate 4194304 bytes."
    assert memory_facts(said, {}, None) == {"asked_bytes": 4194304}
    left = {"asked_bytes": 5, "held_bytes": 7, "other": 1}
    assert memory_facts("", left, 9) == {"limit_bytes": 9, "asked_bytes": 5, "held_bytes": 7}
    assert memory_facts("", {"asked_bytes": "5", "held_bytes": True}, None) == {}
    assert [size_text(400 * MIB), size_text(3 * 2**30)] == ["400 MiB", "3 GiB"]


def test_bytes_of_a_gpu_come_from_pytorchs_words() -> None:
    """Of version 2.11 on an H200, with 1.50 GiB too much; of 1.13; and of NCCL."""
    new = (
        "CUDA out of memory. Tried to allocate 1.50 GiB. GPU 0 has a total capacity of 139.80 GiB "
        "of which 1.13 GiB is free. Including non-PyTorch memory, this process has 138.66 GiB "
        "memory in use. Of the allocated memory 136.81 GiB is allocated by PyTorch, and 1.18 GiB "
        "is reserved by PyTorch but unallocated."
    )
    assert gpu_memory_facts(new) == {
        "asked_bytes": 3 * 2**29,
        "held_bytes": round(136.81 * 2**30),
        "device_bytes": round(139.80 * 2**30),
    }
    old = (
        "Tried to allocate 20.00 MiB (GPU 0; 15.78 GiB total capacity; 512 bytes already allocated;"
    )
    assert gpu_memory_facts(f"CUDA out of memory. {old}") == {
        "asked_bytes": 20 * 2**20, "held_bytes": 512, "device_bytes": round(15.78 * 2**30),
    }  # fmt: skip
    assert gpu_memory_facts("CUDA error: out of memory") == {}


def test_a_run_out_of_a_gpus_memory_leaves_its_bytes(tmp_path: Path) -> None:
    said = "CUDA out of memory. Tried to allocate 2.00 GiB."
    program = (
        "import json, os, sys; out = os.path.dirname(sys.argv[1]);"
        f"json.dump({{'exit_code': 79, 'message': {said!r}}},"
        " open(f'{out}/native_error.json', 'w')); sys.exit(79)"
    )
    order = spec(tmp_path, argv=[sys.executable, "-c", program, "{run_file}"])
    assert launch(order, ROOT) == 1
    left = json.loads((tmp_path / order["run_id"] / "failure.json").read_text())
    assert left["cause"] == "GPU_OUT_OF_MEMORY"
    assert left["memory"] == {"asked_bytes": 2 * 2**30}


def limited(
    folder: Path, mib: int, program: str, limit_s: float = 60.0
) -> tuple[int, dict[str, Any]]:
    """A run of one rank with a limit; its exit code and failure.json."""
    words = ["sh", str(LAUNCHERS / "limited_rank.sh"), str(mib * 1024)]
    argv = [*words, sys.executable, "-c", program]
    order = spec(folder, argv=argv, memory_limit_bytes=mib * MIB, time_limit_s=limit_s)
    code = launch(order, ROOT)
    left = folder / order["run_id"] / "failure.json"
    return code, json.loads(left.read_text()) if left.is_file() else {}


def test_a_program_reaches_the_limit_and_says_so(tmp_path: Path) -> None:
    code, left = limited(tmp_path, 100, f"x = bytearray({200 * MIB})")
    assert (code, left["cause"]) == (1, "OUT_OF_MEMORY")
    assert "under the site's limit of 100 MiB a rank" in left["detail"]
    assert left["memory"] == {"limit_bytes": 100 * MIB}


def test_what_stays_below_the_limit_is_not_blamed_on_it(tmp_path: Path) -> None:
    _, left = limited(tmp_path, 100, f"x = bytearray({20 * MIB}); raise SystemExit(3)")
    assert left["cause"] == "NON_ZERO_EXIT" and "memory" not in left
    assert left["detail"].startswith("exit code 3 (under the site's limit of 100 MiB")


def test_a_limit_in_which_python_cannot_start_is_one_line(tmp_path: Path) -> None:
    _, left = limited(tmp_path, 1, "print('never')")
    assert left["cause"] == "OUT_OF_MEMORY" and "\n" not in left["detail"]
    assert "under the site's limit of 1 MiB a rank: " in left["detail"]


@pytest.mark.slow
def test_a_program_that_asks_again_and_again_ends_at_its_time_limit(tmp_path: Path) -> None:
    again = "import time\nwhile True:\n try: bytearray(2**30)\n except MemoryError: time.sleep(.01)"
    _, left = limited(tmp_path, 100, again, limit_s=1.0)
    assert left["cause"] == "TIMEOUT"
    assert left["detail"].endswith("(under the site's limit of 100 MiB a rank)")
