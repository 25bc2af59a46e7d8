"""The frame of the benchmarks: what it calls in which order, and what it writes."""

import json
import platform
import sys

import numpy as np
import pytest

from harness import frame, ranks, tf32
from harness.native import Native, metric
from harness.program import ProgramError, Run
from harness.rendezvous import Place
from tests.benchmarks import played_ranks
from tests.benchmarks.typed import check

METHODS = ["start", "set_up", "warm_up", "measure", "gather"]


class Program(frame.Benchmark):
    """Notes what is called; raises in the method `fails`."""

    framework = "played"

    def called(self, name):
        self.run.params["calls"].append(name)
        if self.run.params["fails"] == name:
            raise ProgramError(65, f"{name} fails")

    def start(self):
        self.called("start")

    def set_up(self):
        with self.phases("build"):
            self.called("set_up")

    def warm_up(self):
        self.called("warm_up")

    def measure(self):
        with self.phases("timed"):
            self.called("measure")

    def gather(self):
        self.called("gather")
        return {"step_times": np.array([[1.0, 3.0]])}

    def threads(self):
        return 2, 3

    def about_rank(self):
        return {"device": "CPU:0"}

    def work(self):
        return {"samples_per_epoch": 8}

    def metrics(self, arrays):
        return {"step_time_max": metric(arrays["step_times"].max(), "s")}

    def notes(self, about_ranks):
        return {"devices": about_ranks, "exchange": {"by": "sums"}}

    def close(self):
        self.called("close")


@pytest.fixture
def calls(monkeypatch):
    """What is called, of a framework that plays two ranks in this process."""
    framework = ranks.Framework(played_ranks.__name__, "PLAYED_")
    monkeypatch.setitem(ranks.FRAMEWORKS, "played", framework)
    for name in ("framework", "module", "folder"):
        monkeypatch.setattr(ranks._Now, name, getattr(ranks._Now, name))
    monkeypatch.setattr(ranks._Now, "place", Place(0, 2, 0, 2, "played"))
    monkeypatch.setattr(frame, "import_without", lambda *_: None)  # other tests need them
    monkeypatch.setattr(played_ranks, "calls", [])
    monkeypatch.setattr(played_ranks, "capabilities", [])
    monkeypatch.setattr(played_ranks, "tf32", {"allowed": True})
    return played_ranks.calls


def execute(folder, calls, fails=None):
    params = {"calls": calls, "fails": fails}
    run = Run("id", "recorded", 1, params, 0, None, folder / "out", folder)
    frame.execute(run, __name__)


def test_a_run_that_ends_well(tmp_path, calls):
    execute(tmp_path, calls)
    assert calls == [*METHODS, "close", "stop"]
    native = json.loads((tmp_path / "out" / "native.json").read_text())
    assert check(native, Native) == []
    phases = ["import", "init", "build", "timed", "teardown"]
    assert [name for name, _, _ in native["phase_spans"]] == phases
    assert native["metrics"]["step_time_max"]["value"] == 3
    assert native["work"] == {"samples_per_epoch": 8}
    known = {"devices": [{"device": "CPU:0"}] * 2, "exchange": {"by": "sums", "backend": "none"}}
    assert native["notes"] == {**known, "tf32": tf32.facts()}
    threads = [(r["inter_threads"], r["intra_threads"]) for r in native["environment"]["ranks"]]
    assert threads == [(2, 3)] * 2
    assert native["environment"]["ranks"][0]["hardware"]["cpus"] >= 1
    versions = {"python": platform.python_version(), "numpy": np.__version__, "played": "1.0"}
    assert native["environment"]["versions"] == versions
    assert len(native["resources"]["hosts"]) == 2
    with np.load(tmp_path / "out" / "samples.npz") as arrays:
        np.testing.assert_array_equal(arrays["step_times"], [[1, 3]])


def test_a_python_without_what_a_program_imports_is_named(tmp_path, calls, capsys):
    run = Run("id", "recorded", 1, {"calls": calls}, 0, None, tmp_path / "out", tmp_path)
    lacks = f"{sys.executable}, .* lacks what is imported: No module named 'no_such'"
    with pytest.raises(ProgramError, match=lacks) as error:
        frame.execute(run, "no_such.benchmark")
    assert error.value.code == 1
    assert "Traceback" in capsys.readouterr().err  # of what imports it
    assert calls == []


@pytest.mark.parametrize("fails", METHODS)
def test_a_run_that_fails_is_closed_and_writes_nothing(tmp_path, calls, fails):
    with pytest.raises(ProgramError, match=f"{fails} fails"):
        execute(tmp_path, calls, fails)
    assert calls == [*METHODS[: METHODS.index(fails) + 1], "close"]
    assert not (tmp_path / "out").exists()


def test_other_ranks_write_nothing(tmp_path, calls, monkeypatch):
    monkeypatch.setattr(ranks._Now, "place", Place(1, 2, 1, 2, "played"))
    execute(tmp_path, calls)
    assert calls[-2:] == ["close", "stop"]
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("capability", "allowed", "override", "in_force"),
    [
        ((8, 0), True, None, True), ((9, 0), True, None, True), ((8, 0), False, None, False),
        ((8, 0), True, "0", False), ((7, 5), True, None, False), (None, True, None, False),
    ],
)  # fmt: skip
def test_tf32_is_in_force_where_gpu_framework_and_environment_agree(
    monkeypatch, calls, capability, allowed, override, in_force
):
    ranks.use("played")
    monkeypatch.setattr(played_ranks, "capabilities", [capability] * 2)
    if override is not None:
        monkeypatch.setenv(tf32.OVERRIDE, override)
    refused = tf32.choose(allowed)
    facts = tf32.facts()
    assert (facts["device"], facts["in_force"]) == ("GPU", in_force)
    assert facts["supported"] == (capability is not None and capability >= (8, 0))
    assert (refused is None) == (in_force or not allowed)
    if override:
        assert refused == (69, "tf32 true: NVIDIA_TF32_OVERRIDE=0 forbids it")
    differing = tf32.of_ranks([facts, facts | {"in_force": None}])
    assert differing == facts | {"in_force": None}


def test_ranks_are_profiled_by_their_own_framework(monkeypatch, tmp_path, calls):
    monkeypatch.setenv("SCALESWEEP_PROFILE", "played")
    monkeypatch.setenv("SCALESWEEP_PROFILE_FOLDER", str(tmp_path / "profile"))
    ranks.use("played")
    ranks.start(2, 1, 3)
    whole = ranks.gather(np.arange(3.0))
    assert ranks.gather_json({"a": 1}) == [{"a": 1}] * 2
    ranks.stop()
    np.testing.assert_array_equal(whole, [[0, 0], [1, 1], [2, 2]])
    assert calls == ["connect 2 1 3", "profile profile 0", "profiled", "stop"]
    with pytest.raises(ProgramError, match="started with 2 ranks, the run file says 4"):
        ranks.start(4)
