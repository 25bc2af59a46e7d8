"""Names and values full of what a shell, a path or a page could take for its own.

They reach commands, files and the report as they are, or are refused by name; nothing is ever run
that nobody has asked for, and nothing is written beside the results and the data.
"""

import csv
import json
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml
from snakemake.cli import parse_config

import scalesweep.config.benchmark
import scalesweep.config.site
from scalesweep.config.campaign import load_campaign
from scalesweep.core.csv_cells import read_rows
from scalesweep.core.errors import UserError
from scalesweep.core.visible import INVISIBLE, visible
from scalesweep.smk.campaign_args import _check_names
from scalesweep.smk.report_command import report_command
from scalesweep.smk.startup import prepare
from tests.conftest import ROOT, Project, make_project
from tests.fakes.pages import bare

SHELL = "$(touch pwned) `touch pwned`; touch pwned & touch 'pwned' || \"touch pwned\" > pwned"
HTML = "<script>alert('pwned')</script><img src=x onerror=alert(1)>&amp;]]>"
PATHS = "../../../pwned\\../%s%n {text} {{text}} $HOME ~ * ? # ! é\u202e"
TERMINAL = "\x1b[2J\x1b]0;pwned\x07\u202edenwp\u2066\x9b"
SHEET = '=HYPERLINK("http://x","pwned")'
TEXTS = ["plain", SHELL, HTML, PATHS, SHEET]

BENCHMARK: dict[str, Any] = {
    "name": "hostile",
    "version": 1,
    "summary": HTML,
    "parameters": {
        "ranks": {"type": "integer", "default": 1, "doc": SHELL},
        "ranks_per_node": {"type": "integer", "default": 8, "doc": HTML},
        "text": {"type": "string", "default": "plain", "doc": HTML + PATHS, "unit": HTML},
    },
    "data": {
        "program": "stage.py", "parameters": ["text"], "files": {"train": "1"},
        "bytes_per_file": "10",
    },
    "refuse": [{"when": "ranks == 3", "reason": HTML + SHELL}],
    "env": {"HOSTILE_ENV": "text"},
    "command": ["{python}", "{benchmark}/main.py", "{run_file}", "{text}", "--text={text}",
                "{program:p}", SHELL, "{{text}}"],
    "result": "native",
}  # fmt: skip
MAIN = (
    f"TERMINAL = {TERMINAL!a}"
    + """
import json, os, sys
from pathlib import Path

run = json.loads(Path(sys.argv[1]).read_text())
if run["params"]["text"] == "fail":
    sys.exit("error: <script>alert('pwned')</script> $(touch pwned)" + TERMINAL)
told = {"argv": sys.argv[2:], "env": [os.environ[f"HOSTILE_{n}"] for n in ("ENV", "SITE", "SET")]}
told["data"] = sorted(path.name for path in Path(run["data"], "train").iterdir())
metric = {"value": 1.5, "unit": "<b>$x$", "better": "lower", "scope": "total"}
printable = run["params"]["text"].rstrip(chr(0x202e))
native = {
    "phases": {"timed": 1.0, printable: 1.0}, "metrics": {"speed": metric}, "work": {},
    "resources": {"hosts": [run["params"]["text"]], "slurm_nodes": [None]},
    "environment": {"ranks": [{"host": run["params"]["text"]}],
                    "versions": {"python": run["params"]["text"]}, "variables": {}},
    "notes": told,
}
Path(run["out"], "native.json").write_text(json.dumps(native))
"""
)
STAGE = """
import argparse, json
from pathlib import Path

parser = argparse.ArgumentParser()
for name in ("--out", "--train", "--params", "--workers", "--reserve-gb"):
    parser.add_argument(name)
args = parser.parse_args()
folder = Path(args.out, "train")
folder.mkdir(parents=True, exist_ok=True)
(folder / "part-000000").write_text(json.loads(args.params)["text"])
"""


class Page(HTMLParser):
    """Scripts, handlers and text of a page."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.inside: list[str] = []
        self.bad: list[str] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in ("script", "style"):
            self.inside.append(tag)
        self.bad += [f"{tag} {name}" for name, _ in attrs if name.startswith("on")]
        self.bad += [tag] if tag == "img" else []

    def handle_endtag(self, tag: str) -> None:
        if self.inside and self.inside[-1] == tag:
            self.inside.pop()

    def handle_data(self, data: str) -> None:
        if "script" in self.inside and "pwned" in data:
            self.bad.append(data)
        self.text += "" if self.inside else data


def files(folder: Path) -> Iterator[Path]:
    return (path for path in folder.rglob("*") if "__pycache__" not in path.parts)


def write_hostile(project: Project, campaign: dict[str, Any], site: dict[str, Any]) -> None:
    folder = project.path / "workflow" / "benchmarks" / "hostile"
    folder.mkdir()
    (folder / "benchmark.yaml").write_text(yaml.safe_dump(BENCHMARK))
    (folder / "main.py").write_text(MAIN)
    (folder / "stage.py").write_text(STAGE)
    (project.path / "config" / "sites" / "evil.yaml").write_text(yaml.safe_dump(site))
    (project.path / "c $(touch pwned)'s.yaml").write_text(yaml.safe_dump(campaign))


SITE: dict[str, Any] = {
    "site": "evil", "description": HTML, "nodes": 4, "oversubscribe": True, "reserve_disk_gb": 0,
    "data": "da ta $(touch pwned)'s", "node_local": f"/tmp/{SHELL}", "power": "off",
    "env": {"HOSTILE_SITE": SHELL}, "prologue": ["export HOSTILE_SET='<b> $(touch pwned)'"],
    "programs": {"p": "./pro gram $(touch pwned)'\"s.sh"},
    "launch": {"single": [], "multi": []},
}  # fmt: skip
CAMPAIGN: dict[str, Any] = {
    "campaign": "c", "description": HTML + SHELL + PATHS, "site": "evil",
    "results": "re sults/it's \"$(touch pwned)\" `touch pwned`; & # x",
    "experiments": {
        "e": {
            "benchmark": "hostile", "description": HTML, "axes": {"text": [*TEXTS, "fail"]},
            "exclude": [{"when": "text == 'none'", "reason": HTML}],
        }
    },
}  # fmt: skip


@pytest.mark.slow
def test_a_hostile_campaign_runs_safely(tmp_path: Path) -> None:
    project = make_project(tmp_path / 'it\'s a "$(touch pwned)" `touch pwned`; pro ject')
    write_hostile(project, CAMPAIGN, SITE)
    (project.path / SITE["programs"]["p"]).touch()
    before = set(files(tmp_path))
    done = project.snakemake("--configfile", "c $(touch pwned)'s.yaml")
    assert done.returncode != 0  # one of its runs fails
    assert "report: " in done.stdout + done.stderr, done.stdout + done.stderr
    results = project.path / CAMPAIGN["results"]
    data = project.path / SITE["data"]
    allowed = (results, data, project.path / ".snakemake", project.path / "home")
    for path in set(files(tmp_path)) - before:
        assert any(path.is_relative_to(one) or one.is_relative_to(path) for one in allowed), path
        assert path.name != "pwned"
    assert not Path("/tmp/pwned").exists()

    records = [json.loads(p.read_bytes()) for p in results.glob("runs/evil/*/record.json")]
    assert sorted(record["point"]["text"] for record in records) == sorted(TEXTS)
    program = str(project.path.resolve() / SITE["programs"]["p"].removeprefix("./"))
    for record in records:
        text = record["point"]["text"]
        assert record["notes"] == {
            "argv": [text, f"--text={text}", program, SHELL, "{text}"],
            "env": [text, SHELL, "<b> $(touch pwned)"],
            "data": ["part-000000"],
        }
    assert sorted(p.read_text() for p in data.glob("*/train/part-*")) == sorted([*TEXTS, "fail"])
    with (results / "plan.csv").open() as file:
        plan = list(read_rows(file))
    shown = [visible(text) for text in [*TEXTS, "fail"]]
    assert sorted(row["text"] for row in plan) == sorted(shown)
    assert visible(TERMINAL) in next(row["reason"] for row in plan if row["status"] == "failed")
    # Nothing that a terminal or a reader would not see leaves us, and no cell is a formula.
    assert visible(TERMINAL) in done.stderr and not INVISIBLE.search(done.stdout + done.stderr)
    for path in files(results):
        if path.suffix in (".csv", ".html", ".tex", ".svg") and "runs" not in path.parts:
            text = re.sub("<script.*?</script>", "", path.read_text(), flags=re.DOTALL)
            assert not INVISIBLE.search(text), path
        if path.suffix == ".csv" and "runs" not in path.parts:
            with path.open(newline="") as file:
                assert not any(cell.startswith("=") for row in csv.reader(file) for cell in row)

    page = Page(bare((results / "report.html").read_text()))
    assert page.bad == []
    failed = "<script>alert('pwned')</script> $(touch pwned)"
    assert all(text in page.text for text in (HTML, SHELL, failed, "NON_ZERO_EXIT"))
    figures = list(results.glob("figures/*/*.svg"))
    assert figures
    for figure in figures:
        tags = {element.tag.rpartition("}")[2] for element in ElementTree.parse(figure).iter()}
        assert not {"script", "img", "foreignObject"} & tags


REFUSED = {
    "campaign": ({"campaign": "a$(touch pwned)"}, {}, "campaign: 'a$(touch pwned)' is not allowed"),
    "campaign with a line feed": ({"campaign": "a\n"}, {}, "campaign: 'a\\n' is not allowed"),
    "experiment": (
        {"experiments": {"../e": {"benchmark": "hostile"}}}, {},
        "experiments: '../e' is not allowed: letters",
    ),
    "benchmark": (
        {"experiments": {"e": {"benchmark": "../hostile"}}}, {},
        "experiments.e.benchmark: '../hostile' is not the name of a folder",
    ),
    "profile": (
        {"experiments": {"e": {"benchmark": "hostile", "profile": "$(touch pwned)"}}}, {},
        "experiments.e.profile",
    ),
    "site": ({"site": "../../evil"}, {}, "site: '../../evil' is not"),
    "results with a place": ({"results": "a{text}b"}, {}, "must not contain '{'"),
    "results with a variable of Snakemake's": ({"results": "a<b>"}, {}, "must not contain '<'"),
    "results like an option": ({"results": "-rf"}, {}, "must not start with '-'"),
    "results with a line feed": ({"results": "a\nb"}, {}, "must not contain '\\n'"),
    "data with a place": ({}, {"data": "a{b}"}, "must not contain '{'"),
    "a variable's name": ({}, {"env": {"A=$(touch pwned)": "x"}}, "env: 'A=$(touch"),
    "a program's name": ({}, {"programs": {"../p": "x"}}, "programs: '../p' is not"),
    "a NUL": ({"description": "a\0b"}, {}, "a character that is not printable: '\\x00'"),
    "a place of the launcher's": (
        {"experiments": {"e": {"benchmark": "hostile", "axes": {"text": ["{out}"]}}}}, {},
        "text = '{out}': a value must not contain {out}",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_is_refused_by_name(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    campaign, site, told = REFUSED[name]
    (tmp_path / "config" / "sites").mkdir(parents=True)
    (tmp_path / "workflow" / "benchmarks").mkdir(parents=True)
    write_hostile(Project(tmp_path), {**CAMPAIGN, **campaign}, {**SITE, **site})
    benchmarks = tmp_path / "workflow" / "benchmarks"
    monkeypatch.setattr(scalesweep.config.benchmark, "BENCHMARKS", benchmarks)
    monkeypatch.setattr(scalesweep.config.site, "SITES", tmp_path / "config" / "sites")
    monkeypatch.chdir(tmp_path)
    before = set(files(tmp_path))
    with pytest.raises(UserError) as caught:
        prepare([tmp_path / "c $(touch pwned)'s.yaml"], {}, False, False)
    assert told in str(caught.value) and "\n" not in str(caught.value)
    assert set(files(tmp_path)) == before


@pytest.mark.parametrize("name", ["a{b}", "a<b>"])
def test_a_folder_that_all_lies_in_is_refused_in_its_own_name(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A relative ``data`` holds the working folder too, and is not what is wrong."""
    (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path / name)
    campaign = load_campaign(ROOT / "config" / "config.yaml", "local", "results")
    with pytest.raises(UserError, match=r"^the working folder: .* must not contain '[{<]'"):
        _check_names(campaign, in_slurm=False)


def test_paths_that_slurms_plugin_would_run_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # It puts a job's command between double quotes.
    monkeypatch.chdir(tmp_path)
    for name, refused in (
        ("a $(touch pwned)", "must not contain $"),
        ("a`b", "must not contain `"),
        ("a b", ""),
    ):
        campaign = load_campaign(ROOT / "config" / "config.yaml", "local", name)
        _check_names(campaign, in_slurm=False)
        if not refused:
            _check_names(campaign, in_slurm=True)
            continue
        with pytest.raises(
            UserError, match=f"results: .*{re.escape(refused)} with --profile slurm"
        ):
            _check_names(campaign, in_slurm=True)


@pytest.mark.parametrize(
    "name", ["007", "a #b", "a: b", "[x]", SHELL, PATHS, "null", "'q'", "1e3", " a ", "\\"]
)
def test_a_results_folder_comes_back_from_snakemakes_command_line(name: str) -> None:
    words = report_command(Path("c.yaml"), "007", name)
    begin = words.index("--config") + 1
    found = parse_config(words[begin : words.index("--")])
    assert found == {"pending": "ignore", "site": "007", "results": name}
