"""Mutations: what a seed may do to the folder of a run."""

import copy
import io
import json
import os
import random
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from scalesweep.core.files import digest_of
from scalesweep.core.record import POWER, RECORD, SAMPLES, described
from tests.fakes.hostile import TEXTS, places

FAILURE = {
    "schema": 1, "run_id": "r", "cause": "BAD_RESULT", "detail": "no", "exit_code": 0,
    "signal": None, "attempt": 1, "started": "2026-01-01T00:00:00+00:00", "last_lines": ["a"],
    "ended": "2026-01-01T00:00:01+00:00", "extract_digest": "ab", "reread": "2026",
}  # fmt: skip
LEAVES: list[Any] = [
    *TEXTS, 0, 1, -1, 2, 10**9, 2**63, -(2**63) - 1, 10**30, 10**400, 0.1, -0.0, 1e308, -1e308,
    5e-324, True, False, None, [], {}, [[]], [None], {"a": {}}, [1, 1], {"values": []},
    "x" * 100_000,
    {"values": [1], "at": [5]}, {"values": [None], "at": None}, "2026-13-45", "\ud800",
    "0001-01-01",
    ["a"] * 3000, {"value": 1.0, "unit": "s", "better": "lower", "scope": "total"},
    {str(i): i for i in range(3000)}, "<script>alert(1)</script>", "$\\frac{1}{0}$", "_run",
    "hosts",
]  # fmt: skip


def _seal(folder: Path, record: Any) -> None:
    """Write a record with the right digest, whatever it says."""
    try:
        if isinstance(record, dict):
            record.pop("digest", None)
            record["digest"] = digest_of(record)
        text = json.dumps(record)
        (folder / RECORD).write_text(text, encoding="utf-8")
    except (ValueError, UnicodeEncodeError):  # half a pair of surrogates
        (folder / RECORD).write_text(json.dumps(record), encoding="utf-8")


def _record(folder: Path) -> dict[str, Any]:
    return dict(json.loads((folder / RECORD).read_bytes()))


def _change_tree(draw: random.Random, tree: Any) -> Any:
    tree = copy.deepcopy(tree)
    for _ in range(draw.randint(1, 3)):
        path = draw.choice(places(tree)[1:] or [()])
        if not path:
            return draw.choice(LEAVES)
        parent = tree
        for step in path[:-1]:
            parent = parent[step]
        kind = draw.random()
        if kind < 0.25:
            del parent[path[-1]]
        elif kind < 0.35 and isinstance(parent, dict):
            parent[draw.choice(TEXTS)] = parent.pop(path[-1])
        elif kind < 0.4 and isinstance(parent, list):
            parent *= 50
        else:
            parent[path[-1]] = copy.deepcopy(draw.choice(LEAVES))
    return tree


def values(draw: random.Random, folder: Path) -> None:
    """Fields of the record dropped, renamed, or of other types and sizes; its digest is right."""
    _seal(folder, _change_tree(draw, _record(folder)))


def metric(draw: random.Random, folder: Path) -> None:
    """Metrics, phases, energy or dates of the record."""
    record = _record(folder)
    key = draw.choice(["metrics", "phases", "energy", "point", "work", "phase_spans", "resources"])
    if key in record:
        record[key] = _change_tree(draw, record[key])
    if draw.random() < 0.3:
        record[draw.choice(["started", "ended", "wall_s", "site"])] = draw.choice(LEAVES)
    if draw.random() < 0.1:
        meaning = {"value": 1.0, "unit": "s", "better": "lower", "scope": "total"}
        record["metrics"] = {f"m{i}": meaning for i in range(draw.choice([30, 100_000]))}
    _seal(folder, record)


def cut(draw: random.Random, folder: Path) -> None:
    """A file cut short."""
    path = _file(draw, folder)
    os.truncate(path, draw.randrange(path.stat().st_size))


def flip(draw: random.Random, folder: Path) -> None:
    """Bytes of a file are others."""
    path = _file(draw, folder)
    content = bytearray(path.read_bytes())
    for _ in range(draw.randint(1, 4)):
        content[draw.randrange(len(content))] = draw.randrange(256)
    path.write_bytes(content)


def _file(draw: random.Random, folder: Path) -> Path:
    names = [name for name in (RECORD, SAMPLES, POWER) if (folder / name).exists()]
    return folder / draw.choice(names)


def link(draw: random.Random, folder: Path) -> None:
    """Something else under a file's name: a pipe, a device, a directory, a link."""
    path = folder / draw.choice([RECORD, RECORD, SAMPLES, POWER, "failure.json"])
    path.unlink(missing_ok=True)
    kind = draw.choice(["pipe", "directory", "zero", "null", "gone", "loop", "other"])
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "directory":
        path.mkdir()
        (path / "file").write_text("x")
    else:
        others = sorted(p for p in folder.parent.iterdir() if p != folder and p.is_dir())
        target = {"zero": "/dev/zero", "null": "/dev/null", "gone": folder / "nothing",
                  "loop": path, "other": draw.choice(others) / path.name}[kind]  # fmt: skip
        path.symlink_to(target)


def arrays(draw: random.Random, folder: Path) -> None:
    """Samples of other shapes, types and values, with the right checksum."""
    with np.load(folder / SAMPLES) as found:
        kept = dict(found)
    for name in draw.sample(sorted(kept), k=min(len(kept), draw.randint(1, 2))):
        kept[name] = _array(draw, kept[name])
        if draw.random() < 0.15:
            other = draw.choice(["step_times", "warmup_step_times", "x/../y", "global_times"])
            kept[other] = kept.pop(name)
    np.savez(folder / SAMPLES, **kept)
    _described(folder, SAMPLES)


def _array(draw: random.Random, array: Any) -> Any:
    extreme = draw.choice([0.0, -1.0, np.nan, np.inf, 1e308, 5e-324, 1e200, 1e99])
    one = array.astype(float)
    one.flat[draw.randrange(one.size)] = extreme
    one = draw.choice([one, one, array.astype(float)])
    with np.errstate(all="ignore"):
        return draw.choice([
            one, np.full_like(one, extreme), one[:1], one.ravel(), one[..., None], np.empty((0, 1)),
            np.array(extreme), one.astype(object), one.astype(str), one.astype(complex), array > 0,
            array.astype(np.float16), array.astype(int), np.array([{"a": 1}], object),
            np.zeros((3, 2), "M8[s]"), np.repeat(array, 3, axis=0), np.asfortranarray(array * 2),
            np.zeros(3, [("a", "f8"), ("b", "i4")]), one.astype(">f8"), np.float64("nan") * array,
        ])  # fmt: skip


def archive(draw: random.Random, folder: Path) -> None:
    """An archive that claims other sizes than it has, many members, or no arrays."""
    content = (folder / SAMPLES).read_bytes()
    kind = draw.choice(["sizes", "many", "text", "headers", "deflated", "empty"])
    out = io.BytesIO()
    if kind == "sizes":  # sixteen GiB, says the directory
        at = content.rindex(b"PK\x01\x02")
        content = content[: at + 24] + (0xFFFFFFF0).to_bytes(4, "little") + content[at + 28 :]
    elif kind == "empty":
        content = b""
    else:
        method = zipfile.ZIP_DEFLATED if kind == "deflated" else zipfile.ZIP_STORED
        with zipfile.ZipFile(out, "w", method) as made:
            for i in range(5000 if kind == "many" else 1):
                made.writestr(f"a{i}.npy" if kind == "many" else "local_times.npy", {
                    "many": b"", "text": b"hello", "deflated": bytes(30_000_000),
                    "headers": b"\x93NUMPY\x01\x00\x76\x00" + b"{'descr': '<f8', 'fortran_order': "
                    b"False, 'shape': (999999999999, 4), }".ljust(117) + b"\n",
                }[kind])  # fmt: skip
        content = out.getvalue()
    (folder / SAMPLES).write_bytes(content)
    _described(folder, SAMPLES)


def power(draw: random.Random, folder: Path) -> None:
    """power.csv with other rows, times, numbers and names, with the right checksum."""
    path = folder / POWER
    if not path.exists():
        return values(draw, folder)
    lines = path.read_text().splitlines()
    for _ in range(draw.randint(1, 4)):
        row = lines[draw.randrange(len(lines))].split(",")
        row[draw.randrange(len(row))] = draw.choice(
            ["", "nan", "inf", "-1e308", "1e308", "x", "9999-12-31", "0001-01-01", '"', "n0", "\0"]
        )
        lines[draw.randrange(len(lines))] = ",".join(row)
    if draw.random() < 0.3:
        draw.shuffle(lines)
    path.write_text("\n".join(lines[: draw.choice([0, 1, 2, None])]))
    return _described(folder, POWER)


def _described(folder: Path, name: str) -> None:
    record = _record(folder)
    if name == SAMPLES:
        record["samples"] = {"file": SAMPLES, **described(folder / name)}
    elif isinstance(record.get("energy"), dict):
        record["energy"]["table"] = described(folder / name)
    _seal(folder, record)


def gone(draw: random.Random, folder: Path) -> None:
    """Files lost, and a failure with anything in it."""
    path = draw.choice([RECORD, RECORD, SAMPLES, POWER, ""])
    if path:
        (folder / path).unlink(missing_ok=True)
    else:
        shutil.rmtree(folder)
        return
    content = json.dumps(_change_tree(draw, FAILURE))
    (folder / "failure.json").write_text(content[: draw.choice([None, 30, 0])])


MUTATIONS: tuple[Callable[[random.Random, Path], None], ...] = (
    *(values, values, metric, metric, arrays, arrays),
    *(cut, flip, link, archive, power, gone),
)
