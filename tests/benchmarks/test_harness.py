"""The parts of the harness that need no TensorFlow."""

import gzip
import io
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from harness import epochs, facts, page_cache, phases, program, result
from scalesweep.analysis.kineto_stream import read_stream
from scalesweep.analysis.trace_account import account_of_rank
from tests.benchmarks.programs import BENCHMARKS, start_helper, start_torch
from tests.fakes.torch_python import needs_torch


def test_harness_starts_no_tensorflow():
    # In a process of its own: other tests of this one may have imported Horovod.
    modules = "epochs, facts, frame, page_cache, phases, profiling, program, ranks, result"
    modules += ", spans, staging, tf32"
    packages = ["file_read", "cosmoflow_data", "nt3", "cnn_training", "torch_training"]
    code = f"import sys; from harness import {modules}; "
    code += "".join(f"import {name}.dataset; " for name in packages) + "print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=BENCHMARKS
    )
    assert not {"horovod", "tensorflow", "torch", "pandas"} & set(done.stdout.split())


@pytest.mark.parametrize(
    ("content", "word"), [(None, "No such file"), ("{", "run file"), ("{}", "no run_id")]
)
def test_unusable_run_file_is_one_line(tmp_path, content, word):
    path = tmp_path / "run.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(program.ProgramError, match=word) as caught:
        program.read_run(path)
    assert "\n" not in str(caught.value)


def test_number_ranges():
    assert facts.number_ranges({0, 1, 2, 3, 7}) == "0-3,7"
    assert facts.number_ranges({5}) == "5"
    assert facts.number_ranges(set()) == ""


def test_variables_keep_no_secret(monkeypatch):
    monkeypatch.setenv("SLURM_JWT", "x")
    monkeypatch.setenv("HOROVOD_SECRET_KEY", "x")
    monkeypatch.setenv("TF_VAR_password", "x")
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    monkeypatch.setenv("OMPI_MCA_btl", "self,tcp")
    kept = facts.variables("(HOROVOD|TF)_")
    assert kept["OMPI_MCA_btl"] == "self,tcp"
    assert kept["SLURM_JOB_ID"] == "7"
    assert not {"SLURM_JWT", "HOROVOD_SECRET_KEY", "TF_VAR_password"} & set(kept)


@pytest.mark.parametrize(
    ("said", "version"),
    [
        (b"Open MPI v4.1.4, package: Debian OpenMPI, May 26, 2022", "Open MPI v4.1.4"),
        (b"MPICH Version:\t4.0.2\nMPICH Release date:\tThu Apr  7", "MPICH Version: 4.0.2"),
    ],
)
def test_mpi_tells_its_version_only_when_in_use(monkeypatch, said, version):
    class Loaded:
        """An MPI library as ctypes shows it."""

        def MPI_Initialized(self, flag):
            flag._obj.value = initialised

        def MPI_Get_library_version(self, text, length):
            text.value = said

    monkeypatch.setattr(facts.ctypes, "CDLL", lambda _: Loaded())
    initialised = 0
    assert facts.mpi_version() is None
    initialised = 1
    assert facts.mpi_version() == version
    monkeypatch.setattr(facts.ctypes, "CDLL", lambda _: object())
    assert facts.mpi_version() is None


def test_since_start(monkeypatch):
    before = time.time()
    monkeypatch.setenv("SCALESWEEP_STARTED", str(before - 5))
    assert 5 <= phases.since_start() <= 5 + time.time() - before
    monkeypatch.setenv("SCALESWEEP_STARTED", str(time.time() + 500))  # another host's clock
    assert 0 <= phases.since_start() < 3600


def test_phases_add_up_and_survive_errors():
    timer, began = phases.Phases(), time.perf_counter()
    for _ in range(2):
        with pytest.raises(KeyError), timer("a"):
            time.sleep(0.01)
            raise KeyError
    assert 0.02 <= timer.seconds["a"] <= time.perf_counter() - began


def test_epochs_order_of_events_and_times(monkeypatch):
    events, clock = [], SimpleNamespace(now=1000)
    monkeypatch.setattr(epochs, "time", SimpleNamespace(perf_counter=lambda: clock.now))

    def barrier(ok):
        events.append("barrier")
        clock.now += 20
        return ok

    def work(prepared):
        events.append(prepared)
        clock.now += 10
        return True

    times = epochs.time_epochs(2, lambda epoch: f"work {epoch}", work, barrier)
    assert events == ["barrier", "work 0", "barrier", "barrier", "work 1", "barrier"]
    # The opening barrier is not part of the time.
    assert (times.local, times.total) == ([10, 10], [30, 30])


def test_epochs_stop_together_after_a_failure():
    calls = []
    times = epochs.time_epochs(5, calls.append, lambda _: len(calls) < 2, lambda ok: ok)
    assert calls == [0, 1]
    assert len(times.total) == 1


def test_epochs_see_reading_ahead(tmp_path):
    """Bytes read outside the timed part are counted as such."""
    path = tmp_path / "data"
    path.write_bytes(bytes(1 << 20))

    def read(_):
        path.read_bytes()
        return True

    right = epochs.time_epochs(3, lambda _: None, read, lambda ok: ok)
    wrong = epochs.time_epochs(3, read, lambda _: True, lambda ok: ok)
    assert min(right.read_inside) >= 1 << 20
    assert max(right.read_between) < 1 << 16
    assert max(wrong.read_inside) < 1 << 16
    assert min(wrong.read_between) >= 1 << 20


def timed_phases():
    found = phases.Phases()
    found.add("timed", 1.0)
    return found


def write(out, **more):
    usual = {
        "phases": timed_phases(), "ranks": [facts.rank_facts(0, 0)], "versions": facts.versions(),
        "work": {"samples_per_epoch": 4, "bytes_per_epoch": 8}, "variables": {}, "metrics": {},
        "notes": {},
    }  # fmt: skip
    result.write_result(out, {"local_times": np.array([[1 / 3]])}, **usual | more)


def test_result_keeps_full_precision_and_leaves_no_temporary(tmp_path):
    write(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["native.json", "samples.npz"]
    assert np.load(tmp_path / "samples.npz")["local_times"][0, 0] == 1 / 3
    native = json.loads((tmp_path / "native.json").read_text())
    assert native["environment"]["ranks"][0]["affinity"] == facts.number_ranges(
        os.sched_getaffinity(0)
    )
    assert native["environment"]["versions"]["numpy"] == np.__version__


def test_result_refuses_numbers_that_json_cannot_hold(tmp_path):
    with pytest.raises(ValueError, match="JSON"):
        write(tmp_path, notes={"sum": float("nan")})
    assert list(tmp_path.iterdir()) == []


def test_page_cache_residency_and_drop(tmp_path):
    paths = [str(tmp_path / name) for name in "ab"]
    for path in paths:
        Path(path).write_bytes(bytes(1 << 20))
    assert page_cache.resident_bytes(paths[0]) == (1 << 20, 1 << 20)
    assert page_cache.drop([*paths, str(tmp_path / "absent")]) == 1
    after = page_cache.resident_fraction(paths)
    if after is None or after > 0.01:
        pytest.skip("this file system does not drop pages")
    Path(paths[0]).read_bytes()
    assert page_cache.resident_fraction(paths) == 0.5
    assert page_cache.resident_fraction(["/nowhere"]) is None


@pytest.mark.slow
def test_two_ranks_of_horovod_gather_in_pieces_and_fail_together(tmp_path):
    start_helper("gather_ranks.py", tmp_path / "report", "tensorflow", ranks=2)
    check_gathered(json.loads((tmp_path / "report").read_text()))


@needs_torch
@pytest.mark.slow
def test_two_ranks_of_torch_gather_in_pieces_and_fail_together(tmp_path):
    profile = {"SCALESWEEP_PROFILE": "torch", "SCALESWEEP_PROFILE_FOLDER": str(tmp_path)}
    done = start_torch("gather_ranks.py", tmp_path / "report", "torch", ranks=2, env=profile)
    assert [each.returncode for each in done] == [0, 0], done
    check_gathered(json.loads((tmp_path / "report").read_text()))
    for rank in range(2):
        text = gzip.decompress((tmp_path / f"rank{rank}.json.gz").read_bytes())
        assert json.loads(text)["distributedInfo"]["rank"] == rank
        account = account_of_rank(read_stream(io.BytesIO(text)))
        # Windows end with the optimiser: three of four steps, none with what was gathered after.
        assert account is not None and account.steps == 3
        assert all(account.parts[part] > 0 for part in ("computation", "communication"))


def check_gathered(report):
    """Compare what two ranks have gathered with what they had."""
    first = np.arange(12.0).reshape(4, 3)
    np.testing.assert_array_equal(report["whole"], np.stack([first, first + 100], axis=-1))
    assert report["empty"] == [0, 2]
    assert [(each["rank"], len(each["text"])) for each in report["texts"]] == [(0, 3), (1, 8)]
    assert report["ok"] == [True, False]
    assert report["mean"] == {"a": 0.5, "b": 2.0}
    assert report["raised"] == [65, "it broke"]
    assert report["place"] == [0, 2, True]


@needs_torch
@pytest.mark.slow
def test_a_rank_of_torch_that_never_joins_is_named(tmp_path):
    waiting, *others = start_torch("absent_rank.py", ranks=2, started=1)
    assert others == [] and waiting.returncode == program.EXIT_LAUNCH, waiting
    line = r"absent: rank 1 of 2 did not join rank 0 on \S+ within 1 s"
    assert re.fullmatch(line, waiting.stderr.splitlines()[-1]), waiting.stderr
    refused = json.loads(waiting.stdout.splitlines()[-1])
    assert refused == [
        [75, "rank 1: rank 0 did not answer at MASTER_ADDR 127.0.0.1, MASTER_PORT 1 within 1 s"],
        [2, "started with 3 ranks, the run file says 2"],
        [0, "rank 0 of 1"],
    ]


def test_page_cache_summary():
    assert page_cache.summary([1.0, 0.5], [0.0, 0.004])["worked"] is True
    assert page_cache.summary([1.0, 1.0], [0.0, 0.2])["worked"] is False
    unknown = page_cache.summary([None, 1.0], [None, 0.0])
    assert (unknown["worked"], unknown["verified"]) == (None, False)
