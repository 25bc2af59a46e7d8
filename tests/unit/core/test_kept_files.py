"""Files kept from one call of a step to the next: taken only when whole and made of the same."""

import json
import math
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from scalesweep.core import kept_files
from scalesweep.core.kept_files import INDEX, KeptFiles, code_digest


def make(out: Path, parts: dict[str, tuple[str, str]], made_by: str = "code") -> list[str]:
    """One call of a step that writes ``{part: (key, content)}``; which parts it had to make.

    Like Snakemake it deletes the output first.
    """
    shutil.rmtree(out, ignore_errors=True)
    kept = KeptFiles(out, made_by)
    made = []
    for part, (key, content) in parts.items():
        if not kept.take(part, key):
            path = out / part / "file.txt"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.unlink(missing_ok=True)
            path.write_text(content)
            kept.add(part, key, [path], {"said": content})
            made.append(part)
        assert kept.files(part) == [out / part / "file.txt"]
        assert (out / part / "file.txt").read_text() == content
    kept.save()
    return made


def test_parts_are_taken_until_their_key_changes(tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert make(out, {"a": ("1", "A"), "b": ("1", "B")}) == ["a", "b"]
    assert make(out, {"a": ("1", "A"), "b": ("1", "B")}) == []
    assert make(out, {"a": ("1", "A"), "b": ("2", "C")}) == ["b"]
    assert make(out, {"a": ("1", "A"), "b": ("2", "C")}, "other code") == ["a", "b"]
    assert KeptFiles(out, "other code").note("b") == {"said": "C"}
    assert KeptFiles(out, "code").note("b") is None


def test_parts_that_are_gone_are_not_kept(tmp_path: Path) -> None:
    out, kept = tmp_path / "out", tmp_path / ".out.previous"
    make(out, {"a": ("1", "A"), "b": ("1", "B")})
    make(out, {"a": ("1", "A")})
    assert sorted(str(path.relative_to(kept)) for path in kept.rglob("*")) == [
        "a", "a/file.txt", INDEX,
    ]  # fmt: skip
    assert make(out, {"a": ("1", "A"), "b": ("1", "B")}) == ["b"]


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"{}", b'{"format": 1}', None])
def test_an_index_in_doubt_keeps_nothing(tmp_path: Path, content: bytes | None) -> None:
    out, index = tmp_path / "out", tmp_path / ".out.previous" / INDEX
    make(out, {"a": ("1", "A")})
    if content is None:  # a flipped letter in a note
        content = index.read_bytes().replace(b'"said"', b'"sald"')
    index.write_bytes(content)
    assert make(out, {"a": ("1", "A")}) == ["a"]
    assert make(out, {"a": ("1", "A")}) == []


def test_an_index_without_a_seal_keeps_nothing(tmp_path: Path) -> None:
    out, index = tmp_path / "out", tmp_path / ".out.previous" / INDEX
    make(out, {"a": ("1", "A")})
    content = json.loads(index.read_bytes())
    del content["digest"]
    index.write_text(json.dumps(content))
    assert make(out, {"a": ("1", "A")}) == ["a"]


@pytest.mark.parametrize("where", ["out/a/file.txt", ".out.previous/a/file.txt"])
def test_a_file_that_was_edited_is_made_again(tmp_path: Path, where: str) -> None:
    out = tmp_path / "out"
    make(out, {"a": ("1", "A"), "b": ("1", "B")})
    status = (tmp_path / where).stat()
    (tmp_path / where).write_text("X")  # in place: both names are of one file
    os.utime(tmp_path / where, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert make(out, {"a": ("1", "A"), "b": ("1", "B")}) == ["a"]
    assert make(out, {"a": ("1", "A"), "b": ("1", "B")}) == []
    (tmp_path / ".out.previous" / "b" / "file.txt").unlink()
    assert make(out, {"a": ("1", "A"), "b": ("1", "B")}) == ["b"]


def test_copies_where_there_are_no_hard_links(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "link", refuse)
    out = tmp_path / "out"
    make(out, {"a": ("1", "A")})
    assert make(out, {"a": ("1", "A")}) == []
    (out / "a" / "file.txt").write_text("X")
    assert make(out, {"a": ("1", "A")}) == []


def test_an_output_that_was_not_deleted_is_replaced(tmp_path: Path) -> None:
    out = tmp_path / "out"
    make(out, {"a": ("1", "A")})
    kept = KeptFiles(out, "code")
    assert kept.take("a", "1")  # the same file under both names
    (out / "a" / "file.txt").unlink()
    (out / "a" / "file.txt").write_text("X")
    assert kept.restore("a/file.txt")
    assert [path.name for path in (out / "a").iterdir()] == ["file.txt"]
    assert (out / "a" / "file.txt").read_text() == "A"


def test_where_nothing_can_be_kept_the_step_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(kept_files, "write_atomic", full)
    out = tmp_path / "out"
    assert make(out, {"a": ("1", "A")}) == ["a"]
    assert make(out, {"a": ("1", "A")}) == ["a"]


def test_notes_come_back_as_they_were_or_not_at_all(tmp_path: Path) -> None:
    notes = {"nan": [math.nan, 1, 1.0, True], "tuple": (1, 2), "object": object(), "number": {1: 2}}
    kept = KeptFiles(tmp_path / "out", "code")
    for name, note in notes.items():
        kept.add(name, "1", [], note)
    kept.save()
    kept = KeptFiles(tmp_path / "out", "code")
    assert [name for name in notes if kept.take(name, "1")] == ["nan"]
    assert repr(kept.note("nan")) == repr(notes["nan"])


def test_a_part_without_a_key_is_never_taken(tmp_path: Path) -> None:
    out = tmp_path / "out"
    make(out, {"a": ("", "A")})
    assert make(out, {"a": ("", "A")}) == ["a"]


def test_code_has_a_digest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "scalesweep").mkdir()
    source = tmp_path / "scalesweep" / "a.py"
    source.write_text("1")
    monkeypatch.setattr(kept_files, "PACKAGE", tmp_path / "scalesweep")
    monkeypatch.setattr(kept_files, "RESOURCES", tmp_path / "scalesweep")

    def digest(*names: str) -> str:
        code_digest.cache_clear()
        return code_digest(*names)

    try:
        before = digest("numpy")
        assert digest("numpy") == before != digest("pandas")
        source.write_text("2")
        assert digest("numpy") != before
        source.write_text("1")
        (tmp_path / "scalesweep" / "b.py").touch()
        assert digest("numpy") != before
    finally:
        code_digest.cache_clear()
