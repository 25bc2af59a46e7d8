"""The ranks of a run: start, barrier, and gathering from all ranks on rank 0.

Whichever framework a benchmark runs on: `use` chooses the module that does it, `horovod_ranks` or
`torch_ranks`, and imports the framework with it. Such modules have functions of the same names;
all ranks call those that exchange at the same place.
"""

import json
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from harness import profiling, watch
from harness.program import EXIT_PARAMETERS, ProgramError
from harness.rendezvous import Place

# The module of a framework's ranks, and a pattern of the environment variables that only it reads.
# A further framework is a line here, and a module of that kind.
FRAMEWORKS = {
    "tensorflow": ("harness.horovod_ranks", r"(HOROVOD|TF)_|XLA_FLAGS$"),
    "torch": (
        "harness.torch_ranks",
        # TORCH_NCCL_*, TORCHINDUCTOR_*, TORCHELASTIC_*...
        r"(TORCH[A-Z]*|PYTORCH|GLOO)_|(MASTER_ADDR|MASTER_PORT|WORLD_SIZE|LOCAL_WORLD_SIZE)$",
    ),
}
GATHER_BYTES = 8 << 20


class _Now:
    """Of this process: the framework and its module, the run's folder, and its place."""

    framework = ""
    module: Any = None
    folder: Path | None = None
    place = Place(0, 1, 0)


def use(framework: str, folder: Path | None = None) -> None:
    """Choose the framework and import it; in `folder`, the run's, ranks may leave each other
    where they meet."""
    _Now.module = import_module(FRAMEWORKS[framework][0])
    _Now.framework, _Now.folder = framework, folder


def implementation() -> Any:
    """Return the module of the framework in use; RuntimeError before `use`."""
    if _Now.module is None:
        raise RuntimeError("harness.ranks: no framework is chosen: call use first")
    return _Now.module


def start(ranks: int, inter_threads: int = 0, intra_threads: int = 0) -> None:
    """Start the framework and its thread pools, and wait until every rank has done so.

    Threads between and within operations are 0 for the framework's choice. Raises ProgramError
    (code 2) on every rank when the program was not started with `ranks` ranks.
    """
    join(ranks, inter_threads, intra_threads)
    barrier()


def join(ranks: int, inter_threads: int = 0, intra_threads: int = 0) -> None:
    """Do as `start` does, but run no operation yet: devices can still be configured."""
    module = implementation()
    _Now.place = place = module.connect(ranks, inter_threads, intra_threads, _Now.folder)
    watch.know_rank(place.rank)
    if place.size != ranks:
        message = f"started with {place.size} ranks, the run file says {ranks}"
        raise ProgramError(EXIT_PARAMETERS, message if place.rank == 0 else "")
    if folder := profiling.folder_of(_Now.framework):
        module.start_profiler(folder, place.rank)


def rank() -> int:
    """Return the number of this rank, 0 up to the number of ranks."""
    return _Now.place.rank


def size() -> int:
    """Return the number of ranks."""
    return _Now.place.size


def first_on_host() -> bool:
    """Return whether this is the first rank of its host."""
    return _Now.place.local_rank == 0


def barrier(ok: bool = True) -> bool:
    """Wait for every rank; return whether every rank said `ok`."""
    passed = bool(implementation().all_true(ok))
    watch.advance()
    return passed


def gather(values: np.ndarray) -> np.ndarray | None:
    """Collect a float array of one shape from every rank: ``[..., rank]`` on rank 0, else None.

    Goes in pieces of at most GATHER_BYTES over all ranks: no other rank ever holds more than one
    piece, even where a framework gathers to every rank.
    """
    module = implementation()
    flat = np.ascontiguousarray(values, np.float64).ravel()
    piece = max(1, GATHER_BYTES // (8 * size()))
    whole = np.empty((flat.size, size())) if rank() == 0 else None
    for first in range(0, flat.size, piece):
        everyone = module.gather_part(flat[first : first + piece])
        watch.advance()
        if whole is not None and everyone is not None:
            whole[first : first + piece] = everyone.T
    return None if whole is None else whole.reshape((*np.shape(values), size()))


def gather_json(value: Any, early: bool = False) -> list[Any]:
    """Collect a JSON value (some hundred bytes) from every rank: a list by rank, on every rank.

    With `early` devices and what is made of them can still be configured afterwards.
    """
    written = json.dumps(value)
    if size() == 1:
        return [json.loads(written)]
    texts = implementation().gather_bytes(np.frombuffer(written.encode(), np.uint8), early)
    watch.advance()
    return [json.loads(text) for text in texts]


def mean_over_ranks(values: Mapping[str, float]) -> dict[str, float]:
    """Return the mean of each value over the ranks, in float64, the same on every rank."""
    everyone = gather_json({name: float(value) for name, value in values.items()})
    return {name: float(np.mean([each[name] for each in everyone])) for name in values}


def raise_together(problem: tuple[int, str] | None) -> None:
    """End every rank when one has a problem (exit code, message); rank 0 says the first one.

    Call it on all ranks at the same place. Raises ProgramError everywhere, so that no rank is left
    waiting for one that has gone.
    """
    if not barrier(problem is None):
        raise_first(gather_json(problem))


def raise_first(problems: Sequence[Sequence[Any] | None]) -> None:
    """Raise ProgramError when one of the ranks' problems is not None; rank 0 says the first one."""
    raised = [problem for problem in problems if problem is not None]
    if raised:
        code, message = raised[0]
        more = f" (and {len(raised) - 1} more ranks)" if len(raised) > 1 else ""
        raise ProgramError(code, message + more if rank() == 0 else "")


def stop() -> None:
    """Leave the framework after every rank has come this far."""
    module = implementation()
    if profiling.folder_of(_Now.framework):
        module.stop_profiler()
    barrier()
    module.disconnect()


def end(code: int, error: str = "") -> None:
    """Print `error` and end the process, with a framework whose end by Python may hang."""
    if hasattr(_Now.module, "end"):
        _Now.module.end(code, error)
