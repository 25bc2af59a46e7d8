"""The account of a run's first epoch, which reads its files where later ones have them in memory.

``step_account`` leaves the first of several epochs out of the account of a run. Of programs that
do nothing but read, and meet at the ends of their epochs alone, the first one has an account of its
own, in seconds:

    T = input        the lower median over the ranks of their own time
      + imbalance    max over the ranks of their own time - the above
      + barrier      the end on all ranks - the end on the last one

A rank's own time ends before it waits for others, so what all ranks take longer is no waiting.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from numpy.typing import NDArray

from scalesweep.analysis.step_account import EPOCHS, FIRST, StepAccount, account_of

_TIMES = ("local_times", "global_times", "span_input")


def first_epoch_account(
    samples: Mapping[str, NDArray[Any]], notes: Mapping[str, Any], ranks: int
) -> StepAccount | None:
    """The account of the first of several epochs; None where there is one alone, or the run does
    more than read (``span_input`` is not its ``local_times``)."""
    whole = account_of(samples, notes, ranks)
    if whole is None or whole.form != EPOCHS or len(samples["local_times"]) < 2:
        return None
    first = account_of({n: samples[n][:1] for n in _TIMES if n in samples}, notes, ranks)
    return None if first is None or first.input is None else replace(first, form=FIRST)
