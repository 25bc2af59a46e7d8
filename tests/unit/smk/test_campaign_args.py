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


def test_a_history_in_the_results_folder_is_refused(tmp_path: Path) -> None:
    """Both have `tables`: the next report would replace the history's."""
    folder, link = tmp_path / "results", tmp_path / "link"
    folder.mkdir()
    link.symlink_to(folder)
    said = refusal(results=f"{folder}", history=f"{link}")
    assert said == "--history: it is the results folder; name one of its own"
