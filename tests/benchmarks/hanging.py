"""A program in the harness: it hangs, is slow or ends well, as its run file asks for."""

import multiprocessing
import os
import sys
import time

from harness import program
from harness.phases import Phases, since_start
from harness.rank_variables import rank_of


def sleeps(out):
    """Hang as one that waits for something that never comes."""
    ready(out)
    time.sleep(600)


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


def hangs_in_horovod(out):
    """Let rank 1 hang while the other waits for it."""
    from harness import ranks

    ranks.use("tensorflow")
    ranks.start(2)
    if ranks.rank() == 1:
        sleeps(out)
    ready(out)
    ranks.barrier()


def ready(out):
    """Tell when this rank had come to where it stays."""
    (out / f"ready-{rank_of(os.environ)}").write_text(str(since_start()))


def main(run):
    """Do as the parameter says."""
    with Phases()("timed"):
        globals()[run.params["behaviour"]](run.out)


if __name__ == "__main__":
    sys.exit(program.run_program("hanging", main))
