"""Helper of test_harness: a rank of PyTorch's whose launcher has not started all others.

``absent_rank.py``, as rank 0 of two, the other of which is not there. It prints as JSON how other
places are refused, and waits for the other rank up to half of a time limit of two seconds.
"""

import json
import os
import sys
import tempfile
from pathlib import Path

from harness import ranks, torch_ranks, watch
from harness.program import ProgramError

SINGLE = {"RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0"}
PLACES = ({"RANK": "1", "MASTER_PORT": "1"}, {"WORLD_SIZE": "3"}, SINGLE)


def refused(changes):
    """Exit code and message of a rank in a place that will not do."""
    kept = dict(os.environ)
    os.environ |= {"LOCAL_WORLD_SIZE": "1"} | changes
    try:
        ranks.start(1 if changes is SINGLE else 2)
        said = 0, f"rank {ranks.rank()} of {ranks.size()}"
        ranks.stop()
    except ProgramError as error:
        said = error.code, str(error)
    os.environ.clear()
    os.environ.update(kept)
    return said


def main():
    ranks.use("torch")
    torch_ranks.JOIN_S = 1.0
    print(json.dumps([refused(changes) for changes in PLACES]), flush=True)
    torch_ranks.JOIN_S = 300.0
    with tempfile.TemporaryDirectory() as folder:
        watch.arm(Path(folder), 2.0, 0.0)
        try:
            ranks.start(2)
        except ProgramError as error:
            print(f"absent: {error}", file=sys.stderr)
            return error.code
    return 0


if __name__ == "__main__":
    sys.exit(main())
