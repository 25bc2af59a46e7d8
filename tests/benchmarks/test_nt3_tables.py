"""NT3's tables: what is generated, written and staged; every way to read them; their checks."""

import hashlib
import re
from pathlib import Path

import numpy as np
import pytest

from nt3 import dataset, formats, loading
from tests.benchmarks.programs import Later

tables = Later("nt3.tables")
TABLES = dataset.Tables(200, 40, 12, "csv")
WHOLE = loading.Part(0, 40, True)


def text_table(path):
    return np.array([[float(cell) for cell in line.split(",")] for line in path.open()])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The data set in all formats, as stage.py makes it."""
    folder = tmp_path_factory.mktemp("nt3")
    for data_format in formats.FORMATS:
        tables = dataset.Tables(200, 40, 12, data_format)
        for split in dataset.SPLITS:
            path = Path(tables.path(folder, split))
            path.parent.mkdir(exist_ok=True)
            tables.write(str(path), split, 0)
    return folder


def test_bytes_never_change(folder):
    """Also with another NumPy or processor: whoever changes them raises format_version."""
    content = Path(TABLES.path(folder, "train")).read_bytes()
    assert TABLES.identity["format_version"] == 1
    assert hashlib.blake2b(content, digest_size=8).hexdigest() == "e0e267fee4b916cb"


def test_text_has_the_originals_shape(folder):
    path = Path(TABLES.path(folder, "train"))
    table = text_table(path)
    assert table.shape == (40, 201)
    assert set(table[:, 0]) == {0, 1} and table[:, 0].sum() == 20
    assert (table[:, 1:] > 0).all()
    cells = path.read_text().partition("\n")[0].split(",")[1:]
    assert all(re.fullmatch(r"(0|[1-9]\d*)\.\d{5}", cell) for cell in cells)


@pytest.mark.slow
@pytest.mark.parametrize("name", loading.READERS)
def test_every_reader_gives_the_same_table(folder, name):
    data_format = name if name in formats.FORMATS else "csv"
    path = dataset.Tables(200, 40, 12, data_format).path(folder, "train")
    expected = text_table(Path(TABLES.path(folder, "train"))).astype(np.float32)
    _, problem = loading.import_package(name)
    assert problem is None
    for part, rows in (
        (WHOLE, slice(None)),
        (loading.Part(0, 10, False), slice(0, 10)),
        (loading.Part(20, 10, False), slice(20, 30)),
        (loading.Part(30, 10, False), slice(30, 40)),
    ):
        table, problem = loading.load(name, path, 200, part)
        assert problem is None
        assert table.dtype == np.float32 and table.shape == (part.count, 201)
        # pandas rounds text to the last digit of float64 or one beside it.
        np.testing.assert_allclose(table, expected[rows], rtol=1.2e-7)


def in_line(number, column, text):
    """A function that gives a cell of a CSV table another text; None: its line ends there."""

    def change(lines):
        cells = lines[number].split(",")
        lines[number] = ",".join(cells[:column] + ([] if text is None else [text]))
        if text is not None:
            lines[number] += "," + ",".join(cells[column + 1 :])
        return lines

    return change


BREAKS = {
    "text": in_line(3, 8, "high"), "short": in_line(4, 190, None), "nan": in_line(7, 10, "nan"),
    "label": in_line(8, 0, "2"), "rows": lambda lines: lines[:-1], "nothing": lambda lines: [],
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("kind", BREAKS)
@pytest.mark.parametrize("name", ["pandas", "pandas_float32", "numpy", "pyarrow"])
def test_broken_tables_are_told(folder, tmp_path, name, kind):
    path = tmp_path / "part-000000.csv"
    lines = Path(TABLES.path(folder, "train")).read_text().splitlines()
    path.write_text("".join(f"{line}\n" for line in BREAKS[kind](lines)))
    loading.import_package(name)
    table, problem = loading.load(name, str(path), 200, WHOLE)
    code, message = problem or (65, tables.find_fault(table, str(path)))
    assert code == 65 and message.startswith(f"{path} ") and message.endswith(loading.ADVICE)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["parquet", "tfrecord"])
def test_broken_binary_tables_are_told(folder, tmp_path, name):
    path = Path(dataset.Tables(200, 40, 12, name).path(folder, "train"))
    copy = tmp_path / path.name
    copy.write_bytes(path.read_bytes()[:-500])
    loading.import_package(name)
    assert loading.load(name, str(copy), 200, WHOLE)[1][0] == 65
    code, message = loading.load(name, str(path), 150, WHOLE)[1]
    assert code == 65 and str(path) in message
    code, message = loading.load(name, str(path), 200, loading.Part(0, 60, True))[1]
    assert code == 65 and f"{path} has (40, 201) values, not (60, 201)" in message


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
