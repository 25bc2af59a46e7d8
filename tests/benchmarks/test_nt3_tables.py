"""NT3's tables: what is generated, written and staged; every way to read them; their checks."""

import hashlib
import re
from pathlib import Path

import numpy as np
import pytest

from nt3 import dataset, formats, loading
from tests.benchmarks.programs import Later

tables = Later("nt3.tables")
WHOLE = loading.Part(0, 40, True)


def table_of(folder, data_format="csv"):
    return Path(dataset.Tables(200, 40, 12, data_format).path(folder, "train"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The data set in all formats."""
    folder = tmp_path_factory.mktemp("nt3")
    for split in dataset.SPLITS:
        (folder / split).mkdir()
        for data_format in formats.FORMATS:
            made = dataset.Tables(200, 40, 12, data_format)
            made.write(made.path(folder, split), split, 0)
    return folder


@pytest.fixture(scope="module")
def expected(folder):
    lines = table_of(folder).read_text().splitlines()
    return np.array([[float(cell) for cell in line.split(",")] for line in lines])


def test_bytes_never_change_and_look_like_the_originals(folder, expected):
    """Also with another NumPy or processor: whoever changes them raises format_version."""
    content = table_of(folder).read_bytes()
    assert dataset.Tables.identity["format_version"] == 1
    assert hashlib.blake2b(content, digest_size=8).hexdigest() == "e0e267fee4b916cb"
    assert expected.shape == (40, 201) and (expected[:, 1:] > 0).all()
    assert set(expected[:, 0]) == {0, 1} and expected[:, 0].sum() == 20
    cells = content.decode().partition("\n")[0].split(",")[1:]
    assert all(re.fullmatch(r"(0|[1-9]\d*)\.\d{5}", cell) for cell in cells)


@pytest.mark.slow
@pytest.mark.parametrize("name", loading.READERS)
def test_every_reader_gives_the_same_table(folder, expected, name):
    path = table_of(folder, name if name in formats.FORMATS else "csv")
    assert loading.import_package(name)[1] is None
    for part in (WHOLE, *(loading.Part(start, 10, False) for start in (0, 20, 30))):
        table, problem = loading.load(name, str(path), 200, part)
        assert problem is None and table.dtype == np.float32
        # pandas rounds text to the last digit of float64 or one beside it.
        rows = expected[part.start : part.start + part.count].astype(np.float32)
        np.testing.assert_allclose(table, rows, rtol=1.2e-7)


# A cell or line of the table as it is broken: row, column, text.
BREAKS = {"text": (3, 8, "high"), "nan": (7, 10, "nan"), "label": (8, 0, "2")}


def broken(lines, kind):
    """The lines of a table, broken."""
    if kind in BREAKS:
        row, column, text = BREAKS[kind]
        cells = lines[row].split(",")
        cells[column] = text
        return [*lines[:row], ",".join(cells), *lines[row + 1 :]]
    short = [*lines[:-1], lines[-1][: len(lines[-1]) // 2]]
    return {"short": short, "rows": lines[:-1], "nothing": []}[kind]


@pytest.mark.slow
@pytest.mark.parametrize("kind", [*BREAKS, "short", "rows", "nothing"])
@pytest.mark.parametrize("name", ["pandas", "pandas_float32", "numpy", "pyarrow"])
@pytest.mark.filterwarnings("ignore:loadtxt")
def test_broken_tables_are_named(folder, tmp_path, name, kind):
    path = tmp_path / "part-000000.csv"
    lines = broken(table_of(folder).read_text().splitlines(), kind)
    path.write_text("".join(f"{line}\n" for line in lines))
    loading.import_package(name)
    table, problem = loading.load(name, str(path), 200, WHOLE)
    code, message = problem or (65, tables.find_fault(table, str(path)))
    assert code == 65 and message.startswith(f"{path} ") and message.endswith(loading.ADVICE)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["parquet", "tfrecord"])
def test_broken_binary_tables_are_named(folder, tmp_path, name):
    path = table_of(folder, name)
    copy = tmp_path / path.name
    copy.write_bytes(path.read_bytes()[:-500])
    loading.import_package(name)
    longer = loading.Part(0, 60, True)
    for there, features, part in ((copy, 200, WHOLE), (path, 150, WHOLE), (path, 200, longer)):
        code, message = loading.load(name, str(there), features, part)[1]
        assert code == 65 and message.startswith(f"{there} ")
    assert f"{path} has (40, 201) values, not (60, 201)" in message


@pytest.mark.slow
def test_scaling_is_by_the_largest_of_both_tables_and_all_ranks():
    rng = np.random.default_rng(1)
    train, test = (rng.normal(size=(rows, 6)).astype(np.float32) for rows in (150, 70))
    train[:, 3] = test[:, 3] = 0
    test[69, 2] = -40
    labels = train[:, 0].copy()
    largest = np.abs(np.concatenate([train, test]))[:, 1:].max(axis=0)
    assert largest[1] == 40
    largest[2] = 1  # where there are only zeros
    expected = [table[:, 1:] / largest for table in (train, test)]
    tables.scale(train, test, lambda values: values)
    for table, each in zip((train, test), expected, strict=True):
        np.testing.assert_allclose(table[:, 1:], each, rtol=1e-6)
    np.testing.assert_array_equal(train[:, 0], labels)
    # Another rank has seen values four times as large.
    tables.scale(train, test, lambda values: 4 * values)
    np.testing.assert_allclose(train[:, 1:], expected[0] / 4, rtol=1e-6)


def test_a_reader_that_is_not_here_is_69(monkeypatch):
    monkeypatch.setitem(loading.READERS, "pandas", (loading.READERS["pandas"][0], "absent.module"))
    code, said = loading.import_package("pandas")[1]
    assert code == 69 and said.startswith("reader pandas: needs the Python package absent (")
