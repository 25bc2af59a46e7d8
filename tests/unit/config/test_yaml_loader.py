"""YAML reading: strict, safe, bounded."""

import os
import re
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scalesweep.config.yaml_loader import load_yaml
from scalesweep.core.errors import UserError
from scalesweep.core.expressions import Expression

Write = Callable[[str], Path]


def test_scalars_follow_yaml_1_2(write_yaml: Write) -> None:
    path = write_yaml("[off, no, yes, true, 1e-3, 1:30, 0x, 12, -1.5, null, ~]")
    expected = ["off", "no", "yes", True, 0.001, "1:30", "0x", 12, -1.5, None, None]
    assert load_yaml(path) == expected


def test_whole_numbers_of_other_bases_are_those_of_yaml_1_2(write_yaml: Write) -> None:
    path = write_yaml("[0o10, 0o777, 0x1F, 0xff, 0o8, 0xg, -0o1, 0b1, 0O7]")
    assert load_yaml(path) == [8, 511, 31, 255, "0o8", "0xg", "-0o1", "0b1", "0O7"]


def test_merge_keys_work(write_yaml: Write) -> None:
    assert load_yaml(write_yaml("a: &a {x: 1}\nb: {<<: *a, y: 2}\n"))["b"] == {"x": 1, "y": 2}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a: 1\na: 2", ":2: not valid YAML: duplicate key 'a'"),
        ("a: 1\n? [a]\n: 1", ":2: not valid YAML: not one value as a key: '['a']'"),
        ("a: [1", "not valid YAML"),
        ("a: &a [*a]", "file.yaml:1: not valid YAML: an anchor (&) that contains itself"),
        ("a: 1\nb: &b {<<: *b}", "file.yaml:2: not valid YAML: an anchor (&) that contains"),
        ("&c {? *c : 1}", "an anchor (&) that contains itself"),
        ("a: 0xffffffffffffffff", "0xffffffffffffffff has more than 18 digits"),
        ("!!python/object/apply:os.system ['true']", "not valid YAML"),
        ("a: !!binary 'x", "not valid YAML"),
        ("\x00", "not valid YAML"),
    ],
)
def test_refused(write_yaml: Write, text: str, told: str) -> None:
    with pytest.raises(UserError, match=r".") as error:
        load_yaml(write_yaml(text))
    assert told in str(error.value)


def test_alias_bomb_is_refused(write_yaml: Write) -> None:
    lines = ["l0: &l0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"l{i}: &l{i} [{', '.join([f'*l{i - 1}'] * 10)}]" for i in range(1, 10)]
    with pytest.raises(UserError, match="aliases expand"):
        load_yaml(write_yaml("\n".join(lines)))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a: 1\n\tb: 2\n", "x.yaml:2: not valid YAML: a tab in the indentation; use spaces"),
        (b"a: !!python/name:os.x ''\n", "x.yaml:1: not valid YAML: the tag !!python/name:os.x is"),
        (b"a: !mine 3\n", "x.yaml:1: not valid YAML: the tag !!mine is not allowed"),
        (b"a: 1\nb: .nan\n", "x.yaml:2: not valid YAML: .nan is not a finite number"),
        (b"a: 1\nb: 1e999\n", "x.yaml:2: not valid YAML: 1e999 is not a finite number"),
        (b"a: " + b"9" * 5000, "x.yaml:1: not valid YAML: a whole number of 5000 digits; at most"),
        (b"[" * 20_000 + b"]" * 20_000, "x.yaml: not valid YAML: nested too deeply"),
        ("a: \xe4".encode("utf-16"), "x.yaml: cannot be read: it is UTF-16; save the file as"),
        (b"a: 1\nb: \xe4\n", "x.yaml: line 2 is not UTF-8; save the file as UTF-8"),
    ],
)
@pytest.mark.slow
def test_what_is_wrong_and_in_which_line(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "x.yaml"
    path.write_bytes(content)
    with pytest.raises(UserError) as error:
        load_yaml(path)
    assert str(error.value).startswith(f"{tmp_path}/{message}")


def test_a_pipe_is_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.yaml")
    with pytest.raises(UserError, match="not a regular file"):
        load_yaml(tmp_path / "pipe.yaml")


def test_missing_and_not_text(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such file"):
        load_yaml(tmp_path / "none.yaml")
    path = tmp_path / "bytes.yaml"
    path.write_bytes(b"\xff\xfe\xfa")
    with pytest.raises(UserError, match="cannot be read"):
        load_yaml(path)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(alphabet="ab:-[]{}&*<>!|'\"#\n\t 01.%@`~?,"))
def test_any_text_loads_or_is_refused(write_yaml: Write, text: str) -> None:
    try:
        load_yaml(write_yaml(text))
    except UserError as error:
        assert "\n" not in str(error)


@settings(max_examples=200)
@given(st.text(alphabet="ab()[]<>=!+-*/%. 019'\",:_andorif\n"))
def test_any_expression_is_checked_or_refused(text: str) -> None:
    try:
        Expression(text, "test")({"a": 1, "b": 2.5})
    except UserError as error:
        assert "\n" not in str(error)


@pytest.mark.parametrize(
    "text", ["a ** 9", "a.b", "a()", "[x for x in a]", "lambda: a", "f'{a}'", "a := 1", "a << 9"]
)
def test_expressions_that_could_do_harm_are_refused(text: str) -> None:
    with pytest.raises(UserError, match=r"allowed|not an expression"):
        Expression(text, "test")


def test_expression_values() -> None:
    point = {"ranks": 512, "batch_size": 1, "shape": [4, 5], "shard": True}
    assert Expression("ranks > 256 and batch_size == 1", "t")(point) is True
    assert Expression("ranks // 2 if shard else 1", "t")(point) == 256
    assert Expression("shape[0] * shape[1]", "t")(point) == 20
    assert Expression("shard == true", "t")(point) is True


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("label * 3000000000 == label", "* takes numbers, not texts or lists"),
        ("3000000000 * [1] == 1", "* takes numbers, not texts or lists"),
        ("'%3000000000d' % 1 == label", "% takes numbers, not texts or lists"),
        ("+".join(["label"] * 150) + " == label", "+ makes more than 100,000 characters"),
        ("+".join(["[label, 1]"] * 5) + " == label", None),
        ("label + 'b' == 'ab' or 2 * 3 % 4 == 2", None),
    ],
)
def test_an_expression_stays_small(text: str, why: str | None) -> None:
    """What it may take is bounded by its operators: nothing needs to be stopped."""
    expression = Expression(text, "c.yaml: exclude")
    tracemalloc.start()
    try:
        if why is None:
            assert expression({"label": "a" * 1000}) in (True, False)
        else:
            with pytest.raises(UserError, match=re.escape(why)) as caught:
                expression({"label": "a" * 1000})
            assert str(caught.value).startswith("c.yaml: exclude: ")
        assert tracemalloc.get_traced_memory()[1] < 2_000_000
    finally:
        tracemalloc.stop()
