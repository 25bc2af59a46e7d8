"""Ranks of PyTorch that exchange through torch.distributed: what `harness.ranks` needs of them.

Where a rank stands and where it meets the others is worked out by `rendezvous`: rank 0 (or
torchrun's agent) serves a store, in which it waits for all others. Tensors on the host go through
Gloo, those on GPUs through NCCL.
"""

import atexit
import contextlib
import os
import socket
import sys
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist

from harness import watch
from harness.program import EXIT_LAUNCH, EXIT_UNSUPPORTED, ProgramError
from harness.rendezvous import Place, find_meeting, leave_meeting, place_of, said_meeting

# How long ranks wait for those that have not come, at most; less where the time limit is near.
JOIN_S, JOIN_SHARE, SHORTEST_JOIN_S = 300.0, 0.5, 1.0
# Beyond any time limit, at which the launcher ends ranks that wait and says where each one was.
EXCHANGE_TIMEOUT = timedelta(days=7)
BETWEEN = "scalesweep: ranks meet"  # in a profile; scalesweep/analysis/kineto_stream.py


class _Now:
    """Of this process: its place, its device, and its profiler while it runs."""

    place = Place(0, 1, 0)
    device = torch.device("cpu")
    profiler: tuple[torch.profiler.profile, Path] | None = None
    kept: Any = None


def connect(
    ranks: int,
    inter_threads: int,
    intra_threads: int,
    folder: Path | None = None,
    patience_s: float | None = None,
) -> Place:
    """Join the other ranks, each on a GPU of its own where there are any.

    Threads are those of torch.set_num_threads and its like. In `folder` all ranks see where rank 0
    is met, if no launcher says it. Ranks wait `patience_s` for those that have not come; None: as
    the run's time limit allows. Raises ProgramError where one never joins (code 75), on all ranks
    where two have the same GPU (code 69).
    """
    _Now.place = place = place_of()
    if place.size != ranks:
        return place
    if inter_threads:
        torch.set_num_interop_threads(inter_threads)
    if intra_threads:
        torch.set_num_threads(intra_threads)
    _Now.device = _choose_device(place)
    cuda = _Now.device.type == "cuda"
    store = _store(place, folder, _patience_s() if patience_s is None else patience_s)
    dist.init_process_group(
        "cpu:gloo,cuda:nccl" if cuda else "gloo",
        store=dist.PrefixStore("group", store),
        rank=place.rank,
        world_size=place.size,
        timeout=EXCHANGE_TIMEOUT,
    )
    if cuda:
        _refuse_shared_gpus(place)
    return place


def _choose_device(place: Place) -> torch.device:
    """Return this rank's device: of the GPUs that it sees the one of its number on the host.

    A launcher that shows each rank its own GPU only (CUDA_VISIBLE_DEVICES) leaves no choice.
    """
    if not torch.cuda.is_available():
        return torch.device("cpu")
    device = torch.device("cuda", place.local_rank % torch.cuda.device_count())
    torch.cuda.set_device(device)
    return device


def _refuse_shared_gpus(place: Place) -> None:
    """Raise ProgramError (code 69) on all ranks where two have one GPU; rank 0 says so."""
    own = f"{socket.gethostname()} {torch.cuda.get_device_properties(_Now.device).uuid}"
    everyone = gather_bytes(np.frombuffer(own.encode(), np.uint8), early=True)
    if len(set(everyone)) == len(everyone):
        return
    host = next(each for each in everyone if everyone.count(each) > 1).split()[0]
    sharing = [each for each in everyone if each.split()[0] == host]
    message = f"{len(set(sharing))} GPUs for {len(sharing)} ranks of a host ({host.decode()})"
    raise ProgramError(EXIT_UNSUPPORTED, message if place.rank == 0 else "")


def _patience_s() -> float:
    """Return how long to wait for ranks that have not come, in seconds."""
    if (remaining_s := watch.remaining_s()) is None:
        return JOIN_S
    return max(SHORTEST_JOIN_S, min(JOIN_S, JOIN_SHARE * remaining_s))


def _store(place: Place, folder: Path | None, patience_s: float) -> dist.Store:
    """Return the store that rank 0 serves, or torchrun's agent; rank 0 waits in it for all others.

    Rank 0 says where that is, in `folder`, if no launcher does. Raises ProgramError (code 75).
    """
    if place.size == 1:
        return dist.HashStore()
    address, port = said_meeting()
    first, listening = place.rank == 0, None
    try:
        if not (address and port):
            if folder is None:
                why = "no folder in which ranks meet: set MASTER_ADDR and _PORT"
                raise ProgramError(EXIT_LAUNCH, why)
            if first:
                listening = socket.create_server(("", port), backlog=place.size)
                port = listening.getsockname()[1]
                address = address or socket.gethostname()
                leave_meeting(folder, address, port)
                address = "127.0.0.1"  # reaches itself there, whatever others call its host
            else:
                address, port = find_meeting(folder, patience_s)
        store = dist.TCPStore(
            address,
            port,
            place.size,
            is_master=first and os.environ.get("TORCHELASTIC_USE_AGENT_STORE") != "True",
            timeout=timedelta(seconds=patience_s),
            master_listen_fd=listening.detach() if listening else None,
        )
    except OSError as error:
        message = f"rank 0 cannot say where it is met: {folder}: {error.strerror}"
        raise ProgramError(EXIT_LAUNCH, message) from None
    except dist.DistError as error:
        where = f"MASTER_ADDR {address}, MASTER_PORT {port}"
        message = f"rank {place.rank}: rank 0 did not answer at {where} within {patience_s:.0f} s"
        if first:  # also how many have come
            why = str(error).splitlines()[0][:200]
            message = f"rank 0 on {socket.gethostname()}, port {port}: {why}"
        raise ProgramError(EXIT_LAUNCH, message) from None
    return dist.PrefixStore("harness", store)


def device() -> torch.device:
    """Return this rank's device; known after `connect`."""
    return _Now.device


def device_name() -> str:
    """Return the name of this rank's GPU, or CPU."""
    return torch.cuda.get_device_name(_Now.device) if _Now.device.type == "cuda" else "CPU"


def _between() -> contextlib.AbstractContextManager[Any]:
    """Name what the ranks do together between steps, for who reads the profile if there is one."""
    return torch.profiler.record_function(BETWEEN) if _Now.profiler else contextlib.nullcontext()


def all_true(ok: bool) -> bool:
    """Wait for every rank, by an allreduce of one int; return whether every rank said `ok`."""
    flag = torch.tensor([int(ok)])
    with _between():
        dist.all_reduce(flag, op=dist.ReduceOp.MIN)
    return bool(flag.item())


def gather_part(part: np.ndarray) -> np.ndarray | None:
    """Collect ``[rank, n]`` on rank 0."""
    own, first = torch.tensor(part), _Now.place.rank == 0
    everyone = torch.empty((_Now.place.size, part.size), dtype=torch.float64)
    dist.gather(own, list(everyone.unbind()) if first else None)
    return everyone.numpy() if first else None


def gather_bytes(text: np.ndarray, early: bool) -> list[bytes]:
    """Collect uint8 values of any length from every rank, on every rank.

    Devices are chosen before, whether `early` or not.
    """
    lengths = torch.empty(_Now.place.size, dtype=torch.int64)
    with _between():
        dist.all_gather(list(lengths.split(1)), torch.tensor([text.size]))
    longest = int(lengths.max())
    own = torch.zeros(longest, dtype=torch.uint8)
    own[: text.size] = torch.tensor(text)
    letters = torch.empty((len(lengths), longest), dtype=torch.uint8)
    dist.all_gather(list(letters.unbind()), own)
    return [
        row[:length].tobytes()
        for row, length in zip(letters.numpy(), lengths.tolist(), strict=True)
    ]


def exchange() -> dict[str, Any]:
    """Return what tensors are exchanged through, Gloo on CPUs and NCCL on GPUs."""
    return {
        "by": "torch.distributed",
        "library": "torch.distributed",
        "backend": "nccl" if _Now.device.type == "cuda" else "gloo",
    }


def versions() -> Mapping[str, str | None]:
    """Return the versions of PyTorch, and of CUDA and NCCL where it computes on GPUs."""
    cuda = _Now.device.type == "cuda"
    nccl = torch.cuda.nccl.version() if cuda else None
    return {
        "torch": str(torch.__version__),
        "cuda": torch.version.cuda if cuda else None,
        "nccl": ".".join(map(str, nccl)) if nccl else None,
    }


def allow_tf32(allowed: bool) -> None:
    """Allow or forbid TensorFloat-32, for matrix products and convolutions of float32."""
    torch.backends.cuda.matmul.allow_tf32 = allowed
    torch.backends.cudnn.allow_tf32 = allowed


def tf32_state(convolutions: bool) -> tuple[bool, list[tuple[int, int] | None]]:
    """Return whether it is allowed, as PyTorch does by default for convolutions and not for matrix
    products, and what the GPU can do."""
    of = torch.backends.cudnn if convolutions else torch.backends.cuda.matmul
    allowed = bool(of.allow_tf32)
    gpus = [_Now.device] if _Now.device.type == "cuda" else []
    return allowed, [torch.cuda.get_device_capability(gpu) for gpu in gpus]


def start_profiler(folder: Path, rank: int) -> None:
    """Start PyTorch's profiler (Kineto), which writes ``rank<r>.json.gz`` at its end."""
    activities = [torch.profiler.ProfilerActivity.CPU]
    if _Now.device.type == "cuda":
        activities.append(torch.profiler.ProfilerActivity.CUDA)
    profiler = torch.profiler.profile(activities=activities)
    _Now.profiler = profiler, folder / f"rank{rank}.json.gz"
    profiler.start()
    # The process would crash at its end with one that a failure has left.
    atexit.register(stop_profiler, export=False)


def stop_profiler(export: bool = True) -> None:
    """Stop it, if it runs, and write what it has seen."""
    if _Now.profiler:
        (profiler, path), _Now.profiler = _Now.profiler, None
        profiler.stop()
        if export:
            profiler.export_chrome_trace(str(path))


def disconnect() -> None:
    """Stay in the process group, which ends with the process (`end`)."""


def keep(shared: Any) -> None:
    """Keep a network, which DDP may have wrapped, and with it the group that it holds on to."""
    _Now.kept = shared


def end(code: int, error: str = "") -> None:
    """Print an error and end the process as it is.

    Taking the group down joins Gloo's thread while it holds Python's lock, for which that thread
    may wait: seen in one of some ten runs whose results were written. What this process has
    registered for its end is done; the kernel closes the rest.
    """
    atexit._run_exitfuncs()
    sys.stderr.write(error)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
