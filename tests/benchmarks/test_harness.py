"""The parts of the harness that need no training; what is read of a host's hardware."""

import gzip
import io
import json
import os
import re
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from harness import epochs, facts, hardware, native, no_exchange, program
from scalesweep.analysis.kineto_stream import read_stream
from scalesweep.analysis.trace_account import account_of_rank
from scalesweep.core.paths import LAUNCHERS
from scalesweep.doctor.probe import PROBE, said_in
from tests.benchmarks.programs import BENCHMARKS, PYTORCH, start_helper
from tests.fakes.torch_python import TORCH, needs_torch


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


TABLE = """\
0, Tesla P100-PCIE-16GB, 00000000:3B:00.0, 1328, 715, 715, 1189, 715, 16384, 250.00, 535.104.05
1, Tesla P100-PCIE-16GB, 00000000:AF:00.0, 1328, 679, [N/A], 405, 679, 16384, [N/A], 535.104.05
"""
LINKS = (
    "\t\x1b[4mGPU0\tGPU1\tGPU2\tNIC0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\x1b[0m\n"
    "GPU0\t X \tPIX\tSYS\tPHB\t0-15\t0\t\tN/A\n"
    "GPU1\tPIX\t X \tNV18\tSYS\t0-15\t0\t\tN/A\n"
    "GPU2\tSYS\tNV18\t X \tSYS\t16-31\t1\t\tN/A\n"
    "NIC0\tPHB\tSYS\tSYS\t X \n\nLegend:\n\n  X    = Self\n  PIX  = at most one PCIe bridge\n"
)


def test_a_host_with_gpus(tmp_path, monkeypatch):
    (tmp_path / "table").write_text(TABLE)
    (tmp_path / "links").write_text(LINKS)
    program = tmp_path / "nvidia-smi"
    program.write_text(
        '#!/bin/sh\ncase "$1" in --query-gpu=*) exec /bin/cat "${0%/*}/table";; '
        'topo) exec /bin/cat "${0%/*}/links";; esac\nexit 9\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    found = hardware.host_hardware()
    first, second = found["gpus"]
    assert (first["name"], first["memory_clock_mhz"]) == ("Tesla P100-PCIE-16GB", 715.0)
    assert (second["index"], second["memory_clock_mhz"]) == (1.0, 679.0)
    assert second["application_memory_clock_mhz"] is None and second["power_limit_w"] is None
    expected = {"GPU0-GPU1": "PIX", "GPU0-GPU2": "SYS", "GPU1-GPU2": "NV18"}
    assert found["gpu_links"] == expected
    (tmp_path / "table").write_text("No devices were found\n")
    assert hardware.host_hardware()["gpus"] == []


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


@pytest.mark.slow
@needs_torch
def test_two_ranks_of_torch_exchange_numbers_for_the_doctor(tmp_path):
    (tmp_path / "here").write_text("word")
    ranks = [sys.executable, LAUNCHERS / "local_ranks.py", "2"]
    command = [*map(str, (*ranks, TORCH, PROBE, tmp_path)), "torch"]
    env = {"PATH": os.environ["PATH"]}
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=True, timeout=120)
    facts = said_in(done.stdout)
    assert sorted(fact["rank"] for fact in facts) == [0, 1]
    found = [(each["exchange"]["size"], each["exchange"]["sum"], each["token"]) for each in facts]
    assert found == [(2, 3.0, "word")] * 2
