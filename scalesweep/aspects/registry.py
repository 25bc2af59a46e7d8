"""All aspects in the order of the report, and the captions of their tables.

An aspect is a folder here, or one file if it is short. No pandas or matplotlib here, nor in the
``__init__`` of a folder: the Snakefile reads captions.
"""

from collections.abc import Iterator, Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Literal

# What all aspects are gone through for, and the file of a folder that has it (else ``table``, which
# may have all that takes no matplotlib):
# MAKERS (``tables.making.Maker``) make tables; FIGURES are functions from results to ``Drawing``s;
# RULES (``findings.base.Rule``) make findings; SECTION (``experiment.sections.Section``) is one of
# the page; PROFILES are declared rows that the page shows as they are below the profiled runs, with
# what is to be known beside their captions.
Part = Literal["MAKERS", "FIGURES", "RULES", "SECTION", "PROFILES"]
_FILES: Mapping[Part, str] = {
    "MAKERS": "table", "FIGURES": "figure", "RULES": "findings", "SECTION": "section",
    "PROFILES": "table",
}  # fmt: skip

# By aspect, captions of the tables that people read; others have a row per run, rank or sample.
ASPECTS: dict[str, Mapping[str, str]] = {
    "scaling": {},
    "comparisons": {
        "comparisons": "Ratios of two points, or of many pairs of points: of settings, threads, "
        "inputs, phases, scales and results of training, with p values."
    },
    "layouts": {
        "best_layouts": "At each scale the best layout, how far it is ahead of the next, and how "
        "many points failed.",
        "layouts": "Every layout that ran: its share of the best at its scale, and its memory.",
    },
    "prediction": {
        "prediction": "Predictions at rank counts that were not measured, with 90 % and 95 % "
        "intervals."
    },
    "steps": {
        "efficiency": "The time of a step by loss, and the factors of the efficiency, at each "
        "point.",
        "first_epoch": "The time of the first epoch by loss, at each point.",
        "causes": "What makes steps longer: ranks, cause, steps, and what a replay gains without "
        "it.",
        "steps": "Quantiles, stalls and drift of the steps of each point.",
        "pipeline_idle": "What stages of a pipeline wait for, beside the ideal.",
        "stragglers": "Ranks and hosts that are slower than the others.",
    },
    "warm_up": {
        "warm_up": "Steps that each point leaves out as its warm-up, and from which its times "
        "are steady."
    },
    "training": {},
    "score": {
        "score": "Mean time to the target without the best and the worst run, as MLPerf counts."
    },
    "phases": {"phases": "Seconds, and joules where known, of every phase of every point."},
    "utilisation": {
        "utilisation": "Tokens, FLOP, MFU and HFU of each point, by every convention that the "
        "model states enough for."
    },
    "roofline": {
        "roofline": "Operations, bytes and times of kernels or layers beside the machine's limits.",
        "ceilings": "Measured limits of the machine: compute rate, memory bandwidth, "
        "collectives, files.",
    },
    "headroom": {
        "headroom": "What points take of files, input pipelines, copies, computation, memory and "
        "network, beside what the campaign's probes reach."
    },
    "memory": {
        "memory": "Predicted bytes of a rank by part, the measured peak, and whether the model "
        "calls right which points fit.",
        "memory_fit": "Constants of the memory model, and how near it comes.",
    },
    "profiles": {
        "collectives": "Calls of each rank in PyTorch's traces by process group and operation: "
        "sizes, exposed and overlapped time.",
        "lateness": "How late each rank begins the collectives of a process group.",
        "operations": "Time of TensorFlow's operations per step, by device and type.",
        "parts": "The time of each part of a program at each point.",
        "timeline": "What the Horovod timeline shows: time of negotiation, queues and "
        "collectives by tensor.",
    },
    "energy": {},
    "probes": {
        "network": "Latency, bandwidth and algorithm fitted to each collective, with their "
        "intervals."
    },
    "links": {},
}
# Of tables that lie in no folder of an aspect.
_OTHER_TABLES: Mapping[str, str] = {
    "findings": "The sentences of the report: state, numbers with units, and the rows and runs "
    "that carry them.",
    "points": "One row per point: means over its runs, standard deviation, 95 % interval.",
    "scaling": "Points by series and scale: speedup, efficiency and ideal, with 95 % intervals.",
}


def parts(name: Part) -> Iterator[Any]:
    """What each aspect has under this name; a module is imported when it is asked for."""
    for aspect in ASPECTS:
        where = f"scalesweep.aspects.{aspect}"
        module = import_module(where)
        if hasattr(module, "__path__"):
            files = [f"{where}.{file}" for file in (_FILES[name], "table")]
            module = next((import_module(file) for file in files if find_spec(file)), module)
        if hasattr(module, name):
            yield getattr(module, name)


def shown_tables() -> dict[str, str]:
    """Captions of the tables that people read; the others have a row per run, rank or sample."""
    return {**_OTHER_TABLES, **{k: v for tables in ASPECTS.values() for k, v in tables.items()}}
