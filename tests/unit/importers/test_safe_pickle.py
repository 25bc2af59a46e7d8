"""The reader of plain pickles: plain data comes through, nothing else, and nothing runs."""

import contextlib
import os
import pickle
import pickletools
from collections import OrderedDict
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scalesweep.core.errors import UserError
from scalesweep.importers.safe_pickle import MAX_BYTES, load_plain

CONFIG = {"data": {"n_train": 256, "shard": False, "x": [1, (2.5, None)]}, "n": np.int64(3)}

plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
    | st.binary(max_size=1000),
    lambda inner: st.lists(inner) | st.lists(inner).map(tuple)
    | st.dictionaries(st.text() | st.integers(), inner)
    | st.dictionaries(st.text(), inner).map(OrderedDict)
    | st.sets(st.integers() | st.text()),
    max_leaves=20,
)  # fmt: skip


@given(plain, st.integers(0, pickle.HIGHEST_PROTOCOL))
def test_plain_data_survives_every_protocol(value: Any, protocol: int) -> None:
    assert load_plain(pickle.dumps(value, protocol), "f") == value


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_numpy_numbers_become_pythons(protocol: int) -> None:
    values = [np.int64(-5), np.float32(0.5), np.uint8(200), np.bool_(True), np.float64(1e300)]
    found = load_plain(pickle.dumps(values, protocol), "f")
    assert found == [-5, 0.5, 200, True, 1e300]
    assert [type(v) for v in found] == [int, float, int, bool, float]


def test_shared_and_circular_data() -> None:
    shared: list[Any] = [1]
    shared.append(shared)
    found = load_plain(pickle.dumps({"a": shared, "b": shared}), "f")
    assert found["a"] is found["b"] and found["a"][1] is found["a"]


class _Attack:
    """Pickles as a call of anything."""

    def __init__(self, function: Any, *arguments: Any) -> None:
        self.call = (function, arguments)

    def __reduce__(self) -> Any:
        return self.call


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_calls_are_refused_by_name_and_never_made(tmp_path: Path, protocol: int) -> None:
    target = tmp_path / "executed"
    for function, argument, name in (
        (os.system, f"touch {target}", "system"),
        (os.mkdir, str(target), "mkdir"),
        (eval, f"open({str(target)!r}, 'w')", "eval"),
        (getattr, target, "getattr"),
    ):
        with pytest.raises(UserError, match=f"^f: refused.*{name}"):
            load_plain(pickle.dumps({"data": [_Attack(function, argument)]}, protocol), "f")
    assert not target.exists()


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (date(2020, 8, 6), "datetime.date"),
        (Path("x"), "pathlib.PosixPath"),
        (np.arange(3), "numpy"),
        (np.datetime64("2020-01-01"), "a NumPy type other than a number's"),
        (1 + 2j, "builtins.complex"),
        (len, "builtins.len"),
        (OrderedDict, "collections.OrderedDict"),
        ([set], "builtins.set"),
        ({(1, 2): 3}, "a dict key that is not a scalar"),
        ({frozenset([(1,)])}, "a set of something other than scalars"),
    ],
)
def test_other_objects_are_refused_by_name(value: Any, name: str) -> None:
    with pytest.raises(UserError, match=r"^f: refused, it holds") as caught:
        load_plain(pickle.dumps(value), "f")
    assert name in str(caught.value)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b".",
        b"N",
        b"(.",
        b"NN.",
        b"h\x05.",
        b"\x80\x04\x82\x01.",  # extension registry
        b"\x80\x04Vid\nQ.",  # persistent id
        b"\x80\x05\x96" + (2**40).to_bytes(8, "little") + b".",  # a bytearray of a terabyte
        b"Nr\xff\xff\xff\xff.",  # memo entry of four thousand millions: fine in a dict
        b"I" + b"9" * 10_000 + b"\n.",
        b"cbuiltins\nset\n)R.",
        b"cbuiltins\nset\n(I1\nI2\ntR.",
        b"cbuiltins\nbytes\nI1000000000000\n\x85R.",
        b"ccollections\nOrderedDict\nI5\n\x85R.",
        b"ccollections\nOrderedDict\n}b.",
        b"cnumpy\ndtype\n(S'O'\ntR.",
        b"(icollections\nOrderedDict\n.",
        b"]" * 20_000 + b".",
        b")" + b"\x85" * 20_000 + b".",
        b"}" + b")" + b"\x85" * 9_000 + b"Ns.",
        b"(" * 9_000 + b".",
        b"N" * (MAX_BYTES + 1),
    ],
)  # fmt: skip
def test_hostile_pickles_end_in_one_line(content: bytes) -> None:
    try:
        assert load_plain(content, "f") is None or content.startswith(b"cbuiltins")
    except UserError as error:
        assert str(error).startswith("f: ")
        assert len(str(error)) < 300


def test_a_tuple_that_takes_forever_to_hash() -> None:
    content = b")" + b"2\x86" * 100 + b"\x94}\x94h\x00Ns."
    with pytest.raises(UserError, match="not a scalar"):
        load_plain(content, "f")


_OPCODES = [opcode.code.encode("latin1") for opcode in pickletools.opcodes]
_PIECES = st.sampled_from([*_OPCODES, b"cos\nsystem\n", b"ccollections\nOrderedDict\n",
                           b"cnumpy\ndtype\n", b"\x8c\x02os", b"\x8c\x06system", b"I1\n",
                           b"S'f8'\n", b"K\x05", b"\x00", b"q\x00", b"h\x00"])  # fmt: skip


@given(st.binary(max_size=300) | st.lists(_PIECES, max_size=60).map(b"".join))
@settings(max_examples=600)
def test_no_bytes_raise_anything_but_a_user_error(content: bytes) -> None:
    for tail in (b"", b"."):
        try:
            load_plain(content + tail, "f")
        except UserError as error:
            assert str(error).startswith("f: ")


@given(st.data())
def test_damaged_configurations_raise_nothing_else(data: st.DataObject) -> None:
    content = bytearray(pickle.dumps(CONFIG, data.draw(st.integers(0, 5))))
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(UserError):
        load_plain(bytes(content), "f")
