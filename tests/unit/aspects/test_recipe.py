"""The aspect that docs/architecture.md prints works as it is printed: one file of 80 lines."""

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from scalesweep import aspects
from scalesweep.analysis.table_io import write_tables
from scalesweep.aspects import find, registry
from scalesweep.core.paths import REPO
from scalesweep.core.plan_format import read_plan
from scalesweep.experiment.load import load_results
from scalesweep.findings.table import findings_table
from tests.fakes.pages import render
from tests.fakes.results import Fake, make_results

CAPTION = "The first epoch's time over a later one's."


@pytest.fixture
def warmup(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The aspect of the recipe, in a folder of its own, named in the registry."""
    text = (REPO / "docs" / "architecture.md").read_text()
    (code,) = re.findall(r"```python\n# scalesweep/aspects/warmup\.py\n(.*?)```", text, re.S)
    assert code.count("\n") <= 80
    assert f'`"warmup": {{"warmup": "{CAPTION}"}}`' in text
    (tmp_path / "warmup.py").write_text(code)
    monkeypatch.setattr(aspects, "__path__", [*aspects.__path__, str(tmp_path)])
    monkeypatch.setitem(registry.ASPECTS, "warmup", {"warmup": CAPTION})
    find.rules.cache_clear()
    yield
    find.rules.cache_clear()
    sys.modules.pop("scalesweep.aspects.warmup")
    del aspects.warmup  # type: ignore[attr-defined]


@pytest.mark.slow
@pytest.mark.usefixtures("warmup")
def test_the_aspect_reaches_tables_figures_findings_and_page(tmp_path: Path) -> None:
    root = make_results(tmp_path / "results", [Fake("io", {"ranks": [1, 2, 4]}, scaling="weak")])
    (entry,) = read_plan(root / "plan.json")["experiments"]
    results = load_results(entry, root / "tables")
    table = results.tables["warmup"]
    assert list(table)[-3:] == ["ratio", "ratio_low", "ratio_high"] and len(table) == 3
    assert (table["ratio_low"] < table["ratio"]).all()
    assert table.attrs["units"]["ratio"]["unit"] == "1"
    findings = find.find(results)
    write_tables({"io": {"findings": findings_table(results, findings)}}, root / "tables")
    (finding,) = [each for each in findings if each.rule == "warmup"]
    assert finding.sentence.startswith("The slowest start")
    assert finding.numbers[0].value == table["ratio"].max()
    page = render(root)
    index = json.loads((root / "figures" / "io" / "index.json").read_text())
    assert "warmup" in [figure["name"] for figure in index]
    assert "The slowest start" in page and "First / later epochs" in page
    assert registry.shown_tables()["warmup"] == CAPTION
