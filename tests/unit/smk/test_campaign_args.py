"""What commands are told to write to: refused in one line that says what named it."""

from pathlib import Path

import pytest

from scalesweep.core.errors import UserError
from scalesweep.core.paths import REPO
from scalesweep.smk.campaign_args import OPTION, read_campaign

DEMO = REPO / "config" / "config.yaml"


def refusal(**options: str) -> str:
    """Why the demo is not read with these options of a command."""
    with pytest.raises(UserError) as caught:
        read_campaign(DEMO, options, in_slurm=False, write=False, prefix=OPTION)
    return str(caught.value)


@pytest.mark.parametrize("key", ["results", "history"])
def test_what_was_typed_is_blamed_and_not_the_campaign(key: str, tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "notes.txt").write_text("mine")
    results = {"results": f"{tmp_path}/r"}
    assert refusal(**{**results, key: f"{folder}"}).startswith(
        f"--{key}: {folder}: holds files that"
    )
