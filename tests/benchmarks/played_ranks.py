"""A framework for `harness.ranks` that one process plays: it is rank 0 of two that do the same."""

import numpy as np

from harness.rendezvous import Place

calls: list[str] = []
capabilities: list[tuple[int, int] | None] = []
tf32 = {"allowed": True}


def connect(ranks, inter_threads, intra_threads, _folder):
    calls.append(f"connect {ranks} {inter_threads} {intra_threads}")
    return Place(0, 2, 0, 2, "played")


def all_true(ok):
    return ok


def gather_part(part):
    return np.stack([part, part])


def gather_bytes(text, early):
    return [text.tobytes()] * 2


def exchange():
    return {"by": "played", "backend": "none"}


def versions():
    return {"played": "1.0"}


def allow_tf32(allowed):
    tf32["allowed"] = allowed


def tf32_state(convolutions):
    return tf32["allowed"], capabilities


def start_profiler(folder, rank):
    calls.append(f"profile {folder.name} {rank}")


def stop_profiler():
    calls.append("profiled")


def disconnect():
    calls.append("stop")


def keep(shared):
    """Nothing is taken down that could hang."""


def end(code, error=""):
    """Leave the end to Python."""
