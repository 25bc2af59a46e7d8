"""A program in the harness: a rank of two hangs, or it ends well, as its run file asks for."""

import multiprocessing
import os
import sys
import time

from harness import program, ranks
from harness.phases import Phases, since_start


def ends_well(out):
    """Fork children that end in both ways, and tell what files there are meanwhile."""
    child = os.fork()
    if child == 0:
        sys.exit(0)
    os.waitpid(child, 0)
    process = multiprocessing.get_context("fork").Process(target=time.sleep, args=(0.01,))
    process.start()
    process.join()
    (out / "during").write_text("\n".join(path.name for path in out.glob("stacks-*")))


def hangs(out):
    """Let rank 1 hang while the other waits for it; each tells when it had come there."""
    ranks.use("tensorflow")
    ranks.start(2)
    (out / f"ready-{ranks.rank()}").write_text(str(since_start()))
    if ranks.rank() == 1:
        time.sleep(600)
    ranks.barrier()


def main(run):
    """Do as the parameter says."""
    with Phases()("timed"):
        globals()[run.params["behaviour"]](run.out)


if __name__ == "__main__":
    sys.exit(program.run_program("hanging", main))
