import errno
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from scalesweep.core import own_files
from scalesweep.core.errors import UserError
from scalesweep.core.files import file_digest, stamp_of
from scalesweep.core.locks import claim, release
from scalesweep.core.own_files import MANIFEST, MARKER
from scalesweep.state.results_folder import check_writable, claim_folder


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A study as working folder, with files of its user."""
    folder = tmp_path / "home" / "study"
    (folder / "config").mkdir(parents=True)
    (folder / "config" / "c.yaml").write_text("campaign: c")
    (folder / "thesis.tex").write_text("mine")
    monkeypatch.chdir(folder)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return folder


def tree(folder: Path) -> set[str]:
    return {str(path) for path in folder.rglob("*")}


def loop(study: Path) -> str:
    Path("a").symlink_to("b")
    Path("b").symlink_to("a")
    return "a"


def dangling(study: Path) -> str:
    Path("link").symlink_to("nowhere/at/all")
    return "link"


def linked(study: Path) -> str:
    Path("here").symlink_to(".")
    return "here"


REFUSED: list[tuple[str | Callable[[Path], str], str]] = [
    (".", "is the working folder: results need a folder of their own, such as results/NAME"),
    ("results/..", "is the working folder"),
    ("..", "contains the working folder"),
    ("/", "contains the working folder"),
    (linked, "is the working folder"),
    ("thesis.tex", "is a file; name a folder"),
    ("thesis.tex/results", "lies below a file, not a folder"),
    (loop, "is a link that leads back to itself"),
    (dangling, "is a link to what does not exist"),
    ("config", "holds files that scalesweep did not make (c.yaml): name a new or an empty folder"),
    ("/proc/self", "holds files that scalesweep did not make"),
    ("a" * 300, "cannot be used: File name too long"),
]


@pytest.mark.parametrize(("name", "why"), REFUSED)
def test_what_is_refused_before_anything_is_written(
    study: Path, name: str | Callable[[Path], str], why: str
) -> None:
    Path("results").mkdir()
    named = name if isinstance(name, str) else name(study)
    before = tree(study)
    for write in (True, False):
        with pytest.raises(UserError) as caught:
            claim_folder(Path(named), "--config results", write)
        assert str(caught.value).startswith("--config results: ") and why in str(caught.value)
        assert "\n" not in str(caught.value)
    assert tree(study) == before


def test_the_home_folder_is_refused(study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/tmp")
    with pytest.raises(UserError, match="is your home folder"):
        claim_folder(Path.home(), "c.yaml: results")


def test_a_folder_is_made_with_a_marker(study: Path) -> None:
    before = tree(study)
    claim_folder(Path("results/new"), "w", write=False)
    assert tree(study) == before
    claim_folder(Path("results/new"), "w")
    assert own_files.is_marked(Path("results/new"))
    # From then on whatever a user puts there is no reason to refuse it.
    Path("results/new/notes.txt").write_text("mine")
    claim_folder(Path("results/new"), "w")
    # Below a link to a folder, too.
    Path("scratch").mkdir()
    Path("linked").symlink_to("scratch")
    claim_folder(Path("linked/r"), "w")
    assert own_files.is_marked(Path("scratch/r"))


@pytest.mark.parametrize("write", [True, False])
def test_what_lies_under_a_name_of_ours_is_refused_in_a_line(study: Path, write: bool) -> None:
    folder = Path("results")
    claim_folder(folder, "w")
    for name in ("runs", "logs", ".outputs", ".state"):
        for lay, why in (
            (lambda path: path.write_text("mine"), "is a file, not a folder: move it away"),
            (lambda path: path.symlink_to("nowhere"), "is a link to no folder: move it away"),
        ):
            lay(folder / name)
            with pytest.raises(UserError, match=f"^results/{name}: {why}"):
                claim_folder(folder, "w", write)
            (folder / name).unlink()
        (folder / name).symlink_to(study)
        claim_folder(folder, "w", write)
        (folder / name).unlink()
    for name in ("report.html", "plan.csv", "summary.parquet"):
        (folder / name).symlink_to(name)
        with pytest.raises(UserError, match=f"^results/{name}: is a link to what does not exist"):
            claim_folder(folder, "w", write)
        (folder / name).unlink()


def test_an_empty_folder_is_taken(study: Path) -> None:
    folder = Path("results")
    (folder / "logs").mkdir(parents=True)
    (folder / "logs" / "plan.log").write_text("of a call that was killed")
    (folder / ".gitignore").write_text("*")
    claim_folder(folder, "w")
    assert own_files.is_marked(folder)
    # Whose it is nothing says, and the next call writes one of this name.
    assert (folder / "logs" / "plan.log.set-aside").exists()
    assert {path.name for path in (folder / "logs").iterdir()} == {"plan.log.set-aside"}


def write(folder: Path, name: str, text: str = "{}") -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("runs/site/toy-r1-0123456789ab/record.json", "{}"),
        ("runs/site/toy-r1-0123456789ab/failure.json", "{}"),
        ("runs/site/toy-r1-0123456789ab/launcher.log", ""),
        ("plan.json", '{"campaign": "c", "experiments": []}'),
        ("plan.csv", "experiment,scaling,run_id,benchmark,site,repeat,position\n"),
        ("campaign.yaml", "# Written by import_logs: the points that were imported.\n"),
        ("sessions/x.parquet", "PAR1"),
    ],
)
def test_a_folder_of_an_earlier_version_is_adopted(study: Path, name: str, text: str) -> None:
    folder = Path("results")
    write(folder, name, text)
    write(folder, "notes/thesis.txt")
    claim_folder(folder, "w")
    assert own_files.is_marked(folder) and (folder / "notes" / "thesis.txt").exists()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("plan.csv", "day,work\n"),
        ("plan.json", "[]"),
        ("report.html", "<title>Mine</title>"),
        ("figures/paper.pdf", "%PDF"),
        ("runs/monday/notes.txt", "five miles"),
        ("logs/diary.txt", "Dear"),
        (".scalesweep", "what is this"),
        (".state/notes.txt", "mine"),
        (".tables.previous/mine.txt", "mine"),
        (".made.json", "[1]"),
        (".made.json", '{"plan.json": "mine"}'),
        (".lock", "my diary"),
        (".report.lock", "my diary"),
        (".doctor", "Who"),
        (".summary.parquet.previous", "mine"),
    ],
)
def test_a_folder_of_a_user_is_refused(study: Path, name: str, text: str) -> None:
    folder = Path("results")
    write(folder, name, text)
    before = tree(study)
    top = name.partition("/")[0]
    with pytest.raises(UserError, match="holds files that scalesweep did not make") as caught:
        claim_folder(folder, "w")
    assert f"({top})" in str(caught.value) and tree(study) == before


def test_results_folders_may_lie_in_one(study: Path) -> None:
    claim_folder(Path("results/imported"), "w")
    write(Path("results/of_before"), "plan.json", '{"campaign": "c", "experiments": []}')
    claim_folder(Path("results"), "w")
    assert own_files.is_marked(Path("results"))


def test_what_an_earlier_version_left_is_known_and_what_was_edited_is_not(study: Path) -> None:
    folder = Path("results")
    for name in ("tables/a/points.csv", "tables/a/runs.csv", "plan.json", "plan.csv"):
        write(folder, name, "experiment,")
    write(folder, "report.html", "<!DOCTYPE html><title>c on s: scaling report</title>")
    made = {name: stamp_of(str(folder / name)) for name in ("tables/a/points.csv", "plan.json")}
    write(folder, ".made.json", json.dumps({**made, "tables/a/runs.csv": "1:1", "gone": "1:1"}))
    digest = file_digest(folder / "plan.csv")
    parts = {"a": {"files": {"a/runs.csv": digest, "a/other.csv": digest}}}
    write(folder, ".tables.previous/index.json", json.dumps({"parts": parts}))
    claim_folder(folder, "w")
    ours = {str(p.relative_to(folder)) for p in folder.rglob("*") if own_files.is_ours(p)}
    assert ours == {
        "tables/a/points.csv", "tables/a/runs.csv", "plan.json", "plan.csv", "report.html",
    }  # fmt: skip


def test_what_an_earlier_version_noted_nothing_of_is_known_unless_it_was_edited(
    study: Path,
) -> None:
    names = ("plan.csv", "figures/index.json", ".jobs.csv.previous")
    for folder, late_s, known in (
        (Path("a"), 5, True),
        (Path("b"), 60, False),
        (Path("c"), -1, False),
    ):
        for name in ("plan.json", *names):
            write(folder, name)
        write(folder, ".made.json", json.dumps({"plan.json": stamp_of(f"{folder}/plan.json")}))
        time_s = (folder / "plan.json").stat().st_mtime
        os.utime(folder / ".made.json", (time_s + 10, time_s + 10))
        for name in names:
            os.utime(folder / name, (time_s + late_s, time_s + late_s))
        claim_folder(folder, "w")
        assert {own_files.is_ours(folder / name) for name in names} == {known}, folder


def test_locks_of_users_are_set_aside(study: Path) -> None:
    claim_folder(Path("r"), "w")
    write(Path("r"), ".lock", "my diary")
    for _ in range(2):
        release(claim(Path("r")))
    assert Path("r/.lock.set-aside").read_text() == "my diary"
    assert sorted(path.name for path in Path("r").glob(".lock*")) == [".lock", ".lock.set-aside"]


def test_a_folder_that_cannot_be_written_is_named(
    study: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(folder: Path) -> None:
        raise PermissionError(13, os.strerror(13), str(folder))

    monkeypatch.setattr(own_files, "mark", refuse)
    with pytest.raises(UserError) as caught:
        claim_folder(Path("r"), "c.yaml: results")
    assert str(caught.value) == "c.yaml: results: r: cannot be used: Permission denied"


def test_marker_and_manifest_are_all_that_is_added_to_a_results_folder(study: Path) -> None:
    claim_folder(Path("r"), "w")
    own_files.publish(Path("r/plan.csv"), "x")
    assert {path.name for path in Path("r").iterdir()} == {MARKER, MANIFEST, "plan.csv"}


def test_a_folder_that_takes_no_log_is_named_before_a_job_starts(
    study: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    claim_folder(Path("r"), "w")
    check_writable(Path("r"))
    assert list(Path("r/logs").iterdir()) == []

    def refuse(**words: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr("tempfile.TemporaryFile", refuse)
    with pytest.raises(UserError, match=r"^r: cannot write to this folder: Read-only file system;"):
        check_writable(Path("r"))
