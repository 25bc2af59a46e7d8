"""YAML reading and expressions: strict, and one line for a mistake."""

from collections.abc import Callable
from pathlib import Path

import pytest

from scalesweep.config.yaml_loader import load_yaml
from scalesweep.core.errors import UserError
from scalesweep.core.expressions import Expression

Write = Callable[[str], Path]


def test_scalars_follow_yaml_1_2(write_yaml: Write) -> None:
    path = write_yaml("[off, no, yes, true, 1e-3, 1:30, 0x, 12, -1.5, null, ~, 0o10, 0x1F, .nan]")
    expected = ["off", "no", "yes", True, 0.001, "1:30", "0x", 12, -1.5, None, None, 8, 31, ".nan"]
    assert load_yaml(path) == expected
    assert load_yaml(write_yaml("a: &a {x: 1}\nb: {<<: *a, y: 2}\n"))["b"] == {"x": 1, "y": 2}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a: 1\na: 2", "x.yaml:2: not valid YAML: duplicate key 'a'"),
        (b"a: 1\n? [a]\n: 1", "x.yaml:2: not valid YAML: found unhashable key"),
        (b"a: [1", "x.yaml:2: not valid YAML"),
        (b"a:\n\tb: 1", "x.yaml:2: not valid YAML: a tab; indent with spaces"),
        (b"a: !!python/name:os.x ''\n", "x.yaml:1: not valid YAML: could not determine"),
        ("a: \xe4".encode("utf-16"), "x.yaml: is not UTF-8; save the file as UTF-8"),
        (None, "x.yaml: no such file"),
    ],
)
def test_what_is_wrong_in_which_line(tmp_path: Path, content: bytes | None, message: str) -> None:
    path = tmp_path / "x.yaml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(UserError) as error:
        load_yaml(path)
    assert str(error.value).startswith(f"{tmp_path}/{message}")


@pytest.mark.parametrize(
    "text", ["a ** 9", "a.b", "a()", "[x for x in a]", "lambda: a", "f'{a}'", "a := 1", "a << 9"]
)
def test_expressions_that_could_do_harm_are_refused(text: str) -> None:
    with pytest.raises(UserError, match=r"allowed|not an expression"):
        Expression(text, "test")
