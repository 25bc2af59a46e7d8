"""Keys of --config: each acts on the verb it is given to, or is refused."""

from typing import Any

import pytest

from scalesweep.config.overrides import OVERRIDES, VERBS, read_options
from scalesweep.core.errors import UserError

VALUES = {"profile": "cprofile", "retry": "unsupported", "try": "shapes"}


@pytest.mark.parametrize("key", OVERRIDES)
def test_a_key_is_read_or_refused_by_each_verb(key: str) -> None:
    given = {key: VALUES.get(key, "text")}
    for verb in VERBS:
        if verb in OVERRIDES[key].verbs:
            assert read_options(given, [verb]) == given
            continue
        with pytest.raises(UserError, match=f"^--config {key}: .* does not read it; read by: `"):
            read_options(given, [verb])
    assert read_options(given, VERBS) == given


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"nonsense": "x"}, "nonsense: unknown; allowed: campaign, "),
        ({"history": ""}, "history: is empty; leave it out"),
        ({"try": "shape"}, "try=shape: did you mean shapes? allowed: shapes"),
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
