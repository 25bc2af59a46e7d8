"""``notes.exchange``: what ranks exchange and through what; as records before schema 3 said it.

Until then ``notes.horovod`` had Horovod's settings, and ``notes.exchange`` the tensors of a program
that trains. Standard library only: the launcher reads attempts of before.
"""

from collections.abc import Mapping
from typing import Any

EXCHANGE = "exchange"
_HOROVOD = "horovod"
_BUCKET, _CYCLE = "fusion_threshold_bytes", "cycle_time_ms"
_NAMES = {_BUCKET: "bucket_bytes", _CYCLE: "cycle_s"}


def with_exchange(notes: Mapping[str, Any]) -> dict[str, Any]:
    """``notes`` without ``horovod``, what it says moved to ``exchange``.

    What an odd ``exchange`` holds (no object) stays, for whoever reads it to refuse.
    """
    moved = dict(notes)
    said = moved.pop(_HOROVOD, None)
    own = moved.get(EXCHANGE)
    if isinstance(said, dict) and (own is None or isinstance(own, dict)):
        moved[EXCHANGE] = {**of_horovod(said, notes.get("tf32")), **(own or {})}
    return moved


def of_horovod(said: Mapping[str, Any], tf32: Any = None) -> dict[str, Any]:
    """``notes.exchange`` from Horovod's settings as ``notes.horovod`` had them.

    ``tf32``: ``notes.tf32``, which says whether ranks had GPUs; NCCL moves what is on these.
    """
    settings = {_NAMES.get(name, name): value for name, value in said.items()}
    if _is_number(settings.get("cycle_s")):
        settings["cycle_s"] /= 1e3
    on_cpus = isinstance(tf32, dict) and tf32.get("device") == "CPU"
    backend = "nccl" if settings.pop("nccl", False) and not on_cpus else settings.get("controller")
    origins = settings.get("from")
    if isinstance(origins, dict):
        settings["from"] = {_NAMES.get(name, name): origin for name, origin in origins.items()}
    return {"by": _HOROVOD, "backend": backend, **settings}


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
