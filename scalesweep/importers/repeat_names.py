"""Names of files and folders without what numbers a repeat in them."""

import re

# Parts of a name that number repeats, jobs or dates.
_REPEAT = re.compile(
    r"(?<![a-z])(?:run|repeat|repetition|rep|trial|try|attempt|seed|job|jobid)[-_. ]?\d+"
    r"|(?<!\d)20\d\d[-_.]\d\d[-_.]\d\d(?:[-_.T ]\d\d[-_.:]\d\d(?:[-_.:]\d\d)?)?(?!\d)"
    r"|^\d+$",
    re.IGNORECASE | re.ASCII,
)


def plain_name(name: str) -> str:
    """A name without the number of a run, repeat, trial, attempt, seed or job, and without a date;
    other numbers stay, as they may say what was set (fp16, n2, resnet_50)."""
    return _REPEAT.sub("", name).strip("-_. ").lower()
