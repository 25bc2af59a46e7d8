"""Keys of --config."""

from typing import Any

import pytest

from scalesweep.config.overrides import read_options
from scalesweep.core.errors import UserError


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
