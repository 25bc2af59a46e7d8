"""The parts of the harness that need no TensorFlow."""

import gzip
import io
import json
import re
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from harness import epochs, facts, native, no_exchange, program
from scalesweep.analysis.kineto_stream import read_stream
from scalesweep.analysis.trace_account import account_of_rank
from tests.benchmarks.programs import BENCHMARKS, PYTORCH, start_helper
from tests.fakes.torch_python import needs_torch


def test_harness_starts_no_tensorflow():
    # In a process of its own: other tests of this one may have imported Horovod.
    modules = "epochs, facts, frame, native, page_cache, phases, probe, profiling, program, ranks"
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


def test_result_keeps_full_precision_and_leaves_no_temporary(tmp_path):
    samples = {"local_times": np.array([[1 / 3]])}
    with pytest.raises(ValueError, match="JSON"):
        native.write(tmp_path, samples, {"sum": float("nan")})
    assert list(tmp_path.iterdir()) == []
    native.write(tmp_path, samples, {"ranks": [facts.rank_facts(0, 0, False)]})
    assert sorted(path.name for path in tmp_path.iterdir()) == ["native.json", "samples.npz"]
    assert np.load(tmp_path / "samples.npz")["local_times"][0, 0] == 1 / 3
    (rank,) = json.loads((tmp_path / "native.json").read_text())["ranks"]
    assert re.fullmatch(r"\d+([-,]\d+)*", rank["affinity"])


@pytest.mark.parametrize(
    ("profile", "together", "epochs"),
    [("cprofile", 8, [100, 2, 100]), ("noexchange", 1, [4, 2, 100])],
)
def test_a_rank_alone_has_a_rate_of_its_own_and_trains_to_no_target(
    monkeypatch, profile, together, epochs
):
    monkeypatch.setenv("SCALESWEEP_PROFILE", profile)
    assert no_exchange.left_out() == (profile == "noexchange")
    assert no_exchange.together(8) == together
    planned = [(100, 0.9), (2, 0.9), (100, None)]
    assert [no_exchange.epochs(*each) for each in planned] == epochs


@pytest.mark.slow
def test_two_ranks_of_horovod_gather_in_pieces_and_fail_together():
    start_helper("gather_ranks.py", "tensorflow", ranks=2)


@needs_torch
@pytest.mark.slow
def test_two_ranks_of_torch_gather_in_pieces_and_fail_together(tmp_path):
    profile = {"SCALESWEEP_PROFILE": "torch", "SCALESWEEP_PROFILE_FOLDER": str(tmp_path)}
    start_helper("gather_ranks.py", "torch", ranks=2, env=profile, kind=PYTORCH)
    for rank in range(2):
        text = gzip.decompress((tmp_path / f"rank{rank}.json.gz").read_bytes())
        assert json.loads(text)["distributedInfo"]["rank"] == rank
        account = account_of_rank(read_stream(io.BytesIO(text)))
        # Windows end with the optimiser: three of four steps, none with what was gathered after.
        assert account is not None and account.steps == 3
        assert all(account.parts[part] > 0 for part in ("computation", "communication"))
