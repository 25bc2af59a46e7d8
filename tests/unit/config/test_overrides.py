"""Keys of --config: each acts on the verb it is given to, or is refused."""

import pytest

from scalesweep.config.overrides import OVERRIDES, RUN, VERBS, read_options
from scalesweep.core.errors import UserError

VALUES = {
    "check": "full", "fail": "regression", "pending": "ignore", "profile": "cprofile",
    "retry": "unsupported", "try": "shapes",
}  # fmt: skip


@pytest.mark.parametrize("key", OVERRIDES)
def test_a_key_is_read_or_refused_by_each_verb(key: str) -> None:
    given, readers = {key: VALUES.get(key, "5")}, OVERRIDES[key].verbs
    for verb in VERBS:
        if verb in readers:
            assert read_options(given, [verb]) == given
            continue
        with pytest.raises(UserError) as caught:
            read_options(given, [verb])
        line = str(caught.value)
        assert line.startswith(f"--config {key}: ") and "does not read it" in line
        named = ["`snakemake`" if reader == RUN else f"`snakemake {reader}`" for reader in readers]
        assert line.partition("read by: ")[2].startswith(", ".join(named))


def test_a_key_may_be_for_one_of_several_verbs() -> None:
    assert read_options({"fail": "regression"}, ["plan", "history"]) == {"fail": "regression"}


def test_a_budget_of_a_run_is_said_to_belong_to_its_campaign() -> None:
    with pytest.raises(UserError, match=r"in a campaign write `budget_node_hours: 50`"):
        read_options({"budget_node_hours": "50"})
