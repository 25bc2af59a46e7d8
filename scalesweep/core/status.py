"""How far a run is: the statuses in plan.json, plan.csv and the tables. Standard library only."""

from enum import StrEnum


class Status(StrEnum):
    """How far a planned run is."""

    DONE = "done"
    FAILED = "failed"
    UNSUPPORTED = "unsupported"  # its record says that this machine cannot run the point
    UNFINISHED = "unfinished"  # imported, of a program that was cut or aborted
    # There is a record, but of something else than is planned now: neither counted nor run again.
    STALE = "stale"
    NEW = "new"  # pending: neither a record nor a failure
    EXCLUDED = "excluded"  # of a point in plan.csv that the campaign leaves out
