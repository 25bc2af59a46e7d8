"""The documentation names files and sections that exist."""

import re
import shlex
import tomllib
from pathlib import Path

import pytest
import yaml

from scalesweep import __version__
from scalesweep.commands.interface import COMMANDS, read
from scalesweep.smk.config_keys import read_options
from tests.conftest import ROOT

# Pages of keys and commands, which `make docs` writes.
MADE = {"benchmark.md", "campaign.md", "commands.md", "site.md", "table_map.md"}
PLACES = "*.md docs/**/*.md bench/*.md config/*.md resources/*/*.md workflow/benchmarks/*/*.md"
PAGES = [path for place in PLACES.split() for path in ROOT.glob(place) if path.name not in MADE]
EACH_PAGE = pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
FOLDERS = "scalesweep|workflow|tests|tools|bench|docs|resources|profiles"
PACKAGES = "|".join(path.name for path in (ROOT / "scalesweep").iterdir() if path.is_dir())
# `config/repeats.py` is short for the module in scalesweep/.
NAMED = re.compile(rf"`((?:{FOLDERS})/[\w./-]+\.\w+|(?:{PACKAGES})/[\w./-]+\.py)")
EXAMPLES = "workflow/benchmarks/my_"


@EACH_PAGE
def test_links_lead_somewhere(page: Path) -> None:
    lost = []
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        if "://" in target:
            continue
        file = (page.parent / target.partition("#")[0]).resolve()
        if not file.exists() and not (file.name in MADE and file.parent.name == "reference"):
            lost.append(target)
    assert lost == []


def calls(text: str, program: str) -> list[list[str]]:
    """The calls of a program in code blocks and between backticks, as words, without comments."""
    lines = [line.split("`")[0] for line in re.findall(rf"`({program} [^`]*)`", text)]
    for block in re.findall(r"```(?:sh|bash|yaml)?\n(.*?)```", text, re.DOTALL):
        lines += re.findall(rf"^\s*(?:- run: )?({program} [^\n]*)$", block, re.MULTILINE)
    return [
        shlex.split(line, comments=True) for line in lines if not re.search(r"\.\.\.|\[-h\]", line)
    ]


@EACH_PAGE
def test_commands_are_understood(page: Path) -> None:
    """Every `scalesweep ...` parses, and every key of `snakemake --config` is known."""
    text = page.read_text()
    for _, command, *words in calls(text, "scalesweep"):
        if command in COMMANDS and words and not words[0].isupper():
            read([command, *words])
        assert command in {*COMMANDS, "COMMAND", "--help", "--version"}, command
    old = page.name == "CHANGELOG.md"  # names keys that are gone
    for words in [] if old else calls(text, "snakemake"):
        options = words[words.index("--config") + 1 :] if "--config" in words else []
        given = dict(word.split("=", 1) for word in options if re.match(r"\w+=", word))
        read_options(given)


@EACH_PAGE
def test_files_that_are_named_exist(page: Path) -> None:
    named = {name for name in NAMED.findall(page.read_text()) if not name.startswith(EXAMPLES)}
    places = (ROOT, ROOT / "scalesweep")
    lost = {name for name in named if not any((at / name).exists() for at in places)}
    assert {name for name in lost if Path(name).name not in MADE} == set()


def test_pages_that_code_names_exist() -> None:
    folders = ("scalesweep", "workflow", "resources", "config", "tests", "tools", "bench")
    lost = {
        (str(file.relative_to(ROOT)), name)
        for folder in folders
        for file in (ROOT / folder).rglob("*")
        if file.suffix in {".py", ".smk", ".yaml", ".j2", ".js", ".md"}
        for name in re.findall(r"(?<!blog/)\bdocs/[\w/]+\.md\b", file.read_text())
        if not (ROOT / name).is_file() and Path(name).name not in MADE
    }
    assert lost == set()


def test_the_version_is_the_same_everywhere() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    newest = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert newest and newest[1] == project["version"] == citation["version"] == __version__
