"""A results folder is new, empty or ours; anything else is refused in one line."""

from pathlib import Path

import pytest

from scalesweep.core.errors import UserError
from scalesweep.core.paths import MARKER
from scalesweep.state.results_folder import claim_folder, is_marked
from tests.fakes.folder_tree import tree


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A study as working folder, with files of its user."""
    for name in ("config/c.yaml", "thesis.tex", "runs/monday/notes.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("mine")
    monkeypatch.chdir(tmp_path)
    return tmp_path


REFUSED = [
    (".", "holds files that scalesweep did not make (config, runs and thesis.tex): name a new"),
    ("thesis.tex", "cannot be used: Not a directory"),
    ("config", "holds files that scalesweep did not make (c.yaml): name a new or an empty folder"),
]


@pytest.mark.parametrize(("name", "why"), REFUSED)
def test_what_is_refused_before_anything_is_written(study: Path, name: str, why: str) -> None:
    before = tree(study)
    for write in (True, False):
        with pytest.raises(UserError) as caught:
            claim_folder(Path(name), "--config results", write)
        said = str(caught.value)
        assert said.startswith(f"--config results: {name}: ") and why in said and "\n" not in said
    assert tree(study) == before


def test_a_folder_is_made_with_a_marker_and_is_ours_from_then_on(study: Path) -> None:
    before = tree(study)
    folder = Path("results/new")
    claim_folder(folder, "w", write=False)
    assert tree(study) == before
    claim_folder(folder, "w")
    assert [path.name for path in folder.iterdir()] == [MARKER]
    (folder / "notes.txt").write_text("mine")
    claim_folder(folder, "w")
    # It hinders no folder around it; neither do hidden files, and logs of a call that was refused.
    (Path("results") / ".gitignore").write_text("*")
    (Path("results") / "logs").mkdir()
    claim_folder(Path("results"), "w")
    assert is_marked(Path("results"))
    # A link to a folder is as good as one.
    Path("scratch").mkdir()
    Path("linked").symlink_to("scratch")
    claim_folder(Path("linked/r"), "w")
    assert is_marked(Path("scratch/r"))


def test_a_campaign_that_names_no_folder_takes_none_of_another(study: Path) -> None:
    folder, first, second = Path("results"), Path("config/c.yaml"), Path("config/d.yaml")
    second.write_text("mine")
    for _ in range(2):
        claim_folder(folder, "w", campaign=first)
    with pytest.raises(UserError, match=rf"^{second}: results: results holds the results of .*c.y"):
        claim_folder(folder, "w", campaign=second)
    claim_folder(folder, "w")  # by name
    (folder / "advice.yaml").write_text("ours")
    claim_folder(folder, "w", campaign=folder / "advice.yaml")
    first.unlink()  # renamed
    claim_folder(folder, "w", campaign=second)
