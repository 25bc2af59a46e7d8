"""Text of others, on its way out into tables, figures and pages."""

import json
import re
from pathlib import Path

import pytest

from scalesweep.core.visible import INVISIBLE, visible
from scalesweep.report.html_assets import embedded, render
from tests.fakes import pages
from tests.fakes.results import Fake, make_results

HOSTILE = "\x1b[31mred\u202eder\u2066\x9b\x07"
SHEET = "=1+1"


@pytest.mark.slow
def test_a_page_with_its_tables_and_figures_shows_what_cannot_be_seen(tmp_path: Path) -> None:
    root = make_results(
        tmp_path / "r",
        [
            Fake("texts", {"text": [HOSTILE, SHEET, "plain"], "ranks": [1, 2]}, "weak",
                 fate=lambda point, repeat: "done" if point["ranks"] == 1 or repeat else "KILLED",
                 description=HOSTILE)
        ],
        description=HOSTILE, lines=[HOSTILE],
    )  # fmt: skip
    pages.render(root)
    page = (root / "report.html").read_text()
    scripts = re.findall(r"<script.*?</script>", page, flags=re.DOTALL)
    data = [text for text in scripts if 'type="application/json"' in text]
    rest = re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL)
    assert not INVISIBLE.search(rest) and rest.count("\\x1b[31mred\\u202eder") >= 3
    # In the data of tables and charts the escapes are text too, not JSON's own.
    assert data and any("\\\\x1b[31m" in text for text in data)
    for text in data:
        assert not INVISIBLE.search(json.dumps(json.loads(text[text.index(">") + 1 : -9])))
        assert not INVISIBLE.search(str(json.loads(text[text.index(">") + 1 : -9])))
    figures = list(root.glob("figures/*/*.svg"))
    assert figures and not any(INVISIBLE.search(path.read_text()) for path in figures)


@pytest.mark.parametrize("text", [HOSTILE, "\r", "\b", "\ud800", "\u2028"])
def test_data_of_a_page_is_visible(text: str) -> None:
    made = json.loads(embedded({"a": [text, 1.5], text: (None, "plain")}))
    assert made == {"a": [visible(text), 1.5], visible(text): [None, "plain"]}


def test_a_script_keeps_its_digest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is ours, in a script, is as it was when its digest was taken."""
    monkeypatch.setattr("scalesweep.report.html_assets.RESOURCES", tmp_path)
    (tmp_path / "t.j2").write_text('<p>{{ x }}</p><script type="module">"\u200b"</script>\u202e')
    page = render("t.j2", {"x": "\u202e"}, {})
    assert page == '<p>\\u202e</p><script type="module">"\u200b"</script>\\u202e'
