"""The aspect that docs/architecture.md prints works as it is printed: four files in one folder."""

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from scalesweep import aspects
from scalesweep.analysis.table_io import write_tables
from scalesweep.aspects import find, order, registry
from scalesweep.aspects.aspect import Aspect
from scalesweep.core.paths import REPO
from scalesweep.core.plan_format import read_plan
from scalesweep.experiment.load import load_results
from scalesweep.findings.table import findings_table
from tests.fakes.pages import render
from tests.fakes.results import Fake, make_results

_FILE = re.compile(r"```python\n# scalesweep/aspects/(\w+/\w+\.py)\n(.*?)```", re.S)


@pytest.fixture
def warmup(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Aspect]:
    """The aspect of the recipe, in a folder of its own, named in the two lists."""
    files = dict(_FILE.findall((REPO / "docs" / "architecture.md").read_text()))
    assert [Path(name).name for name in files] == [
        "__init__.py", "table.py", "figure.py", "findings.py",
    ]  # fmt: skip
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(aspects, "__path__", [*aspects.__path__, str(tmp_path)])
    from scalesweep.aspects import warmup  # type: ignore[attr-defined]

    monkeypatch.setattr(registry, "ASPECTS", (*registry.ASPECTS, warmup.ASPECT))
    find.rules.cache_clear()
    yield warmup.ASPECT
    find.rules.cache_clear()
    for name in [name for name in sys.modules if name.startswith("scalesweep.aspects.warmup")]:
        del sys.modules[name]
    del aspects.warmup  # type: ignore[attr-defined]


@pytest.mark.slow
def test_the_aspect_reaches_tables_figures_findings_and_page(
    warmup: Aspect, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(find, "ORDER", (*order.ORDER, "warmup"))
    root = make_results(tmp_path / "results", [Fake("io", {"ranks": [1, 2, 4]}, scaling="weak")])
    (entry,) = read_plan(root / "plan.json")["experiments"]
    results = load_results(entry, root / "tables")
    table = results.tables["warmup"]
    assert table is not None
    assert list(table)[-3:] == ["ratio", "ratio_low", "ratio_high"] and len(table) == 3
    assert (table["ratio_low"] < table["ratio"]).all() and table.attrs["units"]["ratio"][
        "unit"
    ] == "1"
    findings = find.find(results)
    write_tables({"io": {"findings": findings_table(results, findings)}}, root / "tables")
    (finding,) = [item for item in findings if item.rule == "warmup"]
    assert (
        finding.sentence.startswith("The slowest start")
        and finding.numbers[0].value == table["ratio"].max()
    )
    page = render(root)
    index = json.loads((root / "figures" / "io" / "index.json").read_text())
    assert "warmup" in [figure["name"] for figure in index]
    assert "The slowest start" in page
    assert registry.shown_tables()["warmup"] == warmup.tables["warmup"]


def test_a_rule_without_a_place_in_the_order_is_named(warmup: Aspect, tmp_path: Path) -> None:
    root = make_results(tmp_path / "results", [Fake("io", {"ranks": [1, 2]}, scaling="weak")])
    (entry,) = read_plan(root / "plan.json")["experiments"]
    with pytest.raises(RuntimeError, match=r"order\.py.*warmup"):
        find.find(load_results(entry, root / "tables"))
