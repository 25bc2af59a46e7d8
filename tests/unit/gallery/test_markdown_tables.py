"""Tables of Markdown, with the words above them."""

from pathlib import Path

import pytest

from scalesweep.core.errors import UserError
from scalesweep.gallery.markdown_tables import cells, read_tables, tables_as_csv

PAGE = """\
# Results

Some | words that are no table

## Large

**Table 1** Llama 8B. 128 GPUs.

| Techniques | TPS/GPU | TPS/GPU |
| ----- | ----: | :---: |
| **FSDP** | 5,605 | [67.0](http://x) |

## Small

**Table 2** Llama 70B. 8 GPUs.

Kind | Rate
---|---
`a` | 1.5
b | 2 | 3

End.
"""


def test_tables_with_headings_and_words(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text(PAGE)
    first, second = read_tables(tmp_path / "a.md")
    assert (first.section, first.words) == ("Results > Large", "**Table 1** Llama 8B. 128 GPUs.")
    assert first.columns == ("Techniques", "TPS/GPU", "TPS/GPU 2")
    assert first.rows == (("FSDP", "5,605", "67.0"),)
    assert second.rows == (("a", "1.5"), ("b", "2", "3"))
    text = tables_as_csv(tmp_path / "a.md", None, {"gpus": r"(\d+) GPUs", "none": "(x y z)"})
    assert text.splitlines() == [
        "section,gpus,none,Techniques,TPS/GPU,TPS/GPU 2,Kind,Rate",
        'Results > Large,128,,FSDP,"5,605",67.0,,',
        "Results > Small,8,,,,,a,1.5",
        "Results > Small,8,,,,,b,2",
    ]
    assert tables_as_csv(tmp_path / "a.md", "Llama 70B", {}).count("\n") == 3


def test_no_table_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("# a | b\n\nwords\n")
    with pytest.raises(UserError, match=r"a.md: has no table of Markdown$"):
        tables_as_csv(tmp_path / "a.md", None, {})
    (tmp_path / "a.md").write_text(PAGE)
    with pytest.raises(UserError, match="has no table of Markdown that matches 'Medium'"):
        tables_as_csv(tmp_path / "a.md", "Medium", {})
    (tmp_path / "a.md").write_bytes(b"\xff\xfe")
    with pytest.raises(UserError, match="is no text in UTF-8"):
        tables_as_csv(tmp_path / "a.md", None, {})


def test_cells_keep_escaped_bars() -> None:
    assert cells(r"| a \| b | **c** |") == (r"a \| b", "c")
