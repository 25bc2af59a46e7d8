"""What a user types behind ``scalesweep``: parsed, explained, passed on."""

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from snakemake.cli import get_argument_parser, parse_config

from scalesweep.commands.import_source import measured_commit
from scalesweep.commands.interface import COMMANDS, overview, read
from scalesweep.commands.snakemake_call import words_of
from scalesweep.core.errors import UserError
from scalesweep.core.paths import REPO
from scalesweep.smk.snakemake_facts import setting
from tests.conftest import ROOT


def line_of(*words: str) -> list[str]:
    """The call of Snakemake that a command line makes."""
    return words_of(read(words)[1])


@pytest.mark.parametrize("name", COMMANDS)
def test_help_names_each_option_and_its_examples_parse(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert f"\n  {name} " in overview()
    with pytest.raises(SystemExit) as ended:
        read([name, "--help"])
    assert ended.value.code == 0
    said = capsys.readouterr().out
    for option in re.findall(r"--[a-z-]+", " ".join(COMMANDS[name].names)):
        assert option in said
    for example in COMMANDS[name].examples.splitlines():
        assert example in said
        assert read(shlex.split(example)[1:])[1].command == name


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["predict", "a.yaml", "b.yaml"], "scalesweep predict: b.yaml: unknown; see"),
        (["sweep", "python"], "scalesweep sweep: python: unknown; put the command after `--`; see"),
        (["run", "--results="], "scalesweep run: an argument is empty; leave it out, or name"),
        (["history", "--fail-on", "all"], "scalesweep history: argument --fail-on: invalid choice"),
        *(
            (["predict", "--ranks", text], f"scalesweep predict: argument --ranks: {text}: must be")
            for text in ("0", "1.5", "²")
        ),
        (["advise", "--budget", "3h"], "scalesweep advise: argument --budget: 3h: must be a"),
        (["sweep", "--repeats", "0"], "scalesweep sweep: argument --repeats: 0: must be a whole"),
    ],
)
def test_a_mistake_is_one_line(words: list[str], told: str) -> None:
    with pytest.raises(UserError) as caught:
        read(words)
    assert str(caught.value).startswith(told)


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("run",), ""),
        (("plan", "c.yaml", "--profile", "slurm"), "plan --profile slurm --configfile c.yaml"),
        (("report", "nt3", "--site", "local"), "report --config campaign=nt3 site=local"),
        (
            ("run", "-n", "--try", "shapes", "--", "--jobs", "2", "results/plan.csv"),
            "-n --jobs 2 results/plan.csv --config try=shapes",
        ),
        (
            ("run", "--profiler", "cprofile", "--retry", "unsupported", "--history", "h"),
            "--config profile=cprofile retry=unsupported history=h",
        ),
    ],
)
def test_a_call_of_snakemake(
    monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], line: str
) -> None:
    monkeypatch.chdir(ROOT)
    assert " ".join(line_of(*words)) == f"snakemake {line}".strip()
    get_argument_parser().parse_args(line_of(*words)[1:])  # exits where a word is none


@pytest.mark.parametrize("more", ["--config results=x", "-Cresults=x", "--configfile=d.yaml"])
def test_what_snakemake_would_read_once_is_named_before(more: str) -> None:
    """It reads the last --config only: runs would be measured at another place, or site."""
    with pytest.raises(UserError, match="name campaign, settings and profile before `--`"):
        line_of("run", "--site", "local", "--", *more.split())


def test_elsewhere_the_snakefile_is_named_unless_it_is_used_there(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "Snakefile").write_text("rule all:")
    line = f"snakemake -s {REPO}/Snakefile plan --profile {REPO}/profiles/slurm"
    assert " ".join(line_of("plan", "--profile", "slurm")) == line
    (tmp_path / "Snakefile").write_text(f'module x:\n    snakefile: "{REPO}/Snakefile"\n')
    (tmp_path / "slurm").mkdir()
    assert line_of("plan", "--profile", "slurm") == ["snakemake", "plan", "--profile", "slurm"]


@pytest.mark.parametrize("text", ["", "007", "1e5", "yes", "a #b", "{a}", "'x'", "~/h", " a "])
def test_snakemake_reads_a_setting_as_it_was_typed(text: str) -> None:
    assert parse_config([setting("key", text)]) == {"key": text}


def test_help_and_launches_import_little() -> None:
    code = (
        "import sys, json\nfrom scalesweep.commands import interface as i\ni.overview()\n"
        "[it.format_help() for it in i.COMMANDS.values()]\nprint(json.dumps(list(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    loaded = {name.partition(".")[0] for name in json.loads(done.stdout)}
    assert not loaded & {"numpy", "pandas", "pyarrow", "scipy", "snakemake", "yaml", "pydantic"}


def test_a_commit_is_digits_or_what_its_repository_knows(tmp_path: Path) -> None:
    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@example.org"]
    for words in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "First"], ["tag", "v1"]):
        subprocess.run([*git, *words], check=True)
    tagged = measured_commit("v1", str(tmp_path))
    assert tagged is not None and len(tagged.commit) == 40
    assert tagged.repository == str(tmp_path.resolve())
    assert measured_commit(tagged.commit[:9].upper(), str(tmp_path)) == tagged
    assert measured_commit("", "") is None
    for commit, repository, message in (
        ("v2", str(tmp_path), f"--commit v2: no commit of {tmp_path}"),
        ("v1", str(tmp_path / "none"), f"--repository {tmp_path / 'none'}: no git repository"),
    ):
        with pytest.raises(UserError) as error:
            measured_commit(commit, repository)
        assert str(error.value).startswith(message)
