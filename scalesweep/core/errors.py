"""The one error type for what a user can fix."""


class UserError(Exception):
    """A mistake in the user's input: one line saying what is wrong, where, and what is allowed.

    Command lines print it as ``error: <message>`` and exit with 1, without a traceback.
    """

    def __init__(self, message: str) -> None:
        super().__init__(" ".join(message.split()))
