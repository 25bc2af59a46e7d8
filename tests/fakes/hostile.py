"""Values that no file should hold, and the places of a tree to put them."""

from typing import Any

from hypothesis import strategies as st

TEXTS = [
    *(
        "",
        " ",
        "\n",
        "..",
        "../../etc/passwd",
        "/",
        "~",
        "$(touch pwned)",
        "`touch pwned`",
        "; rm x",
    ),
    *(
        "'",
        '"',
        "a'b\"c",
        "<script>alert(1)</script>",
        "{",
        "}",
        "{}",
        "{0}",
        "{ranks}",
        "{ranks!r}",
    ),
    *(
        "{ranks.__class__}",
        "{python:>99999999}",
        "__import__('os').system('touch pwned')",
        "%s",
        "\x00",
    ),
    *("é\u202e", "x" * 5000, "-", "--help", "=1", "[", "ranks ** ranks", "ranks * 'x' * 9999999"),
    *(
        "10 ** 10 ** 10",
        "[0] * 99999999999",
        "ranks[0]",
        "1 // 0",
        "not",
        "ranks == ranks == ranks",
    ),
    *("lambda: 0", "(ranks" * 200, "ranks if", "none", "null", "toy", "weak", "good", "off"),
]
LEAVES = st.one_of(
    st.sampled_from(TEXTS),
    st.integers(-3, 3),
    st.sampled_from([10**9, 10**30, -(10**30), 0.1, -0.0, 1e308, float("inf"), float("nan")]),
    st.sampled_from([True, False, None, [], {}, [[]], [None], {"a": {}}, [1, 1]]),
    st.just({"from": 1, "to": 3}),
    st.sampled_from(
        [{"from": 1, "to": 10**18, "factor": 1.0000001}, {"from": 1, "to": 10**18, "step": 1e-9},
         {"from": 0, "to": 5, "step": 1}, {"from": 5, "to": 1, "factor": 2}]
    ),
    st.text(max_size=12),
)  # fmt: skip


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Paths of every value in a tree, the root included."""
    found = [path]
    if isinstance(value, dict):
        for key in value:
            found += places(value[key], (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            found += places(item, (*path, index))
    return found
