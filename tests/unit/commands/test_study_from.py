"""scalesweep study --from: what is seen of made-up scripts, and what is said of the rest."""

import contextlib
import re
import sys
import time
from pathlib import Path

import pytest

from scalesweep.commands import study_from
from scalesweep.commands.study import write_study_of
from scalesweep.commands.study_from import Seen, look_at, metrics_of, progress, try_it
from scalesweep.config.benchmark import load_benchmark
from scalesweep.core.errors import UserError

OPTIONS = """import argparse, os; parser = argparse.ArgumentParser()
if not os: import torch
parser.add_argument("files", nargs="*")
parser.add_argument("-b", "--batch-size", type=int, default=64, help="100% of {a} batch")
parser.add_argument("--lr", type=float, default=1)
parser.add_argument("--model", default="small", choices=["small", "large"])
parser.add_argument("--mode", choices=["a", "b"])
parser.add_argument("--untyped", default=0.5)
parser.add_argument("--amp", action="store_true")
parser.add_argument("--site", default="reserved")
parser.add_argument("--sizes", type=int, nargs="+", default=[1])
parser.add_argument("--flag", type=lambda text: text == "1", default=False)
parser.add_argument("--cache", default=os.environ.get("CACHE"))
parser.add_argument("-q", default=1)"""
REQUIRED = """import argparse
parser = argparse.ArgumentParser()
parser.add_argument("epochs", type=int)
parser.add_argument("--data", required=True)
parser.parse_args()"""
LOOP = "import sys\nfor step in range(5): "


def script(folder: Path, text: str) -> Path:
    (folder / "train.py").write_text(text)
    return folder / "train.py"


def tried(folder: Path, text: str) -> Seen:
    seen = look_at(script(folder, text), [])
    try_it(seen, sys.executable, [])
    return seen


def test_options_become_parameters_or_are_named(tmp_path: Path) -> None:
    study = tmp_path / "study"
    write_study_of(script(tmp_path, OPTIONS), study, sys.executable, [])
    defaults = load_benchmark("my_train", folder=study / "benchmarks" / "my_train").defaults
    values = {"batch_size": 64, "lr": 1, "model": "small", "mode": None, "untyped": 0.5}
    values |= {"amp": False, "cache": None, "omp_num_threads": 1}
    assert defaults.items() >= values.items()
    named = {line.split(":")[0] for line in look_at(tmp_path / "train.py", []).missing}
    assert named == {"files", "--site", "--sizes", "--flag", "-q"}
    assert "lr" not in look_at(tmp_path / "train.py", ["--lr=3"]).parameters


def test_what_needs_a_value_is_named_until_it_is_given(tmp_path: Path) -> None:
    epochs, data, trial, _ = tried(tmp_path, REQUIRED).missing
    assert epochs.startswith("epochs: needs") and data.startswith("--data: needs")
    assert "exit code 2; it printed: train.py: error: the following arg" in trial
    assert not look_at(script(tmp_path, REQUIRED), ["3", "--data", "d"]).missing
    assert "subcommands" in look_at(script(tmp_path, "a.add_subparsers()"), []).missing[0]


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        ("step {} | loss 1.2 | 512.3 images/s | lr 0.1", [("images_s", "images/s", "512.3")]),
        ("iter {}: loss 1.2, time 12.3ms, mfu -1.0%", [("time_ms", "ms", "12.3")]),
        ("step {} loss 1.2 time 0.25", [("time", "s", "0.25")]),
        ("Img/sec per GPU: 123.{}", [("img_sec", "Img/s", "123.1")]),
        ("| {:5d}/ 85 batches | ms/batch 5.21 | loss 1.2", [("ms_batch", "ms", "5.21")]),
        ("step: {} tokens/s: 1,234.5", [("tokens_s", "tokens/s", "1,234.5")]),
        ("fwd 1.{}ms bwd 3.4ms", [("fwd_ms", "ms", "1.1"), ("bwd_ms", "ms", "3.4")]),
        ("epoch {} loss 1.2", []),
    ],
)
def test_lines_of_progress_give_patterns(form: str, expected: list[tuple[str, str, str]]) -> None:
    lines = progress(["3 workers", *(form.format(step) for step in (300, 20, 1)), "warning"])
    assert [
        (each["metric"], each["unit"], *re.findall(each["pattern"], lines[-1]))
        for each in metrics_of(lines)
    ] == expected


def test_a_bar_on_standard_error_is_read_there(tmp_path: Path) -> None:
    bar = "f'{step}0%|{step * chr(9608):5}| {step}/5 [00:01<00:04, 1.{step}it/s]'"
    seen = tried(tmp_path, f"{LOOP}print({bar}, end='\\r', file=sys.stderr)")
    assert [(each["metric"], each["from"]) for each in seen.metrics] == [("it_s", "stderr")]


def test_a_trial_without_progress_says_what_it_saw(tmp_path: Path) -> None:
    assert "it printed: loss 0.4" in tried(tmp_path, f"{LOOP}print(f'loss 0.{{step}}')").missing[-1]
    assert "it printed: nothing" in tried(tmp_path, "").missing[-1]
    bye = "import atexit, sys\natexit.register(print, 'bye', file=sys.stderr)\n"
    failed = tried(tmp_path, f"{bye}raise RuntimeError('no CUDA')").missing
    assert failed[1] == "a trial on one rank: exit code 1; it printed: RuntimeError: no CUDA"
    with pytest.raises(UserError, match="cannot be started"):
        try_it(look_at(script(tmp_path, ""), []), str(tmp_path / "none"), [])


def test_a_trial_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(study_from, "GRACE", 0.1)
    deaf = "import signal, subprocess, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    child = "print(subprocess.Popen(['sleep', '60']).pid, file=open('pid', 'w'), flush=True)\n"
    stays = "for step in range(20): print('step', step, flush=True)\ntime.sleep(60)"
    for ending in ("", stays):  # the script ends by itself, or is ended
        missing = tried(tmp_path, deaf + child + ending).missing
        assert bool(ending) == any("was ended after" in line for line in missing)
        state = Path("/proc") / (tmp_path / "pid").read_text().strip() / "stat"
        until = time.monotonic() + 10
        with contextlib.suppress(OSError):  # collected
            while state.read_text().split()[2] != "Z":
                assert time.monotonic() < until
                time.sleep(0.01)
