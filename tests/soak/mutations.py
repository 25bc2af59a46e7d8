"""Hostile result folders: the folders of runs are changed by mutations, then all is reported.

``make soak`` calls this for 2,000 folders, the tests for fewer. Whatever lies in a run's folder,
the report is written within its limit, every run that was not touched is in it with its numbers,
and one that was is either taken or a hole with its cause. A seed decides the mutations; a violation
names it.
"""

import argparse
import contextlib
import copy
import gc
import io
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
import traceback
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from scalesweep.commands import figures, report, summarise, tables
from scalesweep.core.files import digest_of
from scalesweep.core.plan_format import read_plan, write_plan_file
from scalesweep.core.record import POWER, RECORD, SAMPLES, described, write_record
from scalesweep.planning.plan import plan_csv
from scalesweep.planning.run_state import UNUSABLE_RECORD, scan
from scalesweep.planning.set_aside import BAD_RECORD
from tests.fakes.hostile import TEXTS, places
from tests.fakes.plan import whole_plan
from tests.fakes.training import SITE, Training, make_training
from tests.soak.campaign import Violation

LIMIT_S = 120.0
GOOD, TOUCHED = 3, 5  # repeats of every point
POINTS = 5
BATCH = POINTS * TOUCHED  # folders that are changed together
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


def _environment(ranks: int) -> dict[str, Any]:
    hardware = {"cpu_model": "x", "cpus": 4, "gpus": [{"name": "g", "max_sm_clock_mhz": 1400}]}
    rows = [
        {"host": f"n{rank % 2}", "affinity": "0-3", "pid": rank, "hardware": hardware}
        for rank in range(ranks)
    ]
    return {
        "resources": {"hosts": [f"n{rank % 2}" for rank in range(ranks)], "slurm_nodes": []},
        "environment": {
            "ranks": rows, "versions": {"python": "3.11", "tensorflow": "2.18.1"},
            "variables": {"OMP_NUM_THREADS": "4"},
            "node": {"host": "n0", "cpu_model": "x", "cores": 4, "memory_bytes": 2**34, "gpus": []},
        },
        "git": {"commit": "0" * 40, "dirty": False}, "command": ["python", "main.py"],
        "order": {"seed": 1, "position": 1, "of": 9},
    }  # fmt: skip


def make_base(root: Path) -> None:
    """Three points of training with power, and two of an external program, all runs whole."""
    repeats = GOOD + TOUCHED
    train = Training(
        {"ranks": [1, 2, 4]},
        repeats=repeats,
        work=["ranks"],
        fixed={"target_accuracy": 0.8},
        planned=lambda point: 1600,
        changes=lambda point, repeat: _environment(point["ranks"]),
        arrays=lambda arrays, point, repeat: arrays.update(
            span_input=arrays["local_times"] * 0.1, span_compute=arrays["local_times"] * 0.7
        ),
    )
    make_training(root, train)
    entry = json.loads((root / "plan.json").read_text())["experiments"][0]
    runs = [
        _stranger(root / "runs" / SITE, size, repeat)
        for size in (1, 2)
        for repeat in range(repeats)
    ]
    other = {
        "name": "strangers", "benchmark": "stranger", "axes": ["size"], "runs": runs,
        "fixed": {"ranks": 1}, "main_metric": "rate", "points": 2,
    }  # fmt: skip
    plan = whole_plan({"campaign": "hostile", "site": SITE, "experiments": [entry, other]})
    write_plan_file(root / "plan.json", plan)
    for name in ("tables", "summary.parquet"):
        path = root / name
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)


def _stranger(folder: Path, size: int, repeat: int) -> dict[str, Any]:
    point = {"ranks": 1, "size": size}
    run_id = f"stranger-r1-{digest_of([size, repeat], 6)}"
    value = size + repeat / 100
    metrics = {
        "rate": {"value": value, "unit": "items/s", "better": "higher", "scope": "total"},
        "loss": {"value": 1 / value, "unit": "1", "better": "lower", "scope": "rank"},
    }
    record = {
        "run_id": run_id, "benchmark": "stranger", "version": 1, "point": point, "repeat": repeat,
        "site": SITE, "source": "measured", "started": f"2026-03-01T08:{repeat:02}:00+00:00",
        "ended": f"2026-03-01T08:{repeat:02}:10+00:00", "wall_s": 9.5, "attempt": 1, "phases": {},
        "metrics": metrics, "work": {}, **_environment(1),
        "notes": {"extract": {"extract_digest": "ab", "metrics": {"loss": {"matches": 3}}}},
    }  # fmt: skip
    samples = folder / SAMPLES
    np.savez(samples, loss=np.linspace(1, 1 / value, 3))
    write_record(folder / run_id, record, samples)
    return {"run_id": run_id, "repeat": repeat, "point": point, "status": "new"}


# --- what is done to a run's folder -------------------------------------------------------------


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


# --- the report of it ---------------------------------------------------------------------------


def report_of(root: Path, drawn: bool = False) -> None:
    """What a call of Snakemake makes of the runs below ``root``: summary, tables and page.

    Without ``drawn`` there are no figures.
    """
    runs = root / "runs" / SITE
    plan = read_plan(root / "plan.json")
    every = [run for entry in plan["experiments"] for run in entry["runs"]]
    states = scan(runs, [run["run_id"] for run in every], quarantine=True, verify=True)
    for run in every:
        state = states[run["run_id"]]
        run["status"], run["cause"], run["detail"] = state.status, state.cause, state.detail
    plan.pop("digest", None)
    write_plan_file(root / "plan.json", plan)
    (root / "plan.csv").write_text(plan_csv(plan), encoding="utf-8")
    common = ["--plan", str(root / "plan.json")]
    summary = ["--summary", str(root / "summary.parquet")]
    _call(summarise, *common, "--runs", str(runs), "--out", summary[1])
    made = ["--tables", str(root / "tables"), "--figures", str(root / "figures")]
    _call(tables, *common, *summary, "--runs", str(runs), "--out", made[1])
    (root / "figures").mkdir(exist_ok=True)
    (root / "figures" / "index.json").write_text("[]")
    if drawn:
        _call(figures, *common, *made[:2], "--out", made[3])
    page = str(root / "report.html")
    _call(report, *common, *summary, *made, "--runs", str(runs), "--out", page)


def _call(verb: Any, *words: str) -> None:
    parser = argparse.ArgumentParser()
    verb.add_arguments(parser)
    threshold = gc.get_threshold()
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            verb.run(parser.parse_args(words))
    finally:  # a verb has its process for itself
        gc.enable()
        gc.unfreeze()
        gc.set_threshold(*threshold)


def baseline(root: Path) -> dict[str, dict[str, Any]]:
    """Numbers of every run in the tables, by id."""
    report_of(root)
    return numbers(root)


def numbers(root: Path) -> dict[str, dict[str, Any]]:
    """Rows of the tables `runs`, by run: status, cause and what was measured."""
    found = {}
    for path in sorted((root / "tables").glob("*/runs.parquet")):
        for row in pd.read_parquet(path).to_dict("records"):
            found[str(row["run_id"])] = {str(k): v for k, v in row.items() if k != "outlier"}
    return found


class Batch:
    """A results folder some of whose runs are mutated."""

    def __init__(self, base: Path, known: Mapping[str, Mapping[str, Any]], root: Path) -> None:
        self.root, self.known = root, known
        shutil.copytree(base, root)
        plan = read_plan(root / "plan.json")
        self.touched = [
            run["run_id"]
            for entry in plan["experiments"]
            for run in entry["runs"]
            if run["repeat"] >= GOOD
        ]

    def check(self, done: Mapping[str, str], drawn: bool) -> Counter[str]:
        """Report, and count what became of the mutated runs; raises Violation."""
        began = time.monotonic()
        try:
            with alarm(LIMIT_S):
                report_of(self.root, drawn)
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            traceback.print_exc()
            raise Violation(f"no report: {type(error).__name__}: {error}") from error
        took = time.monotonic() - began
        found, page = numbers(self.root), (self.root / "report.html").read_text("utf-8")
        became: Counter[str] = Counter()
        for run_id, before in self.known.items():
            now = found.get(run_id)
            if now is None:
                raise Violation(f"{run_id} is not in the table of runs")
            if run_id in done:
                self._check_touched(run_id, now, page)
                became[now["cause"] or now["status"]] += 1
            else:
                lost = {k: (v, now.get(k)) for k, v in before.items() if not _same(v, now.get(k))}
                if lost:
                    raise Violation(f"the good run {run_id} has changed: {lost}")
        became["seconds"] = round(took)
        return became

    def _check_touched(self, run_id: str, row: Mapping[str, Any], page: str) -> None:
        if row["status"] in ("done", "new", "unsupported"):
            return
        state = scan(self.root / "runs" / SITE, [run_id], remember=False)[run_id]
        # One that was a link to the record of another is new once that is set aside.
        told = state.status == "new" or (state.cause and "\n" not in state.detail.strip())
        if not row["cause"] or not told:
            raise Violation(f"{run_id} has failed without a cause in a line: {state}")
        if row["cause"] in (BAD_RECORD, UNUSABLE_RECORD) and str(row["cause"]) not in page:
            raise Violation(f"{run_id}: {row['cause']} is not on the page")


def _same(one: Any, other: Any) -> bool:
    return one == other or (pd.isna(one) and pd.isna(other))


@contextlib.contextmanager
def alarm(seconds: float) -> Iterator[None]:
    """Raise TimeoutError in the body after so many seconds."""

    def late(number: int, frame: Any) -> None:
        raise TimeoutError(f"took longer than {seconds:g} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def soak(scratch: Path, seed: int, folders: int, draw_every: int = 0) -> Counter[str]:
    """Mutate so many result folders, ``BATCH`` at a time, and report on each batch.

    ``draw_every``: figures are drawn of every so many batches (0: of none). Returns what became of
    the runs. Raises Violation naming the seed, the batch and what was done to its folders.
    """
    base = scratch / "base"
    make_base(base)
    known = baseline(base)
    total: Counter[str] = Counter()
    for number in range(-(-folders // BATCH)):
        draw = random.Random(f"{seed}-{number}")
        batch = Batch(base, known, scratch / "batch")
        done = {}
        for run_id in batch.touched:
            mutation = draw.choice(MUTATIONS)
            mutation(draw, batch.root / "runs" / SITE / run_id)
            done[run_id] = mutation.__name__
        try:
            total += batch.check(done, bool(draw_every) and number % draw_every == 0)
        except Violation as violation:
            raise Violation(f"seed {seed}, batch {number}: {violation}; {done}") from violation
        shutil.rmtree(batch.root)
    return total


def main() -> None:
    """Mutate as many folders as are asked for and print what became of the runs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folders", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=time.time_ns() % 100_000)
    parser.add_argument("--draw-every", type=int, default=10, help="batches")
    args = parser.parse_args()
    print(f"seed {args.seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="mutations-") as folder:
        try:
            total = soak(Path(folder).resolve(), args.seed, args.folders, args.draw_every)
        except Violation as violation:
            sys.exit(f"violation: {violation}")
    print(", ".join(f"{count} {what}" for what, count in total.most_common()))


if __name__ == "__main__":
    main()
