"""A mistake in a file of YAML is one line with file, key and what is allowed (mistakes.yaml)."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from scalesweep.config.campaign import Campaign
from scalesweep.core.errors import UserError

TABLE = yaml.safe_load(Path(__file__).with_name("mistakes.yaml").read_text())


@pytest.mark.parametrize(
    ("kind", "case"), [(kind, case) for kind, cases in TABLE.items() for case in cases], ids=repr
)
def test_a_mistake_is_one_line(
    campaign_of: Callable[..., Campaign], kind: str, case: dict[str, Any]
) -> None:
    bodies = {"experiment": (case["set"],), "campaign": ("repeats: 1", f"{case['set']}\n")}
    with pytest.raises(UserError) as error:
        campaign_of(*bodies[kind])
    message = str(error.value)
    assert case["line"] in message and "campaign.yaml" in message and "\n" not in message
