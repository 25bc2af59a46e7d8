"""A user's own files in and around a results folder live through every call, and are named."""

import shutil
from pathlib import Path

import pytest

from tests.conftest import Project
from tests.fakes.folder_tree import tree

pytestmark = pytest.mark.slow

CAMPAIGN = """
campaign: toys
site: toy
experiments:
  sizes:
    benchmark: toy
    scaling: weak
    axes: {ranks: [1, 2]}
"""
# By names of their own beside ours, in folders of ours and in folders of their own.
BYSTANDERS = (
    *("notes.txt", "tables/thesis.csv", "tables/sizes/thesis.csv", "tables/mine/points.csv"),
    *("figures/paper.pdf", "figures/sizes/draft.svg", "runs/toy/readme.md", "compare/mine.csv"),
    *("logs/diary.txt", ".outputs.txt", "advice-2.yaml", ".tables.previous/thesis.csv"),
    *(".figures.previous/mine/draft.svg", ".state/notes.txt", ".doctor/notes.txt"),
)
# By names of ours: each is set aside before its name is used.
OURS = (
    *("report.html", "plan.csv", "plan.json", "summary.parquet", "jobs.csv"),
    *("tables/sizes/points.csv", "figures/index.json", "figures/sizes/ledger.svg"),
    *(".tables.previous/index.json", ".tables.previous/sizes/points.csv", ".made.json"),
    *(".summary.parquet.previous", ".jobs.csv.previous", ".report.lock", "runs/toy/.index.json"),
    *("logs/inventory.log", "logs/tables.log", "logs/report.log", ".series.jsonl"),
)


def put(folder: Path, names: tuple[str, ...]) -> None:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        # What we made there is a further name of a kept file: a user's editor replaces it.
        path.unlink(missing_ok=True)
        path.write_text(f"mine: {name}")


def lost(folder: Path, names: tuple[str, ...]) -> list[str]:
    return [
        name
        for name in names
        if not (folder / name).is_file() or (folder / name).read_text() != f"mine: {name}"
    ]


def made(folder: Path) -> set[str]:
    return {
        str(path.relative_to(folder))
        for name in ("tables", "figures")
        for path in (folder / name).rglob("*")
        if path.is_file() and not path.read_bytes().startswith(b"mine: ")
    }


def names(folder: Path) -> set[str]:
    """Of what is there, all that is no cache of Python's and nothing that Snakemake keeps."""
    skipped = {".snakemake", "__pycache__", "home"}
    return {name for name in tree(folder) if skipped.isdisjoint(Path(name).parts)}


def test_files_of_users_live_through_every_rebuild(project: Project) -> None:
    project.write("c.yaml", CAMPAIGN)
    results = project.path / "results"
    done = project.snakemake("--configfile", "c.yaml")
    assert done.returncode == 0, done.stderr
    before = made(results)
    assert "tables/sizes/points.csv" in before and "figures/sizes/ledger.svg" in before
    put(results, BYSTANDERS)
    (results / "tables" / "empty").mkdir()

    # What is not ours is no reason to make anything again.
    again = project.snakemake("--configfile", "c.yaml")
    assert again.returncode == 0 and "Nothing to be done" in again.stdout + again.stderr
    assert not lost(results, BYSTANDERS)

    # A log that was added to is kept, which its call says; one that nobody touched is replaced.
    for name, words in {"plan": ("plan",), "inventory": ("--forcerun", "inventory")}.items():
        assert project.snakemake(*words, "--configfile", "c.yaml").returncode == 0
        with (results / "logs" / f"{name}.log").open("a") as log:
            log.write("mine")
        done = project.snakemake(*words, "--configfile", "c.yaml")
        kept = f"results/logs/{name}.log: is not known to be as scalesweep left it: kept as {name}"
        lines = [line for line in done.stderr.splitlines() if "kept as" in line]
        assert lines == [f"warning: {kept}.log.set-aside"], done.stderr
        aside = results / "logs" / f"{name}.log.set-aside"
        assert aside.read_text().endswith("mine")
        aside.unlink()

    # All of it is made again, and one experiment under another name; a folder that is gone too.
    project.write("c.yaml", CAMPAIGN.replace("sizes:", "other:").replace("[1, 2]", "[1, 2, 4]"))
    shutil.rmtree(results / ".outputs" / "tables")
    for words in ((), ("--forcerun", "inventory"), ("report",), ("plan",)):
        done = project.snakemake(*words, "--configfile", "c.yaml")
        assert done.returncode == 0 and "set-aside" not in done.stderr, done.stderr
        assert not lost(results, BYSTANDERS)
    assert made(results) == {name.replace("/sizes/", "/other/") for name in before}
    assert (results / "tables" / "empty").is_dir()
    assert not (results / "runs" / "readme.md").exists()

    # Snakemake removes these folders before they are made again.
    put(results, (".outputs/tables/thesis.csv", ".outputs/figures/other/draft.svg"))
    (results / ".outputs" / "figures" / "other" / "ledger.svg").unlink()
    (results / ".outputs" / "figures" / "other" / "ledger.svg").symlink_to("/nowhere")
    done = project.snakemake("--configfile", "c.yaml", "--forcerun", "inventory")
    assert done.returncode == 0, done.stderr
    saved = results / ".outputs"
    assert (saved / "tables.set-aside" / "thesis.csv").read_text().startswith("mine: ")
    assert (saved / "figures.set-aside" / "other" / "draft.svg").read_text().startswith("mine: ")
    assert (saved / "figures.set-aside" / "other" / "ledger.svg").is_symlink()
    names = {path.name for path in (saved / "tables.set-aside").rglob("*")}
    assert names == {"thesis.csv"}
    # It is kept once: what has been moved stays where it is, and is no reason to make all again.
    done = project.snakemake("--configfile", "c.yaml")
    assert "Nothing to be done" in done.stderr
    done = project.snakemake("--configfile", "c.yaml", "--forcerun", "inventory")
    assert done.returncode == 0 and "set-aside" not in done.stderr, done.stderr
    assert (saved / "tables.set-aside" / "thesis.csv").exists()

    # A step that fails takes nothing with it.
    project.write("c.yaml", CAMPAIGN)
    put(results, OURS)
    said = ""
    for script in ("tables", "figures"):
        path = project.path / "workflow" / "scripts" / f"{script}.py"
        text = path.read_text()
        path.write_text("raise SystemExit(1)\n")
        failed = project.snakemake("--configfile", "c.yaml")
        assert failed.returncode != 0 and not lost(results, BYSTANDERS)
        said += failed.stderr
        path.write_text(text)
    done = project.snakemake("--configfile", "c.yaml")
    assert done.returncode == 0, done.stderr
    assert not lost(results, BYSTANDERS) and before <= made(results)
    said += done.stderr
    for name in OURS:
        kept = results / f"{name}.set-aside"
        hidden = any(part.startswith(".") for part in Path(name).parts)
        assert hidden or said.count(f"results/{name}: is not ") == 1, name
        assert kept.read_text() == f"mine: {name}", name
        assert (results / name).read_bytes() != kept.read_bytes()
    # Asked for by name, what is wholly gone is made again.
    shutil.rmtree(results / "figures")
    (results / "plan.csv").unlink()
    done = project.snakemake("--configfile", "c.yaml")
    assert done.returncode == 0 and (results / "figures" / "index.json").exists()
    assert (results / "plan.csv").exists()


def test_a_folder_of_others_is_refused_and_nothing_is_written(project: Project) -> None:
    project.write("c.yaml", CAMPAIGN)
    thesis = project.path / "thesis"
    put(thesis, ("report.html", "plan.csv", "figures/paper.pdf"))
    project.write("file", "mine")
    (project.path / "loop").symlink_to("loop")
    for name, why in {
        ".": "is the working folder",
        "/": "contains the working folder",
        "..": "contains the working folder",
        "file": "is a file; name a folder",
        "loop": "is a link that leads back to itself",
        "config": "holds files that scalesweep did not make",
        "thesis": "holds files that scalesweep did not make (figures, plan.csv, report.html)",
    }.items():
        before = names(project.path)
        for words in (("plan",), ()):
            done = project.snakemake(
                *words, "--configfile", "c.yaml", "--config", f"results={name}"
            )
            lines = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
            assert done.returncode != 0 and len(lines) == 1, done.stderr
            assert why in lines[0] and "Traceback" not in done.stdout + done.stderr
        assert names(project.path) == before
    assert not lost(thesis, ("report.html", "plan.csv", "figures/paper.pdf"))
