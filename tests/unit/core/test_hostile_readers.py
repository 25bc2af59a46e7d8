"""What runs, sites and logs leave, with anything in it: it is read, or a line says why not.

A whole file is taken, and some of its values, bytes or lines are replaced by hostile ones. Nothing
but UserError (or a word for "there is none") may come out.
"""

import copy
import io
import json
import math
import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from scalesweep.compute.external_program import read_attempt
from scalesweep.compute.log_metrics import Metric, read_metrics
from scalesweep.compute.power_sampling import Sampling
from scalesweep.compute.program_output import BadResultError, read_native
from scalesweep.core.errors import UserError
from scalesweep.core.record import BadRecordError, read_failure, read_record, write_record
from scalesweep.slurm.commands import parse_queue
from scalesweep.slurm.job_identity import run_of
from scalesweep.slurm.job_table import read_jobs
from scalesweep.slurm.sacct import FIELDS, cause_of, parse
from scalesweep.state.run_state import scan
from scalesweep.tables.power_series import read_power
from scalesweep.tables.summary import build_summary
from tests.fakes import logs as fake_logs
from tests.fakes.hostile import LEAVES, places
from tests.fakes.logs import Read
from tests.fakes.records import make_record, times

RUN = "data_loading-r2-0"
SETTINGS = settings(
    max_examples=75,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
METRIC = {"value": 1.5, "unit": "s", "better": "lower", "scope": "total"}
NATIVE = {
    "phases": {"import": 0.5, "timed": 3.0}, "phase_spans": [["timed", 1.0, 4.0]],
    "metrics": {"speed": METRIC}, "work": {"samples_per_epoch": 640, "bytes_per_epoch": None},
    "resources": {"hosts": ["a", "b"], "slurm_nodes": [None, None]},
    "environment": {
        "ranks": [{"host": "a", "affinity": "0-3", "pid": 7, "visible_gpus": None,
                   "hardware": {"cpu_model": "x", "cpus": 4, "gpus": [{"name": "g"}]}}],
        "versions": {"python": "3.11"}, "variables": {"OMP_NUM_THREADS": "4"},
    },
    "notes": {"page_cache": {"dropped": True}},
}  # fmt: skip
FAILURE = {
    "schema": 1, "run_id": RUN, "cause": "BAD_RESULT", "detail": "no", "exit_code": 0,
    "signal": None, "attempt": 1, "started": "2026-01-01T00:00:00+00:00", "last_lines": ["a"],
    "ended": "2026-01-01T00:00:01+00:00", "extract_digest": "ab", "reread": "2026",
}  # fmt: skip
ENERGY = {
    "sources": ["rapl"], "interval_s": 1.0, "hosts": ["n"], "missing": None, "joules": 5.0,
    "domains": {"n": {"p": {"joules": 5.0, "counted": True, "seconds": 2.0}}}, "seconds": 2.0,
    "mean_watts": 2.5, "peak_watts": 3.0, "phases": {"timed": 5.0}, "joules_per_sample": 0.1,
    "sampler_cpu_s": 0.1, "samples": 3, "notes": [],
}  # fmt: skip
HOST = {
    "host": "n", "interval_s": 1.0, "missing": None, "refused": {}, "lost": {}, "samples": 2,
    "cpu_s": 0.1, "domains": [{"name": "p", "source": "rapl", "part": "package",
    "kind": "counter", "unit": 1e-6, "wrap": 1000, "device": "", "pace": 0.0}],
}  # fmt: skip


@st.composite
def changed(draw: st.DrawFn, tree: Any) -> Any:
    """A tree of JSON with one to three of its values replaced, dropped or added to."""
    tree = copy.deepcopy(tree)
    for _ in range(draw(st.integers(1, 3))):
        path = draw(st.sampled_from(places(tree)))
        value = draw(LEAVES.filter(lambda leaf: not isinstance(leaf, float) or math.isfinite(leaf)))
        if not path:
            if draw(st.integers(0, 9)) == 0:
                return value
            continue
        parent = tree
        for step in path[:-1]:
            parent = parent[step]
        if draw(st.booleans()):
            parent[path[-1]] = copy.deepcopy(value)
        else:
            del parent[path[-1]]
    return tree


@st.composite
def damaged(draw: st.DrawFn, content: bytes) -> bytes:
    """Bytes with a piece lost, something put in, or other bytes in some places."""
    begin = draw(st.integers(0, len(content)))
    lost = draw(st.sampled_from([0, 0, 1, 7, 400, len(content)]))
    put = draw(st.binary(max_size=20) | st.sampled_from([b"9" * 5000, b"[" * 9000, b"\0" * 100]))
    found = bytearray(content[:begin] + put + content[begin + lost :])
    for _ in range(draw(st.integers(0, 4)) if found else 0):
        found[draw(st.integers(0, len(found) - 1))] = draw(st.integers(0, 255))
    return bytes(found)


def json_bytes(tree: Any) -> st.SearchStrategy[bytes]:
    """JSON with hostile values in it, or not even that."""
    whole = changed(tree).map(lambda value: json.dumps(value).encode())
    return whole | damaged(json.dumps(tree).encode())


def one_line(error: Exception) -> None:
    assert str(error).strip() and "\n" not in str(error)


@SETTINGS
@given(content=json_bytes(NATIVE))
def test_native_json(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "native.json").write_bytes(content)
    try:
        parts = read_native(tmp_path)
        path = write_record(tmp_path / RUN, {**make_record(RUN), **parts})
        read_record(path)
        build_summary([path])
    except (BadResultError, UserError) as error:
        one_line(error)


@SETTINGS
@given(content=json_bytes(FAILURE))
def test_failure_json(tmp_path: Path, content: bytes) -> None:
    (tmp_path / RUN).mkdir(exist_ok=True)
    (tmp_path / RUN / "failure.json").write_bytes(content)
    state = scan(tmp_path, [RUN])[RUN]
    assert state.status == "failed" and isinstance(state.cause, str)
    failure = read_failure(tmp_path / RUN)
    assert failure is None or isinstance(failure, dict)


@SETTINGS
@given(tree=changed({**make_record(RUN), **NATIVE, "energy": ENERGY}))
@pytest.mark.slow
def test_a_record_of_who_knows_what_with_the_right_digest(tmp_path: Path, tree: Any) -> None:
    try:
        if not isinstance(tree, dict):
            return
        np.savez(tmp_path / "samples.npz", **times())
        path = write_record(tmp_path / RUN, tree, tmp_path / "samples.npz")
        assert scan(tmp_path, [RUN])[RUN].status in ("done", "unsupported")
        build_summary([path])
    except UserError as error:
        one_line(error)


@SETTINGS
@given(content=damaged(json.dumps(make_record(RUN)).encode()))
def test_a_damaged_record_is_never_done(tmp_path: Path, content: bytes) -> None:
    (tmp_path / RUN).mkdir(exist_ok=True)
    (tmp_path / RUN / "record.json").write_bytes(content)
    state = scan(tmp_path, [RUN], quarantine=True)[RUN]
    assert (state.status, state.cause) == ("failed", "BAD_RECORD")


@SETTINGS
@given(content=json_bytes({"schema": 1, "exit_code": 0, "srun_labels": False, "record": FAILURE}))
def test_attempt_json(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "attempt.json").write_bytes(content)
    try:
        assert isinstance(read_attempt(tmp_path), dict)
    except UserError as error:
        one_line(error)


@SETTINGS
@given(
    content=json_bytes(HOST), rows=damaged(b"time,clock,domain,value\n1.5,0.5,p,7\n2.5,1.5,p,9\n")
)
def test_samples_of_power(tmp_path: Path, content: bytes, rows: bytes) -> None:
    (tmp_path / "power-n.json").write_bytes(content)
    (tmp_path / "power-n.csv").write_bytes(rows)
    sampling = Sampling({"power": None}, tmp_path)
    hosts, broken = sampling._hosts()
    assert len(hosts) + len(broken) == 1


POWER = b"time,host,domain,watts\n" + b"".join(
    b"2026-01-01T00:00:%02d.000+00:00,n,p,%s\n" % (second, watts)
    for second, watts in enumerate([b"", b"1.5", b"2.5", b"", b"4"])
)


@SETTINGS
@given(content=damaged(POWER), energy=changed(ENERGY))
def test_power_csv(tmp_path: Path, content: bytes, energy: Any) -> None:
    (tmp_path / "power.csv").write_bytes(content)
    try:
        channels = read_power(tmp_path / "power.csv", ENERGY)
        assert all(np.isfinite(channel.times).all() for channel in channels)
    except BadRecordError as error:
        one_line(error)


def npz(change: Callable[[bytes], bytes], method: int = zipfile.ZIP_STORED) -> bytes:
    """An archive of whose arrays the bytes are changed: of the right checksum all the same."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        for name, array in times().items():
            content = io.BytesIO()
            np.save(content, array)
            archive.writestr(f"{name}.npy", change(content.getvalue()))
    return file.getvalue()


ARRAYS = {
    "no archive": b"PK\x03\x04" + b"\0" * 50,
    "an array": npz(lambda c: c)[:-30],
    "cut arrays": npz(lambda c: c[:-8]),
    "huge": npz(lambda c: c.replace(b"(5, 2)", b"(99999999999999, 2)").ljust(len(c) + 9)),
    "negative": npz(lambda c: c.replace(b"(5, 2)", b"(-5, 2)")),
    "a header that is code": npz(lambda c: c.replace(b"(5, 2)", b"__import__('os')")),
    "no header": npz(lambda c: b""),
    "objects": npz(lambda c: c.replace(b"<f8", b"|O ")),
    "text": npz(lambda c: c.replace(b"<f8", b"<U2")),
    "nested": npz(lambda c: c[:10] + b"(" * 5000 + c[10:]),
    "compressed zeros": npz(lambda c: c + b"\0" * 10_000_000, zipfile.ZIP_DEFLATED),
    "bzip2": npz(lambda c: c[:-1], zipfile.ZIP_BZIP2),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_samples_that_hold_anything(tmp_path: Path, name: str) -> None:
    (tmp_path / "samples.npz").write_bytes(ARRAYS[name])
    try:
        read_native_samples(tmp_path)
        path = write_record(tmp_path / RUN, make_record(RUN), tmp_path / "samples.npz")
        build_summary([path])
    except (BadResultError, UserError) as error:
        one_line(error)
    assert not list(tmp_path.rglob("pwned"))


def read_native_samples(folder: Path) -> None:
    """As the launcher does, which refuses most of them before there is a record."""
    (folder / "native.json").write_text(json.dumps(NATIVE))
    try:
        read_native(folder)
    except BadResultError as error:
        one_line(error)


@SETTINGS
@given(content=damaged(npz(lambda c: c)))
def test_samples_of_a_program(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "samples.npz").write_bytes(content)
    read_native_samples(tmp_path)
    try:
        path = write_record(tmp_path / RUN, make_record(RUN), tmp_path / "samples.npz")
        build_summary([path])
    except UserError as error:
        one_line(error)


SACCT = "\n".join(
    "|".join({"JobIDRaw": name, "State": "COMPLETED", "ExitCode": "0:0", "NNodes": "1",
              "ReqMem": "2Gn", "MaxRSS": "404060K", "TRESUsageInTot": "cpu=1,mem=5K",
              "Start": "2026-01-01T00:00:00"}.get(field, "7") for field in FIELDS)
    for name in ("12", "12.batch", "12.0", "13")
)  # fmt: skip
QUEUE = "12|RUNNING|scalesweep_s|rule_run_wildcards_x\n13|PENDING|scalesweep_s|c|d\n"


@SETTINGS
@given(sacct=damaged(SACCT.encode()), queue=damaged(QUEUE.encode()))
def test_what_slurm_prints(sacct: bytes, queue: bytes) -> None:
    for job in parse(sacct.decode(errors="replace")).values():
        cause_of(job)
    for live in parse_queue(queue.decode(errors="replace")):
        run_of(live.comment, {"x"})


JOBS = (
    b"job_id,run_id,state,cause,exit_code,partition,nodes,cpus,asked_s,elapsed_s,asked_mem_bytes,"
    b"max_rss_bytes,submitted,started,ended,wait_s,program_s,held_s,node_hours,node_list,suspended_s\n"
    b"12,r,COMPLETED,,0,normal,1,4,60,30,1,1,2026,2026,2026,1.5,20,1,0.5,n1,\n"
)


@SETTINGS
@given(content=damaged(JOBS))
def test_jobs_csv(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "jobs.csv").write_bytes(content)
    try:
        read_jobs(tmp_path / "jobs.csv")
    except UserError as error:
        one_line(error)


HISTORY = "epoch,acc,loss,val_acc,val_loss\n0,0.5,0.7,0.55,0.69\n1,0.6,0.6,0.75,0.5\n"
LOGS = [HISTORY, fake_logs.keras(), fake_logs.one(1000.0)]


@SETTINGS
@given(content=st.sampled_from(LOGS).flatmap(lambda text: damaged(text.encode())))
def test_logs_and_histories(read: Read, content: bytes) -> None:
    try:
        runs, refusals = read(content)
    except UserError as error:
        one_line(error)
        return
    for run in runs:
        assert all(np.isfinite(metric["value"]) for metric in run.metrics.values())
    assert all("\n" not in refusal.message for refusal in refusals)


PATTERNS = [
    Metric("speed", r"speed: (\S+)", "s", "lower", "total"),
    Metric("rate", r"(?P<key>\w{1,99}) rate=(?P<value>.*)", "1", "higher", "rank", match="all"),
    Metric("count", r"n=(\d+)", "1", "higher", "total", type="integer", optional=True),
]
OUTPUT = b"".join(
    b"[1,%d]<stdout>:speed: 1.%d n=%d\n[1,%d]<stdout>:a rate=2e3\n" % (i % 2, i, i, i % 2)
    for i in range(6)
)


@SETTINGS
@example(content=b"\xfd7zXZ\x00" + OUTPUT, ranks=1, labels=False)
@example(content=b"\x1f\x8b" + OUTPUT, ranks=1, labels=False)
@given(content=damaged(OUTPUT), ranks=st.integers(1, 3), labels=st.booleans())
def test_output_of_foreign_programs(
    tmp_path: Path, content: bytes, ranks: int, labels: bool
) -> None:
    (tmp_path / "stdout.log").write_bytes(content)
    try:
        reading = read_metrics(PATTERNS, tmp_path, ranks, labels)
        assert all(math.isfinite(metric["value"]) for metric in reading.metrics.values())
    except UserError as error:
        one_line(error)


# What a regular expression tries in many ways, if it can.
LONG = ["\x1b]", "[a", "[1,2", "=", "A=B ", " ", "\u0660", "1,", "'/gpu:1', ", "]<std", "Model: "]


@pytest.mark.parametrize("begin", ["", "++ python ", "[", "Model:       x\n"])
def test_lines_without_an_end_take_no_longer_than_others(
    read: Read, begin: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = [fake_logs.one(1000.0) + begin + piece * (300_000 // len(piece)) for piece in LONG]
    _, refusals = read(*texts, *[f"{HISTORY}{text}" for text in LONG])
    assert not [refusal for refusal in refusals if "too long" in refusal.reason]


def test_nothing_was_run() -> None:
    assert not os.path.lexists("pwned")
