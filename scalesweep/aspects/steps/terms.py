"""The terms of a step: what each is called, how it looks, and what to do about its loss."""

from collections.abc import Mapping
from typing import NamedTuple

from scalesweep.analysis.step_account import REST

IDEAL, ELAPSED = "ideal", "elapsed"  # both steps
# Of a computation term, in the ledger: as at the reference, and what is slower than that.
AT_REFERENCE, LOCAL_BATCH, SLOWER = "at_reference", "local_batch", "slower"
OUTSIDE = "outside"  # of the accounted steps
OTHER = "other"  # small terms, for readers
# Of a single epoch: whether another rank would be the slowest in others, it does not say.
IMBALANCE = "imbalance"


class Term(NamedTuple):
    """A term: its label, its colour and hatch (what was there at the reference is dark, what is
    lost bright), and what to do about it; empty if it is no loss that is named."""

    label: str
    look: tuple[str, str]
    do: str = ""


# In the order of the ledger. Colours after Okabe and Ito.
TERMS: Mapping[str, Term] = {
    "compute": Term("Computation", ("#0072B2", "")),
    "busy": Term("Input and computation", ("#0072B2", "")),
    AT_REFERENCE: Term("Computation", ("#0072B2", "")),
    LOCAL_BATCH: Term("Smaller local batch", ("#56B4E9", "////"),
                      "give each rank a larger batch: a small one computes slowly"),
    SLOWER: Term("Slower computation", ("#56B4E9", ""),
                 "compare fewer threads per rank: ranks share cores, memory or disks"),
    "input": Term("Input", ("#009E73", ""),
                  "compare more parallel reads, more prefetching or a cache"),
    "checkpoint": Term("Checkpoints", ("#7A5195", ""),
                       "write checkpoints less often, or beside the steps"),
    "validation": Term("Validation", ("#7A5195", "////"),
                       "validate less often, or on fewer samples"),
    "logging": Term("Logging", ("#7A5195", "----"), "log less often, and on no rank alone"),
    "between": Term("Host", ("#7A5195", "xxxx"),
                    "look at what the program does between its steps: callbacks, logging, copies"),
    "persistent": Term("Load imbalance", ("#D55E00", ""),
                       "look at the slow rank and its host: it is late in every step"),
    "alternating": Term("Jitter", ("#E69F00", ""),
                        "look for jitter: other work on the nodes, threads that share cores"),
    IMBALANCE: Term("Load imbalance", ("#D55E00", ""),
                    "look at the ranks' times: one may have slower files"),
    "stalls": Term("Stalls", ("#E69F00", "////"),
                   "look at the steps that stall: checkpoints, garbage collection, file systems"),
    "transfer": Term("Exposed communication", ("#CC79A7", ""),
                     "profile the exchange (docs/guide/profiles.md)"),
    "sharded": Term("Exchange of shards", ("#CC79A7", "----"),
                    "compare `reshard_after_forward: false`, or shards within a node"),
    "tensor": Term("Tensor-parallel exchange", ("#CC79A7", "xxxx"),
                   "keep `tp` within a node, or compare a smaller one"),
    "pipeline": Term("Pipeline wait", ("#CC79A7", "\\\\\\\\"),
                     "compare more micro-batches, or an interleaved schedule"),
    "communication": Term("Exposed communication", ("#CC79A7", ""),
                          "record time stamps of each step: they tell waiting from transfer"),
    "barrier": Term("Barrier", ("#F0E442", ""),
                    "run longer epochs, or look at what ranks do at their ends"),
    OTHER: Term("Other", ("#9aa1ab", "----")),
    OUTSIDE: Term("Time outside of steps", ("#9aa1ab", "////"),
                  "record what lies between steps (docs/guide/time_breakdown.md)"),
    REST: Term("Unattributed", ("#9aa1ab", "")),
}  # fmt: skip
