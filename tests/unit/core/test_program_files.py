"""What a record says of a program's files."""

from pathlib import Path

import pytest

from scalesweep.core import program_files
from scalesweep.core.files import file_digest
from scalesweep.core.program_files import described_file


def test_a_file_is_known_by_its_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "train.py"
    path.write_text("print(1)\n")
    assert described_file(path) == {"path": str(path), "bytes": 9, "blake2b": file_digest(path)}
    monkeypatch.setattr(program_files, "MAX_BYTES", 8)
    assert described_file(path) == {"path": str(path), "bytes": 9, "blake2b": None}
    for nothing in (tmp_path / "none", Path("a\0b"), Path("x" * 5000), Path("/dev/tty")):
        assert described_file(nothing) == {"path": str(nothing), "bytes": None, "blake2b": None}


def test_a_folder_is_known_by_its_modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a" / "__pycache__").mkdir(parents=True)
    (tmp_path / ".venv").mkdir()
    (tmp_path / "a" / "b.py").write_text("1")
    first = described_file(tmp_path)
    for other in ("a/notes.txt", "a/__pycache__/c.py", ".venv/d.py"):
        (tmp_path / other).write_text("2")
    assert described_file(tmp_path) == first and first["bytes"] == 1
    (tmp_path / "a" / "b.py").rename(tmp_path / "b.py")
    assert described_file(tmp_path)["blake2b"] not in (None, first["blake2b"])
    monkeypatch.setattr(program_files, "MAX_FILES", 0)
    assert described_file(tmp_path)["blake2b"] is None
