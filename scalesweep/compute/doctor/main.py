"""The doctor where runs are: in a Slurm job, or on this machine.

    python -I -S main.py ORDER

Writes each outcome to ``checks.jsonl`` next to the order, a line as it comes; an empty line is the
end. Standard library only.
"""

import json
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from scalesweep.compute.doctor import nodes, ranks, software
from scalesweep.compute.doctor.checks import FAILED, SKIPPED, Check, Group, carry_out
from scalesweep.compute.doctor.order import CHECKS, TORCH, DoctorOrder, needs_of, read
from scalesweep.compute.doctor.torch_checks import PYTORCH

# Together less than the two minutes that a call may take, with one part.
NODES_S, SOFTWARE_S, RANKS_S = 15.0, 35.0, 45.0
PART_S = SOFTWARE_S + RANKS_S  # for each further one


def names(needs: Sequence[str]) -> list[str]:
    """The checks of parts that need this, in their order."""
    of_parts = [[*software.names(kind), *ranks.names(kind, needs)] for kind in needs]
    return [*nodes.NAMES, *(name for part in of_parts for name in part)]


def carry_out_all(order: DoctorOrder) -> Iterator[Check]:
    """The outcomes of an order's checks, one group after the other."""
    yield from carry_out([Group(nodes.NAMES, NODES_S, partial(nodes.examine, order))])
    needs = needs_of(order["parts"])
    for part in order["parts"]:
        kind, failed = part["needs"], False
        examine = partial(software.examine, order, part)
        for check in carry_out([Group(software.names(kind), SOFTWARE_S, examine)]):
            failed |= check.state == FAILED
            yield check
        of_ranks = ranks.names(kind, needs)
        if failed and kind == TORCH:  # its ranks would say the same again
            for name in of_ranks:
                yield Check(name, SKIPPED, f"needs {PYTORCH}")
        else:
            yield from carry_out([Group(of_ranks, RANKS_S, partial(ranks.examine, order, part))])


def main(argv: Sequence[str]) -> None:
    """Carry out an order's checks."""
    order = read(Path(argv[0]))
    with Path(order["folder"], CHECKS).open("a", encoding="utf-8") as out:
        for check in carry_out_all(order):
            print(json.dumps(check), file=out, flush=True)
        print(file=out, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
