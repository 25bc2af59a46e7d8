"""Keys of --config: each acts on the verb it is given to, or is refused."""

from typing import Any

import pytest

from scalesweep.config.overrides import OVERRIDES, RUN, VERBS, read_options
from scalesweep.core.errors import UserError

VALUES = {
    "profile": "cprofile", "retry": "unsupported", "try": "shapes",
}  # fmt: skip


@pytest.mark.parametrize("key", OVERRIDES)
@pytest.mark.parametrize("verb", VERBS)
def test_a_key_is_read_or_refused_by_each_verb(key: str, verb: str) -> None:
    given, readers = {key: VALUES.get(key, "text")}, OVERRIDES[key].verbs
    if verb in readers:
        assert read_options(given, [verb]) == given
        return
    asked, *named = (
        "`snakemake`" if name == RUN else f"`snakemake {name}`" for name in (verb, *readers)
    )
    with pytest.raises(UserError) as caught:
        read_options(given, [verb])
    line = f"--config {key}: {asked} does not read it; read by: {', '.join(named)}"
    assert str(caught.value) == line


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"nonsense": "x"}, "nonsense: unknown; allowed: campaign, "),
        ({"history": ""}, "history: is empty; leave it out"),
        *(
            ({"results": value}, f"results: Snakemake reads {value!r}, which is no text")
            for value in (7, 1.5e30, True, None, {"a": "b"}, ["a"])
        ),
    ],
)
def test_a_mistake_is_one_line(given: dict[str, Any], told: str) -> None:
    with pytest.raises(UserError) as caught:
        read_options(given)
    assert str(caught.value).startswith(f"--config {told}")


def test_a_key_may_be_for_one_of_several_verbs() -> None:
    assert read_options({"try": "shapes"}, ["plan", "run"]) == {"try": "shapes"}
