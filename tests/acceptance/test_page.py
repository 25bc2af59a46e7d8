"""The report opens offline, on a desk and on a phone, light and dark, and holds no foreign code."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.acceptance.places import REPORT
from tests.conftest import Project, make_project
from tests.report.visits import NEEDED, Visit, chromium

pytestmark = [pytest.mark.slow, pytest.mark.browser, NEEDED]

# What a page would run or load if it took the text for its own.
HOSTILE = (
    "<script>document.title = 'taken'</script><img src=x onerror=\"document.title = 'taken'\">"
    "<a href=\"javascript:document.title='taken'\">\"'</style></script>--> ${7*7} {{7*7}}"
)
CAMPAIGN: dict[str, Any] = {
    "campaign": "hostile",
    "description": HOSTILE,
    "site": "toy",
    "results": "results",
    "experiments": {
        "scaling": {
            "benchmark": "toy", "description": HOSTILE, "scaling": "weak", "repeats": 2,
            "axes": {"ranks": [1, 2], "label": ["plain", HOSTILE]},
        },
        "broken": {"benchmark": "toy", "axes": {"behaviour": ["good", "exit3"]}},
    },
}  # fmt: skip


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of a campaign whose texts, values and errors are all hostile."""
    project: Project = make_project(tmp_path_factory.mktemp("hostile") / "project")
    folder = project.path / "workflow" / "benchmarks" / "toy"
    declared = yaml.safe_load((folder / "benchmark.yaml").read_text())
    declared["summary"] = HOSTILE
    declared["parameters"]["label"] = {
        "type": "string", "default": "plain", "unit": HOSTILE, "doc": HOSTILE
    }  # fmt: skip
    (folder / "benchmark.yaml").write_text(yaml.safe_dump(declared))
    program = folder / "main.py"
    text = program.read_text().replace('"error: the toy is broken"', repr(f"error: {HOSTILE}"))
    program.write_text(text)
    project.write("c.yaml", yaml.safe_dump(CAMPAIGN))
    done = project.snakemake("--configfile", "c.yaml")
    assert done.returncode == 1 and len(project.records()) == 8, done.stdout + done.stderr
    return project.path / "results" / REPORT


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as running:
        yield running


@pytest.mark.parametrize(
    ("width", "scheme"),
    [
        (1280, "light"),
        (390, "dark"),
        pytest.param(1280, "dark", marks=pytest.mark.whole),
        pytest.param(390, "light", marks=pytest.mark.whole),
    ],
)
def test_it_opens_offline_says_nothing_and_is_readable(
    browser: Any, report: Path, width: int, scheme: str
) -> None:
    with Visit(browser, report, width, scheme) as visit:
        title = visit.page.title()
        visit.wake()
        visit.check_sound()
        # The text is there, as text.
        assert visit.page.get_by_text(HOSTILE[:60]).count() >= 3
        assert visit.page.title() == title != "taken"
        assert visit.page.locator("img, a[href^=javascript], [onerror]").count() == 0
