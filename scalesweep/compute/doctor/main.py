"""The doctor where runs are: in a Slurm job, or on this machine.

    python -I -S main.py ORDER

Writes each outcome to ``checks.jsonl`` next to the order, a line as it comes; an empty line is the
end. Standard library only.
"""

import json
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from scalesweep.compute.doctor import nodes, ranks, software
from scalesweep.compute.doctor.checks import Group, carry_out
from scalesweep.compute.doctor.order import CHECKS, DoctorOrder, read

# Together less than the two minutes that a call may take.
NODES_S, SOFTWARE_S, RANKS_S = 15.0, 35.0, 45.0
NAMES = (*nodes.NAMES, *software.NAMES, *ranks.NAMES)


def groups(order: DoctorOrder) -> list[Group]:
    """The checks in their order, to be carried out one group after the other."""
    return [
        Group(nodes.NAMES, NODES_S, partial(nodes.examine, order)),
        Group(software.NAMES, SOFTWARE_S, partial(software.examine, order)),
        Group(ranks.NAMES, RANKS_S, partial(ranks.examine, order)),
    ]


def main(argv: Sequence[str]) -> None:
    """Carry out an order's checks."""
    order = read(Path(argv[0]))
    with Path(order["folder"], CHECKS).open("a", encoding="utf-8") as out:
        for group in groups(order):
            for check in carry_out([group]):
                print(json.dumps(check), file=out, flush=True)
        print(file=out, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
