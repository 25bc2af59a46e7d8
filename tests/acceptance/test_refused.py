"""A wrong input is one line with file, key and what is allowed; exit code 1; nothing is written."""

import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.conftest import Project, make_project

pytestmark = pytest.mark.slow

TABLE = yaml.safe_load(Path(__file__).with_name("refused.yaml").read_text())
# Snakemake's own, and the home of the test's user.
NOT_OURS = (".snakemake", "home")


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project that no case changes but for its own files."""
    return make_project(tmp_path_factory.mktemp("refused") / "project")


def written(path: Path, content: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else yaml.safe_dump(content))


def changed(content: dict[str, Any], values: dict[str, Any]) -> dict[str, Any]:
    """A file's content with these values at its keys, named from the top."""
    copy: dict[str, Any] = yaml.safe_load(yaml.safe_dump(content))
    for name, value in values.items():
        *folders, key = name.split(".")
        place = copy
        for folder in folders:
            place = place[folder]
        place[key] = value
    return copy


def files_of(folder: Path) -> dict[str, int]:
    """When every file was written, and 0 of each folder, but Snakemake's own."""
    found = {}
    for path in folder.rglob("*"):
        name = path.relative_to(folder)
        if name.parts[0] not in NOT_OURS and "__pycache__" not in name.parts:
            found[str(name)] = path.stat().st_mtime_ns if path.is_file() else 0
    return found


@pytest.mark.parametrize("case", TABLE["cases"], ids=lambda case: case["name"])
def test_a_mistake_is_one_line_and_writes_nothing(shared: Project, case: dict[str, Any]) -> None:
    sets = case.get("set", {})
    files = {name: changed(content, sets.get(name, {})) for name, content in TABLE["base"].items()}
    files |= case.get("write", {})
    for name, content in files.items():
        written(shared.path / name, content)
    before = files_of(shared.path)
    module, *words = shlex.split(case.get("command", TABLE["command"]))
    done = shared.snakemake(*words) if module == "snakemake" else shared.scalesweep(*words)
    after = files_of(shared.path)
    for name in [*case.get("write", {}), *(after.keys() - before.keys())]:
        if (shared.path / name).is_file():
            (shared.path / name).unlink()
    shutil.rmtree(shared.path / "results", ignore_errors=True)
    said = done.stdout + done.stderr
    lines = [line for line in said.splitlines() if line.startswith("error: ")]
    print("\n".join(lines))
    assert (done.returncode, len(lines)) == (1, 1), said
    assert "Traceback" not in said
    assert [words for words in case["line"] if words not in lines[0]] == [], lines[0]
    assert after == before
