"""What sentences and tables on predictions share."""

from scalesweep.core.formatting import with_interval
from scalesweep.table.declared import Estimate

# Seconds from which a time is given in a unit, and what that is.
_UNITS = ((36_000.0, 3600.0, "h"), (600.0, 60.0, "min"), (0.0, 1.0, "s"))


def predicted_head(based_on: str, *what: str) -> str:
    """``Predicted from simulated points for batch_size 4, later epochs``: how sentences begin."""
    source = "" if based_on == "measured" else f" from {based_on} points"
    about = ", ".join(part for part in what if part)
    return f"Predicted{source}{f' for {about}' if about else ''}"


def in_time(seconds: Estimate) -> str:
    """A time with its interval in the unit that suits it."""
    size, unit = next((size, unit) for least, size, unit in _UNITS if seconds.value >= least)
    low, high = (None if end is None else end / size for end in (seconds.low, seconds.high))
    return with_interval(seconds.value / size, low, high, unit)
