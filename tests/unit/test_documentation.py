"""The documentation names files and sections that exist."""

import re
from pathlib import Path

import pytest
import yaml

from tests.conftest import ROOT

PAGES = sorted(
    path
    for pattern in ("*.md", "docs/**/*.md", "config/*.md", "workflow/benchmarks/*/*.md")
    for path in ROOT.glob(pattern)
)
FOLDERS = "scalesweep|workflow|tests|tools|bench|docs|resources|profiles"
PACKAGES = "|".join(path.name for path in (ROOT / "scalesweep").iterdir() if path.is_dir())
# `module.py` (`function`): what stands in parentheses is of the module.
MEMBERS = re.compile(rf"`((?:{PACKAGES})/[\w./-]+\.py)`\s+\((`\w+`(?:,?\s+(?:and\s+)?`\w+`)*)\)")
# `config/run_order.py` is short for the module in scalesweep/.
NAMED = re.compile(rf"`((?:{FOLDERS})/[\w./-]+\.\w+|(?:{PACKAGES})/[\w./-]+\.py)")
EXAMPLES = {
    "workflow/benchmarks/my_training/benchmark.yaml",
    "workflow/benchmarks/my_ddp/benchmark.yaml",
    "workflow/benchmarks/my_benchmark/main.py",
}


def anchors(page: Path) -> set[str]:
    """What a link may end in: a heading's words in lower case, joined by hyphens."""
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {
        re.sub(r"[^\w -]", "", heading).strip().lower().replace(" ", "-") for heading in headings
    }


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    lost = []
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        if "://" in target:
            continue
        name, _, anchor = target.partition("#")
        file = (page.parent / name).resolve() if name else page
        if not file.exists() or (anchor and anchor not in anchors(file)):
            lost.append(target)
    assert lost == []


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_files_that_are_named_exist(page: Path) -> None:
    named = set(NAMED.findall(page.read_text())) - EXAMPLES
    places = (ROOT, ROOT / "scalesweep")
    assert {name for name in named if not any((at / name).exists() for at in places)} == set()


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_what_is_named_of_a_module_is_in_it(page: Path) -> None:
    for module, named in MEMBERS.findall(page.read_text()):
        text = (ROOT / "scalesweep" / module).read_text()
        for name in re.findall(r"\w+", named):
            assert re.search(rf"^(?:def |class )?{name}\b", text, re.MULTILINE), (module, name)


@pytest.mark.parametrize(("heading", "schema"), [("Campaign", "campaign"), ("Site", "site")])
def test_the_reference_has_the_keys_of_the_schema(heading: str, schema: str) -> None:
    text = (ROOT / "config" / "README.md").read_text().partition(f"\n## {heading}: ")[2]
    table = text.partition("\n### ")[0]
    first = {
        key
        for row in re.findall(r"^\| (`.*?) \|", table, re.M)
        for key in re.findall(r"`(\w+)`", row)
    }
    allowed = yaml.safe_load((ROOT / "workflow" / "schemas" / f"{schema}.yaml").read_text())
    keys = set(allowed["properties"])
    if each := allowed["properties"].get("experiments"):
        keys |= set(each["additionalProperties"]["properties"])
    assert first == keys
