"""A job of the rule ``run`` as an executor sees it."""


class Stub:
    """Its run and its attempt."""

    def __init__(self, run_id: str = "a", attempt: int = 1) -> None:
        self.name, self.run_id, self.attempt = "run", run_id, attempt
        self.wildcards_dict = {"run_id": run_id}
