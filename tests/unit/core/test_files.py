"""Files are written by rename."""

import errno
from pathlib import Path

import pytest

from scalesweep.core.files import replacing, write_atomic


@pytest.mark.parametrize("durable", [True, False])
@pytest.mark.parametrize("content", ["é\n", b"\xff\x00"])
def test_a_file_is_replaced_whole(tmp_path: Path, content: str | bytes, durable: bool) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    write_atomic(path, content, durable)
    assert path.read_bytes() == (content.encode() if isinstance(content, str) else content)
    assert list(tmp_path.iterdir()) == [path]


def test_the_old_file_stays_where_the_new_one_fails(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    with pytest.raises(OSError, match="No space") as error, replacing(path) as temporary:
        temporary.write_text("a part")
        assert path.read_text() == "old"
        raise OSError(errno.ENOSPC, "No space left on device")
    assert error.value.filename == str(path)
    with pytest.raises(KeyboardInterrupt), replacing(path) as temporary:
        raise KeyboardInterrupt
    assert list(tmp_path.iterdir()) == [path] and path.read_text() == "old"
