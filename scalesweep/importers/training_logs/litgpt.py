"""litgpt (litgpt/pretrain.py, litgpt/finetune): a line per micro-batch. Only those of ``(step)``
ended with the optimiser, and are read: the time is of that micro-batch, not of the whole step.
The hyperparameters that it prints give devices, batch and number format.
"""

import re
from typing import Any

from scalesweep.importers.training_logs.model_facts import count, stated
from scalesweep.importers.training_logs.patterns import line
from scalesweep.importers.training_logs.program import SECONDS, Facts, Printed, Program, Stated
from scalesweep.importers.training_logs.values import FINAL_LOSS


def _settle(facts: Facts) -> dict[str, Any]:
    """Ranks: the devices of a node times the nodes, of which there was one before litgpt asked."""
    devices, nodes = count(facts.get("devices")), count(facts.get("nodes", "1"))
    return stated(ranks=devices * nodes if devices and nodes else None)


LITGPT = Program(
    name="litgpt",
    benchmark="litgpt",
    summary="Training by litgpt, from its log.",
    marks=("iter time: ",),
    sign=re.compile(r"\biter \d{1,9} (?:\| )?step \d{1,9}\b.{0,100}\biter time: .{0,30}\bstep\)"),
    progress=line(
        r"\biter \d+ (?:\| )?step <step:i>(?: ?\|)?:? loss(?: train)?:? <loss:w>,.{0,60}?",
        r"iter time: <ms> ?ms \((?:optimizer\.)?step\)",
    ),
    values={
        "ms": Printed(
            "micro_batch_time",
            "s",
            "total",
            "time of the micro-batch that ends with the optimiser's step",
            SECONDS,
            1e-3,
            "lower",
        ),
        "loss": FINAL_LOSS,
    },
    main="micro_batch_time",
    averages=False,
    stated=(
        Stated(
            "Total parameters",
            re.compile(r"^Total parameters:? (?P<model_parameters>[\d,]{1,20})\s*$"),
        ),
        Stated(
            "micro_batch_size=", re.compile(r"micro_batch_size=(?P<micro_batch_size>\d{1,9}),\s*$")
        ),
        Stated(
            "global_batch_size=",
            re.compile(r"global_batch_size=(?P<global_batch_size>\d{1,9}),\s*$"),
        ),
        Stated("'devices': ", re.compile(r"^.{0,4}'devices': (?P<devices>\d{1,6}),\s*$")),
        Stated("'num_nodes': ", re.compile(r"^.{0,4}'num_nodes': (?P<nodes>\d{1,6}),\s*$")),
        Stated("'precision': ", re.compile(r"^.{0,4}'precision': '(?P<precision>[\w-]{1,30})',")),
        Stated("'model_name': ", re.compile(r"^.{0,4}'model_name': '(?P<model>[\w.-]{1,60})',")),
    ),
    settle=_settle,
    begins=("Time to instantiate model: ",),
)
