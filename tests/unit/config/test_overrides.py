"""Keys of --config: each acts on the verb it is given to, or is refused."""

import re
from typing import Any

import pytest

from scalesweep.commands.interface import COMMANDS, parser_of
from scalesweep.config.overrides import _OF_COMMANDS, MOVED, OVERRIDES, RUN, VERBS, read_options
from scalesweep.core.errors import UserError

VALUES = {
    "check": "full", "pending": "ignore", "profile": "cprofile", "retry": "unsupported",
    "try": "shapes",
}  # fmt: skip


@pytest.mark.parametrize("key", [*OVERRIDES, *_OF_COMMANDS, "nonsense"])
@pytest.mark.parametrize("verb", VERBS)
def test_a_key_is_read_or_refused_by_each_verb(key: str, verb: str) -> None:
    given, readers = (
        {key: VALUES.get(key, "text")},
        OVERRIDES[key].verbs if key in OVERRIDES else (),
    )
    if verb in readers:
        assert read_options(given, [verb]) == given
        return
    with pytest.raises(UserError) as caught:
        read_options(given, [verb])
    line = str(caught.value)
    if key == "nonsense":
        assert line.startswith("--config nonsense: unknown; allowed: campaign, ")
        return
    asked = "`snakemake`" if verb == RUN else f"`snakemake {verb}`"
    assert line.startswith(f"--config {key}: {asked} does not read it; read by: ")
    named = line.partition("read by: ")[2]
    if key in OVERRIDES:
        assert named == ", ".join(
            "`snakemake`" if r == RUN else f"`snakemake {r}`" for r in readers
        )
    for command in re.findall("`scalesweep (.*?)`", named):
        name, *words = command.split()
        options = parser_of(name).options()
        assert all(word in options for word in words if word.startswith("-"))


def test_a_key_may_be_for_one_of_several_verbs() -> None:
    assert read_options({"try": "shapes"}, ["plan", "run"]) == {"try": "shapes"}


def test_a_budget_of_a_run_is_said_to_belong_to_its_campaign() -> None:
    with pytest.raises(UserError, match=r"in a campaign write `budget: \{node_hours: 50\}`"):
        read_options({"budget_node_hours": 50})


@pytest.mark.parametrize("value", [7, 1.5e30, True, None, {"a": "b"}, ["a"]])
def test_what_snakemake_does_not_read_as_a_text_is_refused(value: Any) -> None:
    with pytest.raises(UserError, match=r"--config results: Snakemake reads .*, which is no text"):
        read_options({"results": value})


def test_an_empty_value_is_refused() -> None:
    with pytest.raises(UserError, match="--config history: is empty; leave it out"):
        read_options({"history": ""})


def test_what_was_a_target_names_a_command() -> None:
    for command in MOVED.values():
        assert command.split()[0] in COMMANDS
