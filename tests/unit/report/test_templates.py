"""Templates: every constant they state exists."""

import pytest
from jinja2 import Environment, nodes

from scalesweep.core.paths import RESOURCES
from scalesweep.report.html_assets import METHODS, with_code

PAGES = sorted(path.name for path in RESOURCES.glob("*.html.j2"))


@pytest.mark.parametrize("page", PAGES)
def test_stated_constants_exist(page: str) -> None:
    tree = Environment(autoescape=True).parse((RESOURCES / page).read_text())
    stated = [
        (node.node.name, node.attr)
        for node in tree.find_all(nodes.Getattr)
        if isinstance(node.node, nodes.Name) and node.node.name in METHODS
    ]
    assert [(name, one) for name, one in stated if not hasattr(METHODS[name], one)] == []


def test_the_report_states_some() -> None:
    assert "{{ outliers.OUTLIER_SCORE" in (RESOURCES / "report.html.j2").read_text()


def test_code_in_a_text_is_marked_and_everything_escaped() -> None:
    assert with_code("run `a <b>` & `c`.") == "run <code>a &lt;b&gt;</code> &amp; <code>c</code>."
    assert with_code("<i>") == "&lt;i&gt;"
