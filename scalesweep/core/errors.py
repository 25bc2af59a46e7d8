"""The one error type for what a user can fix."""

from collections.abc import Iterable, Sequence

from scalesweep.core.visible import visible


class UserError(Exception):
    """Mistakes in the user's input: a line each saying what is wrong, where, and what is allowed.

    Command lines print it as ``error: <message>`` and exit with 1, without a traceback.
    """

    def __init__(self, *messages: str) -> None:
        """A mistake, or several at once, each said once."""
        self.messages = list(dict.fromkeys(visible(" ".join(it.split())) for it in messages))
        super().__init__("\nerror: ".join(self.messages))


def choices(given: object, allowed: Iterable[object]) -> str:
    """What is allowed in place of ``given``: the likely one first, then all in their order."""
    names = [str(name) for name in allowed]
    return f"{did_you_mean(given, names)}allowed: {', '.join(names) or 'none'}"


def did_you_mean(given: object, allowed: Sequence[str]) -> str:
    """``did you mean NAME? `` for the allowed name that begins with ``given``, else the most
    similar one, or nothing."""
    import difflib  # on use: nearly no call gets here

    text = str(given)
    near = [it for it in allowed if len(text) > 2 and it.startswith(text)]
    near = near or difflib.get_close_matches(text, allowed, n=1, cutoff=0.7)
    return f"did you mean {near[0]}? " if near else ""
