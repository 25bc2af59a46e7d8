import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from scalesweep.core import own_files
from scalesweep.core.files import sealed
from scalesweep.core.kept_files import KeptFiles
from scalesweep.core.own_files import MANIFEST, MARKER, SET_ASIDE
from scalesweep.core.stamps import make_way_for_stamp, remove_stamp


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    own_files.mark(tmp_path / "results")
    return tmp_path / "results"


def tree(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): path.read_text()
        for path in folder.rglob("*")
        if path.is_file() and path.name not in (MARKER, MANIFEST)
    }


def test_what_we_made_is_replaced_and_what_others_made_is_kept(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    page = folder / "report.html"
    own_files.publish(page, "first")
    own_files.publish(page, "second")
    assert tree(folder) == {"report.html": "second"} and own_files.is_ours(page)
    assert not caplog.messages
    page.write_text("mine")
    assert not own_files.is_ours(page)
    own_files.publish(page, "third")
    assert tree(folder) == {"report.html": "third", f"report.html{SET_ASIDE}": "mine"}
    assert caplog.messages == [
        f"{page}: is not as scalesweep left it: kept as report.html{SET_ASIDE}"
    ]
    # Each of several, a link and a folder too; what they lead to stays.
    page.unlink()
    (folder / "other.txt").write_text("other")
    page.symlink_to("other.txt")
    own_files.publish(page, "fourth")
    page.unlink()
    page.mkdir()
    (page / "deep.txt").write_text("deep")
    own_files.publish(page, "fifth")
    assert tree(folder) == {
        "report.html": "fifth",
        f"report.html{SET_ASIDE}": "mine",
        f"report.html{SET_ASIDE}-2": "other",
        f"report.html{SET_ASIDE}-3/deep.txt": "deep",
        "other.txt": "other",
    }


def test_only_what_we_made_is_removed(folder: Path) -> None:
    out = folder / "tables"
    for name in ("a/points.csv", "a/scaling.csv", "b/points.csv", "verdicts.csv"):
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        own_files.publish(out / name, name)
    (out / "a" / "thesis.csv").write_text("mine")
    (out / "mine").mkdir()
    (out / "a" / ".scaling.csv.99999999.tmp").write_text("of a killed process")
    (out / "a" / f".scaling.csv.{os.getpid()}.tmp").write_text("of a process at work")
    (out / "b" / "points.csv").write_text("edited")
    own_files.remove_others(out, [out / "a" / "points.csv"])
    assert tree(out) == {
        "a/points.csv": "a/points.csv",
        "a/thesis.csv": "mine",
        f"a/.scaling.csv.{os.getpid()}.tmp": "of a process at work",
        "b/points.csv": "edited",
        "verdicts.csv": "verdicts.csv",
    }
    assert (out / "mine").is_dir()
    assert not own_files.remove(out / "b" / "points.csv") and own_files.remove(out / "verdicts.csv")


def test_a_file_is_known_however_its_writer_ended(folder: Path) -> None:
    """The manifest is written before the file gets its name."""
    code = (
        "import os, sys; from pathlib import Path; from scalesweep.core import own_files\n"
        "replace = os.rename; path = Path(sys.argv[1])\n"
        "with own_files.publishing(path) as temporary: temporary.write_text('new')\n"
        "os.kill(os.getpid(), 9)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(folder / "plan.csv")], check=False)
    assert done.returncode == -9 and own_files.is_ours(folder / "plan.csv")


def test_a_damaged_manifest_loses_nothing(folder: Path) -> None:
    page = folder / "plan.csv"
    own_files.publish(page, "first")
    with (folder / MANIFEST).open("a") as file:
        file.write('["cut')
    own_files.publish(page, "second")
    own_files.publish(folder / "jobs.csv", "jobs")
    assert own_files.is_ours(page) and own_files.is_ours(folder / "jobs.csv")
    (folder / MANIFEST).write_bytes(b"\xff\x00\n[1]\n{}\n")
    own_files.publish(page, "third")
    assert tree(folder) == {
        "plan.csv": "third", f"plan.csv{SET_ASIDE}": "second", "jobs.csv": "jobs",
    }  # fmt: skip


def test_a_long_manifest_is_shortened(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_files, "_LONG", 1000)
    for number in range(20):
        own_files.publish(folder / "plan.csv", str(number))
        own_files.publish(folder / f"{number}.csv", str(number))
        (folder / f"{number}.csv").unlink()
    own_files.shorten_manifest(folder)
    lines = (folder / MANIFEST).read_text().split("\n")
    assert [json.loads(line)[1] for line in lines if line] == ["plan.csv"] * 3
    assert own_files.is_ours(folder / "plan.csv")
    own_files.publish(folder / "plan.csv", "more")
    assert own_files.is_ours(folder / "plan.csv")


def test_files_that_are_put_back_leave_others_alone(folder: Path) -> None:
    out = folder / "tables"
    (out / "a").mkdir(parents=True)
    own_files.publish(out / "a" / "x.csv", "ours")
    kept = KeptFiles(out, "code")
    kept.add("a", "key", [out / "a" / "x.csv"])
    kept.save()
    (out / "a" / "x.csv").unlink()  # in place, the kept name would change with it
    (out / "a" / "x.csv").write_text("mine")
    again = KeptFiles(out, "code")
    assert again.take("a", "key")
    again.link_to(folder / ".outputs")
    assert tree(out) == {"a/x.csv": "ours", f"a/x.csv{SET_ASIDE}": "mine"}
    assert (folder / ".outputs" / "a" / "x.csv").samefile(out / "a" / "x.csv")


def test_a_folder_without_a_marker_is_left_to_its_caller(tmp_path: Path) -> None:
    own_files.publish(tmp_path / "x", "first")
    (tmp_path / "x").write_text("edited")
    own_files.publish(tmp_path / "x", "second")
    assert tree(tmp_path) == {"x": "second"} and not own_files.is_ours(tmp_path / "x")


def test_before_a_folder_is_removed_what_is_not_ours_leaves_it(folder: Path) -> None:
    out, links = folder / "tables", folder / ".outputs" / "tables"
    for name in ("a/points.csv", "a/scaling.csv", "a/copied.csv"):
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        (links / name).parent.mkdir(parents=True, exist_ok=True)
        own_files.publish(out / name, name)
        (links / name).hardlink_to(out / name)
    # A copy is as good; edited in place, the table itself stays.
    (links / "a" / "copied.csv").unlink()
    (links / "a" / "copied.csv").write_text("a/copied.csv")
    (out / "a" / "points.csv").write_text("edited under both names")
    (links / ".snakemake_timestamp").touch()
    own_files.save_others(links, out)
    assert not (folder / ".outputs" / "tables.set-aside").exists()
    (links / "a" / "scaling.csv").unlink()
    (links / "a" / "scaling.csv").write_text("mine")
    (links / "mine").symlink_to(folder)
    for _ in range(2):
        (links / "thesis.csv").write_text("thesis")
        own_files.save_others(links, out)
    saved = folder / ".outputs" / "tables.set-aside"
    assert (saved / "mine").is_symlink() and (saved / "mine").unlink() is None
    assert tree(saved) == {
        "a/scaling.csv": "mine", "thesis.csv": "thesis", "thesis.csv-2": "thesis",
    }  # fmt: skip
    assert {path.name for path in (links / "a").iterdir()} == {"points.csv", "copied.csv"}


def test_kept_files_make_no_way_into_those_of_others(folder: Path) -> None:
    out = folder / "tables"

    def make(text: str, name: str) -> None:
        kept = KeptFiles(out, "code")
        (out / "a").mkdir(parents=True, exist_ok=True)
        own_files.publish(out / "a" / name, text)
        kept.add("a", text, [out / "a" / name])
        kept.save()

    make("first", "points.csv")
    hidden = folder / ".tables.previous"
    (hidden / "thesis.csv").write_text("thesis")
    (hidden / "a" / "points.csv").unlink()
    (hidden / "a" / "points.csv").write_text("mine")
    (hidden / "index.json").write_text("{}")
    make("second", "points.csv")
    make("third", "scaling.csv")
    index = json.loads((hidden / "index.json").read_text())
    assert list(index["parts"]["a"]["files"]) == ["a/scaling.csv"]
    (hidden / "index.json").unlink()
    assert tree(hidden) == {
        "thesis.csv": "thesis", f"a/points.csv{SET_ASIDE}": "mine", "a/scaling.csv": "third",
        f"index.json{SET_ASIDE}": "{}",
    }  # fmt: skip


def test_a_stamp_is_no_other_file(folder: Path) -> None:
    names = ("0123abcd", "look-ab-1", "adopted-12", "notes.txt", "abc")
    texts = ("", "1700000000\n", "mine", "12", "1" * 40)
    for name, text in zip(names, texts, strict=True):
        (folder / name).write_text(text)
        make_way_for_stamp(folder / name)
        remove_stamp(folder / name)
    assert tree(folder) == {
        f"adopted-12{SET_ASIDE}": "mine", "notes.txt": "12", f"abc{SET_ASIDE}": "1" * 40,
    }  # fmt: skip


def test_a_sealed_file_takes_no_other_ones_place(folder: Path) -> None:
    path = folder / ".index.json"
    for number in range(2):
        own_files.replace_sealed(path, sealed({"n": number}).encode())
    assert list(tree(folder)) == [".index.json"]
    path.write_text('{"n": 1}')
    own_files.replace_sealed(path, sealed({"n": 2}).encode())
    assert own_files.is_sealed(path)
    assert tree(folder)[f".index.json{SET_ASIDE}"] == '{"n": 1}'
