"""External programs: what an attempt leaves so that its logs can be read, now and later.

Standard library only: the launcher imports this module on compute nodes.
"""

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from scalesweep.compute.job_spec import Meaning, Order, Patterns
from scalesweep.compute.log_metrics import LogsGoneError, Metric, Reading, read_metrics
from scalesweep.compute.program import environment, is_anywhere
from scalesweep.core.files import write_atomic
from scalesweep.core.host import host_facts, node_names
from scalesweep.core.record import EXTRACTED, write_npz

# What is measured of a program of which nothing is read.
WALL_TIME = "wall_time"
WALL_TIME_MEANS: Meaning = {"unit": "s", "better": "lower", "scope": "total"}
ATTEMPT = "attempt.json"
# As for native programs (workflow/benchmarks/harness/facts.py), of whatever framework: what an
# external program trains with is not known.
_KEPT = re.compile(
    r"(NCCL|OMP|KMP|MKL|SLURM|OMPI_MCA|MPICH|I_MPI|UCX|FI)_"
    r"|CUDA_(DEVICE_ORDER|LAUNCH_BLOCKING|DEVICE_MAX_CONNECTIONS)$"
    r"|(HOROVOD|TF)_|XLA_FLAGS$"
    r"|(TORCH[A-Z]*|PYTORCH|GLOO)_|(MASTER_ADDR|MASTER_PORT|WORLD_SIZE|LOCAL_WORLD_SIZE)$"
)
_LEFT_OUT = re.compile(r"SECRET|TOKEN|JWT|PASSW|KEY|CREDENTIAL|^TF_(VAR|CLI)_", re.IGNORECASE)


def keep_attempt(spec: Order, work: Path, base: Mapping[str, Any], job: int | None) -> None:
    """Leave attempt.json: all of the record that does not depend on what the logs say.

    ``base``: what the launcher knows of it. ``job``: id of the Slurm job.
    """
    variables = {
        name: value
        for name, value in sorted(environment(spec).items())
        if _KEPT.match(name) and not _LEFT_OUT.search(name)
    }
    record = {
        **base,
        # Where the program's start ends and its work begins cannot be seen from outside.
        "phases": {},
        "work": spec["extract"]["work"],
        "resources": _resources(spec, job),
        "environment": {"ranks": [], "versions": {}, "variables": variables, "node": host_facts()},
    }
    kept = {"srun_labels": spec.get("srun_labels", False), "record": record}
    write_atomic(work / ATTEMPT, json.dumps(kept, indent=1) + "\n")


def _resources(spec: Order, job: int | None) -> dict[str, Any]:
    if job is None:
        hosts = [] if is_anywhere(spec["params"]) else [os.uname().nodename]
        return {"hosts": hosts, "slurm_nodes": []}
    nodes = list(node_names(os.environ.get("SLURM_JOB_NODELIST", "")))
    return {
        "hosts": nodes or [os.uname().nodename],
        "slurm_nodes": nodes,
        "slurm": {"job_id": job, **(spec["asked"] or {})},
    }


def read_attempt(work: Path) -> dict[str, Any]:
    """attempt.json of an attempt; raises LogsGoneError if it is not there or not whole."""
    try:
        return dict(json.loads((work / ATTEMPT).read_bytes()))
    except (OSError, ValueError):
        raise LogsGoneError(f"{work.name}/{ATTEMPT} is gone or not whole") from None


def read_result(work: Path, extract: Patterns) -> tuple[dict[str, Any], Reading]:
    """The parts of a record that a native program writes itself, made of an attempt's logs.

    ``extract``: metrics and digest, as in the launcher's order. Arrays of matches are left in
    the file ``EXTRACTED``. Raises UserError (``UnreadableError``, ``LogsGoneError``) if the logs
    do not give the metrics.
    """
    kept = read_attempt(work)
    record = kept["record"]
    metrics = [Metric(**entry) for entry in extract["metrics"]]
    ranks, srun_labels = int(record["point"]["ranks"]), kept["srun_labels"]
    reading = read_metrics(metrics, work, ranks, srun_labels) if metrics else Reading()
    # These need NumPy, which no launcher imports before its program has ended.
    if declared := extract.get("reader"):
        from scalesweep.compute.log_steps import read_log

        reading.add(read_log(declared, work, ranks, srun_labels))
    if stamps := extract.get("stamps"):
        from scalesweep.compute.stamp_arrays import read_stamps

        reading.add(read_stamps(stamps, work, ranks, srun_labels, record.get("wall_s")))
    if not reading.metrics:
        reading.metrics = {WALL_TIME: {"value": record["wall_s"], **WALL_TIME_MEANS}}
    (work / EXTRACTED).unlink(missing_ok=True)
    if reading.arrays:
        write_npz(work / EXTRACTED, reading.arrays)
    resources, environment = record["resources"], record["environment"]
    if reading.hosts:
        known, names = resources["slurm_nodes"], [host.partition(".")[0] for host in reading.hosts]
        nodes = [name if name in known else None for name in names]
        resources = {**resources, "hosts": reading.hosts, "slurm_nodes": nodes}
    if reading.versions:
        environment = {**environment, "versions": reading.versions}
    about = {"extract_digest": extract["digest"], "metrics": reading.of_metrics}
    parts = {
        "phases": record["phases"],
        "work": {**reading.work, **record["work"]},
        "resources": resources,
        "environment": environment,
        "metrics": reading.metrics,
        "notes": {"extract": about, **reading.notes},
    }
    return parts, reading
