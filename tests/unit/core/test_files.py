"""Files are written by rename, and a seal finds every flipped bit."""

import errno
import json
from pathlib import Path

import pytest

from scalesweep.core.files import (
    is_whole,
    natural_order,
    replacing,
    seal,
    sealed,
    unseal,
    write_atomic,
)


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


@pytest.mark.parametrize("content", [b"", b"PAR1\x00\xff", b'{"a": 1', b', "digest": "x"}\n'])
def test_a_seal_finds_every_flipped_bit(content: bytes) -> None:
    whole = seal(content)
    assert unseal(whole) == content
    for place in range(len(whole)):
        for bit in range(8):
            changed = bytearray(whole)
            changed[place] ^= 1 << bit
            assert unseal(bytes(changed)) is None
    for length in range(len(whole)):
        assert unseal(whole[:length]) is None


def test_sealed_json_is_json(tmp_path: Path) -> None:
    value = {"é": [1.5, None], "n": {}}
    for indent in (None, 1):
        text = sealed(value, indent)
        assert {**json.loads(text), "digest": ""} == {**value, "digest": ""}
        assert is_whole(text.encode(), needed=True)
        assert not is_whole(text.replace("1.5", "1.6").encode())
    assert is_whole(b'{"a": 1}') and not is_whole(b'{"a": 1}', needed=True)


def test_numbers_in_names_are_in_order() -> None:
    names = ["run2/b", "run02/c", "run10/a", "run²/a", "a", "run1/x12", "run1/x3", f"n{'9' * 200}"]
    found = [str(path) for path in sorted(map(Path, names), key=natural_order)]
    assert found == [
        "a", f"n{'9' * 200}", "run1/x3", "run1/x12", "run02/c", "run2/b", "run10/a", "run²/a",
    ]  # fmt: skip
