"""External programs: what an attempt leaves so that its logs can be read, now and later.

Standard library only: the launcher imports this module on compute nodes.
"""

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scalesweep.compute.job_spec import Order, Patterns
from scalesweep.compute.log_metrics import (
    LogsGoneError,
    Reading,
    UnreadableError,
    metrics_of,
    read_metrics,
)
from scalesweep.compute.native_format import Meaning, NativeParts
from scalesweep.compute.program import is_anywhere
from scalesweep.core.files import write_atomic
from scalesweep.core.host import host_facts
from scalesweep.core.host_list import expand
from scalesweep.core.npy import write_npz
from scalesweep.core.record import EPOCH_TIMES, EXTRACTED

if TYPE_CHECKING:
    from scalesweep.compute.stamp_arrays import Stamped

# What is measured of a program of which nothing is read.
WALL_TIME = "wall_time"
WALL_TIME_MEANS: Meaning = {"unit": "s", "better": "lower", "scope": "total"}
ATTEMPT = "attempt.json"
ATTEMPT_SCHEMA = 1  # of this file; what it says of ranks becomes columns with the record
# As for native programs (workflow/benchmarks/harness/facts.py), of whatever framework: what an
# external program trains with is not known.
_KEPT = re.compile(
    r"(NCCL|OMP|KMP|MKL|SLURM|OMPI_MCA|MPICH|I_MPI|UCX|FI)_"
    r"|CUDA_(DEVICE_ORDER|LAUNCH_BLOCKING|DEVICE_MAX_CONNECTIONS)$"
    r"|(HOROVOD|TF)_|XLA_FLAGS$"
    r"|(TORCH[A-Z]*|PYTORCH|GLOO)_|(MASTER_ADDR|MASTER_PORT|WORLD_SIZE|LOCAL_WORLD_SIZE)$"
)
_LEFT_OUT = re.compile(r"SECRET|TOKEN|JWT|PASSW|KEY|CREDENTIAL|^TF_(VAR|CLI)_", re.IGNORECASE)


def keep_attempt(
    spec: Order,
    work: Path,
    base: Mapping[str, Any],
    exit_code: int | None,
    job: int | None,
    environment: Mapping[str, str],
) -> None:
    """Leave attempt.json: all of the record that does not depend on what the logs say.

    ``base``: what the launcher knows of it. ``job``: id of the Slurm job. ``environment``: what
    the program was started with.
    """
    if (extract := spec.get("extract")) is None:
        raise ValueError(f"{spec['run_id']}: its order names no patterns")
    record = {
        **base,
        # Where the program's start ends and its work begins cannot be seen from outside.
        "phases": {},
        "work": extract["work"],
        "resources": _resources(spec, job),
        "environment": {
            "ranks": [],
            "versions": {},
            "variables": {
                name: value
                for name, value in sorted(environment.items())
                if _KEPT.match(name) and not _LEFT_OUT.search(name)
            },
            "node": host_facts(),
        },
    }
    kept: dict[str, Any] = {
        "schema": ATTEMPT_SCHEMA,
        "exit_code": exit_code,
        "srun_labels": extract["srun_labels"],
        "record": record,
    }
    write_atomic(work / ATTEMPT, json.dumps(kept, indent=1) + "\n")


def _resources(spec: Order, job: int | None) -> dict[str, Any]:
    if job is None:
        hosts = [] if is_anywhere(spec["params"]) else [os.uname().nodename]
        return {"hosts": hosts, "slurm_nodes": []}
    nodes = list(expand(os.environ.get("SLURM_JOB_NODELIST", "")))
    return {
        "hosts": nodes or [os.uname().nodename],
        "slurm_nodes": nodes,
        "slurm": {"job_id": job, **(spec["asked"] or {})},
    }


def read_attempt(work: Path) -> dict[str, Any]:
    """attempt.json of an attempt; raises LogsGoneError if it is not there or not whole."""
    try:
        kept = json.loads((work / ATTEMPT).read_bytes())
        if kept["schema"] == ATTEMPT_SCHEMA and isinstance(kept["record"], dict):
            return dict(kept)
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        pass
    raise LogsGoneError(f"{work.name}/{ATTEMPT} is gone or not whole")


def read_result(work: Path, extract: Patterns) -> tuple[NativeParts, Reading]:
    """The parts of a record that a native program writes itself, made of an attempt's logs.

    ``extract``: metrics and digest, as in the launcher's order. Arrays of matches are left in
    the file ``EXTRACTED``. Raises UserError (``UnreadableError``, ``LogsGoneError``) if the logs
    do not give the metrics.
    """
    kept = read_attempt(work)
    record = kept["record"]
    metrics = metrics_of(extract["metrics"])
    ranks, srun_labels = int(record["point"]["ranks"]), kept["srun_labels"]
    reading = read_metrics(metrics, work, ranks, srun_labels) if metrics else Reading()
    if declared := extract.get("reader"):
        # It needs NumPy, which no launcher imports before its program has ended.
        from scalesweep.compute.log_runs import read_log

        reading.add(read_log(declared, work, ranks, srun_labels))
    notes = {"extract": {"extract_digest": extract["digest"], "metrics": reading.notes}}
    if stamps := extract.get("stamps"):
        from scalesweep.compute.stamp_arrays import read_stamps

        stamped = read_stamps(stamps, work, ranks, srun_labels, record.get("wall_s"))
        _add_stamps(stamped, record, reading, notes)
    elif not reading.metrics:
        reading.metrics = {WALL_TIME: {"value": record["wall_s"], **WALL_TIME_MEANS}}
    (work / EXTRACTED).unlink(missing_ok=True)
    if reading.arrays:
        write_npz(work / EXTRACTED, reading.arrays)
    parts: NativeParts = {
        "phases": record["phases"],
        "work": record["work"],
        "resources": record["resources"],
        "environment": record["environment"],
        "metrics": reading.metrics,
        "notes": notes,
    }
    return parts, reading


def _add_stamps(
    stamped: "Stamped", record: dict[str, Any], reading: Reading, notes: dict[str, Any]
) -> None:
    """Add what stamps give to what patterns have given, and to the parts that the logs add to."""
    if twice := sorted(stamped.metrics.keys() & reading.metrics.keys()):
        raise UnreadableError(f"metric {twice[0]}: a pattern and the stamps both give it")
    reading.metrics |= stamped.metrics
    reading.arrays |= stamped.arrays
    notes |= stamped.notes
    reading.of_stamps = stamped.warnings
    said, printed = record["work"].get("samples_per_epoch"), stamped.work.get("samples_per_epoch")
    if EPOCH_TIMES[0] in stamped.arrays and said and printed and said != printed:
        stamped.warnings.append(
            f"the ranks printed {printed:,} samples an epoch, benchmark.yaml says {said:,} (work): "
            "print the samples of a rank"
        )
        notes["stamps"]["warnings"] = stamped.warnings
    record["work"] = {**stamped.work, **record["work"]}
    if stamped.versions:
        record["environment"] = {**record["environment"], "versions": stamped.versions}
    if stamped.hosts:
        resources = record["resources"]
        names = [host.partition(".")[0] for host in stamped.hosts]
        known = set(resources.get("slurm_nodes") or ())
        nodes = [name if name in known else None for name in names]
        record["resources"] = {**resources, "hosts": stamped.hosts, "slurm_nodes": nodes}
