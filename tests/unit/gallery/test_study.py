"""study.yaml: what is refused, and that every study of the gallery can be read."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from scalesweep.core.errors import UserError
from scalesweep.core.paths import GALLERY
from scalesweep.gallery.bring import bring, files_of
from scalesweep.gallery.study import load_study, study_names
from tests.fakes.gallery import SMALL, write_study


def test_every_study_can_be_read_and_has_its_readme() -> None:
    assert len(study_names()) >= 3
    for name in study_names():
        study = load_study(name)
        assert study.checks and study.imports
        readme = (GALLERY / name / "README.md").read_text()
        assert f"scalesweep gallery {name}" in readme
        words = " ".join(readme.split())
        for stated in (study.source, study.citation, study.licence):
            assert f": {stated}." in words, name
        assert "Must come out: " in words
        assert len(readme.strip().splitlines()) <= 16


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"licence": None}, "'licence' is a required"),
        ({"imports": [{"name": "a"}]}, "imports: a: name files of the source, or what is shipped"),
        ({"imports": [{"name": "a", "shipped": "b.csv"}]}, "shipped: b.csv: no such file"),
        ({"imports": [{"name": "a", "shipped": "table.csv"}] * 2}, "a: two have this name"),
        ({"extra": 1}, "extra"),
        ({"published": [{"value": 1.5}]}, "checks.0.published"),
        ({"published": {"column": "x"}}, "name either file or rows_of"),
        ({"published": {"rows_of": "b", "column": "x"}}, "rows_of: b: allowed: rates"),
        ({"published": {"file": "b.csv", "column": "x"}}, "b.csv: no such file"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    content = {**SMALL, **change}
    if "published" in change:
        content = {**SMALL, "checks": [{**SMALL["checks"][0], **change}]}
        del content["checks"][0]["published"]
        content["checks"][0]["published"] = change["published"]
    write_study(tmp_path, {key: value for key, value in content.items() if value is not None})
    with pytest.raises(UserError) as error:
        load_study("small", tmp_path)
    assert "study.yaml" in str(error.value)
    assert message in str(error.value) or "licence" in str(error.value)


def test_a_study_that_is_not_there(tmp_path: Path) -> None:
    write_study(tmp_path, SMALL)
    with pytest.raises(UserError, match="smal: no study of the gallery; did you mean small"):
        load_study("smal", tmp_path)


def test_a_source_that_is_another_folder(tmp_path: Path) -> None:
    content = {**SMALL, "imports": [{**SMALL["imports"][0], "files": ["docs/table.csv"]}]}
    write_study(tmp_path, content)
    study = load_study("small", tmp_path)
    (tmp_path / "other").mkdir()
    with pytest.raises(UserError) as error:
        files_of(study, tmp_path / "other")
    assert str(error.value) == (
        f"{tmp_path / 'other'}: holds no docs/table.csv; SOURCE is a checkout of nothing"
    )
    with pytest.raises(UserError, match="no such file or folder; SOURCE is a checkout"):
        files_of(study, tmp_path / "none")
    del content["imports"][0]["shipped"]
    (tmp_path / "small" / "study.yaml").write_text(yaml.safe_dump(content))
    with pytest.raises(UserError, match="small: its numbers are not shipped: name SOURCE"):
        files_of(load_study("small", tmp_path), None)


def test_a_source_with_several_files_for_one_table(tmp_path: Path) -> None:
    content = {**SMALL, "imports": [{**SMALL["imports"][0], "files": ["*.csv"]}]}
    write_study(tmp_path, content)
    study = load_study("small", tmp_path)
    source = tmp_path / "checkout"
    source.mkdir()
    for name in ("a.csv", "b.csv"):
        (source / name).write_text("gpus,rate,printed\n1,100.0,100%\n")
    with pytest.raises(UserError) as error:
        files_of(study, source)
    assert str(error.value) == (
        f"{source}: 2 files match *.csv, and small: rates reads one: name it as SOURCE"
    )
    assert [each.path for each in bring(files_of(study, source / "b.csv"), tmp_path, "x")] == [
        source / "b.csv"
    ]


def test_a_source_where_nothing_is_read(tmp_path: Path) -> None:
    write_study(tmp_path, SMALL)
    study = load_study("small", tmp_path)
    with pytest.raises(UserError, match="small: reads no SOURCE: all of its numbers are shipped"):
        files_of(study, tmp_path)
