"""Snakemake's scheduler, held to the order of a campaign and cheap with thousands of jobs ready.

Of the jobs that are ready the scheduler picks those of highest priority, but it starts the picked
ones in no order. And whenever a job ends it weighs all that are ready anew, which for n runs takes
time by n squared. Three of these functions stand in the place of members of ``JobScheduler``, the
fourth in that of ``Job.cleanup``.
"""

import heapq
import threading
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

# Of the ready jobs so many are weighed at a time: as many as profiles/slurm has in the queue.
WINDOW = 500


def next_jobs(scheduler: Any) -> list[Any]:
    """The ready jobs whose turn it is (``JobScheduler.open_jobs``); none while nothing is free."""
    ready = scheduler.workflow.dag.ready_jobs
    if scheduler.dryrun:
        return list(ready)
    free = min(scheduler.resources[name] for name in ("_cores", "_nodes"))
    if free <= 0 and scheduler.running:
        return []
    # Each takes a core or a node, so no more than a few times what is free need a look.
    return heapq.nlargest(min(WINDOW, 4 * max(free, 1)), ready, key=_priority)


def in_turn(run: Callable[..., None]) -> Callable[..., None]:
    """``JobScheduler.run`` that starts the jobs it is given by priority."""

    def ordered(scheduler: Any, jobs: Sequence[Any], executor: Any = None) -> None:
        run(scheduler, sorted(jobs, key=_priority, reverse=True), executor)

    return ordered


def look_again(scheduler: Any, delay: float) -> None:
    """Have the scheduler look once more, ``delay`` seconds after its last look.

    ``JobScheduler._schedule_reevalutation`` starts a timer at each look, and a timer ends in a look
    too: with each job that ends there is one timer more, until thousands of looks a second are due.
    """
    if (timer := vars(scheduler).get("_timer")) is not None:
        timer.cancel()
    scheduler._timer = threading.Timer(delay, scheduler._open_jobs.release)
    scheduler._timer.daemon = True  # nothing waits for it once all is done
    scheduler._timer.start()


def but_records(cleanup: Callable[..., Awaitable[None]]) -> Callable[..., Awaitable[None]]:
    """``Job.cleanup``, which removes what a failed job has made, less the records of runs.

    A job may fail after its record was written (a launcher killed in its last milliseconds). The
    record is whole all the same, and its run is not to be repeated.
    """

    async def cleaned(job: Any, skipped: Any) -> None:
        if job.rule.name != "run":
            await cleanup(job, skipped)

    return cleaned


def _priority(job: Any) -> float:
    return float(job.priority)
