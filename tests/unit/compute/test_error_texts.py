"""Why programs end by what they print: each cause is told of its own texts, and of no others."""

import itertools
import shlex
import signal
import sys
from pathlib import Path

import pytest

from scalesweep.compute.error_texts import OWN, WAITED
from scalesweep.compute.launcher import launch
from scalesweep.compute.step_errors import StepErrors, step_errors
from scalesweep.core.causes import Cause
from tests.conftest import ROOT
from tests.fakes.failure_texts import BENIGN, START, TEXTS, raised
from tests.unit.compute.test_launcher import failure, spec

PEER = TEXTS["gloo, a peer is gone"].text
# How launchers label the lines of a rank.
LABELS = {
    "none": "",
    "horovodrun": "[{}]<stderr>:",
    "mpirun": "[1,{}]<stderr>:",
    "torchrun": "[default{}]:",
    "pytorch": "[rank{}]: ",
    "srun": "{}: ",
    "all": "{}: [default{}]:[rank{}]: ",
}


def labelled(label: str, rank: int, text: str) -> list[str]:
    """The lines of a rank as a launcher labels them."""
    before = LABELS[label].replace("{}", str(rank))
    # C++ writes this label itself.
    plain = text.replace("[rank1]:", "") if label in ("pytorch", "all") else text
    return [before + line for line in plain.splitlines()]


def read(lines: list[str], label: str = "none") -> StepErrors:
    return step_errors(lines, labelled=label in ("srun", "all"))


def cause(lines: list[str], label: str = "none") -> Cause | None:
    reason = read(lines, label).reason
    return None if reason is None else reason.cause


@pytest.mark.parametrize("name", TEXTS)
def test_a_text_tells_its_cause(name: str) -> None:
    text, wanted, told = TEXTS[name]
    alone = read(text.splitlines()).reason
    assert alone and alone.cause == wanted and told in alone.text
    for label in LABELS:
        rank = labelled(label, 1, text)
        assert cause(rank, label) == wanted, label
        # What the ranks that it leaves say of its end changes nothing, whoever is printed first.
        peers = [*labelled(label, 0, PEER), *labelled(label, 2, PEER)]
        if wanted is not None:
            assert cause([*rank, *peers], label) == cause([*peers, *rank], label) == wanted, label
        ended = "srun: error: n2: task 1: Exited with exit code 1"
        assert cause([*peers, *rank, ended], label) == wanted, label


def test_no_text_is_told_of_what_a_program_survives() -> None:
    """Whatever it has logged before: the last error is that of which it ended."""
    end = raised("AssertionError: loss is nan", None).text
    quiet = ["epoch 3: loss 0.1"]
    for name, (text, _, _) in TEXTS.items():
        lines = text.replace("[rank1]:", "").splitlines()
        assert cause([*lines, *quiet]) is None, name
        after = read([*lines, *quiet, *end.splitlines()]).reason
        assert after and (after.cause, after.text) == (None, "AssertionError: loss is nan"), name
        # In a thread, and in a message of something else.
        assert cause(["Exception in thread Thread-3 (log):", *lines]) in (None, TEXTS[name].cause)
        quoted = f"{START}ValueError: cannot go on: {lines[-1].strip()}"
        assert cause(quoted.splitlines()) is None, name
    # One that went on after an error, of which others may have hung.
    hung = [*TEXTS["numpy"].text.splitlines(), *quiet, *TEXTS["gloo"].text.splitlines()]
    found = read(hung).reason
    assert found and (found.cause, found.weight) == (None, WAITED)
    for line in BENIGN:
        assert cause([line]) is None and cause([line, *end.splitlines()]) is None, line
        assert cause(f"{START}{line}".splitlines()) is None, line


BAR = "  3%|\u258e         | 24/800 [01:08<1:22:56,  2.88s/it]"
OOM = TEXTS["cuda 2.6 (lllyasviel/FramePack 369)"].text.splitlines()


def test_forms_in_which_errors_are_printed() -> None:
    """Behind and before a progress bar, in a box of Rich's, by several ranks line by line."""
    assert cause([BAR + OOM[0], *OOM[1:], BAR]) == Cause.GPU_OUT_OF_MEMORY
    assert cause([*OOM, *[BAR] * 3]) is None
    edge = 3 * "\u2500"
    box = [f"\u256d{edge} Traceback (most recent call last) {edge}\u256e"]
    box += ["\u2502 train.py:988 in step    \u2502", f"\u2570{edge}\u256f"]
    broken = ["\x1b[1;91mOutOfMemoryError: \x1b[0mCUDA out of memory. Tried to allocate 29.76 GiB.",
              "GPU 0 has a total capacity of 10.74 GiB of which 3.69 GiB is free."]  # fmt: skip
    assert cause([*box, *broken]) == Cause.GPU_OUT_OF_MEMORY
    mixed = [line for line in OOM for _ in range(3)]
    assert cause(mixed) == Cause.GPU_OUT_OF_MEMORY
    assert cause([*mixed, "epoch 3"]) is None
    other = TEXTS["numpy"].text.splitlines()
    assert cause([line for pair in zip(OOM, other, strict=True) for line in pair]) is None
    launcher = "[2023-04-14 13:11:27,885] [ERROR] [launch.py:434:sigkill_handler] ['python'] exits"
    assert cause([*OOM, launcher]) == Cause.GPU_OUT_OF_MEMORY


def test_of_two_causes_that_contradict_each_other_none_is_told() -> None:
    """The matrix of all pairs: two ranks, of which nobody knows who was first."""
    alone = {name: read(each.text.splitlines()).reason for name, each in TEXTS.items()}
    for (name, reason), (other, peer) in itertools.product(alone.items(), repeat=2):
        assert reason and peer
        texts = TEXTS[name].text, TEXTS[other].text
        both = [*labelled("pytorch", 0, texts[0]), *labelled("pytorch", 1, texts[1])]
        least = min(reason.weight, peer.weight)
        causes = {each.cause for each in (reason, peer) if each.weight == least}
        wanted = causes.pop() if len(causes) == 1 else None
        assert cause(both) == wanted, (name, other)
        assert cause("\n".join(texts).splitlines()) == wanted, (name, other)
        # Whom the launcher saw first is believed, where it has an error of its own.
        if reason.weight == OWN:
            ended = "local_ranks: error: vm: rank 0: Exited with exit code 1"
            assert cause([*both, ended]) == reason.cause, (name, other)


def test_peers_who_lost_a_rank_do_not_tell_for_it() -> None:
    killed = "local_ranks: error: vm: rank 1: Killed"
    found = step_errors([*labelled("horovodrun", 0, PEER), killed])
    assert (found.first, found.who, found.reason) == ((None, 9), "rank 1 on vm", None)
    # Rank 0 ends first of what rank 1 died of, which writes its core yet.
    crash = ["srun: error: n1: task 0: Exited with exit code 1",
             "srun: error: n2: task 1: Segmentation fault (core dumped)"]  # fmt: skip
    found = step_errors([*labelled("srun", 0, PEER), *crash], labelled=True)
    assert (found.first, found.who) == ((None, 11), "rank 1 on n2")


def test_a_rank_that_others_terminate_is_named_where_no_rank_failed_before() -> None:
    """local_ranks.py tells of the first only; srun ends the others by SIGTERM, too."""
    found = step_errors(["local_ranks: error: vm: rank 1: Terminated"])
    assert (found.first, found.who) == ((None, signal.SIGTERM), "rank 1 on vm")
    found = step_errors(["srun: error: n1: task 0: Terminated"])
    assert (found.first, found.who) == (None, "")


TORCHRUN = """\
W1124 03:12:37.669000 19403 torch/distributed/elastic/multiprocessing/api.py:1028] Sending process 19504 closing signal SIGTERM
E1124 03:12:37.701000 19403 torch/distributed/elastic/multiprocessing/api.py:1002] failed (exitcode: -9) local_rank: 1 (pid: 19506) of binary: python
Traceback (most recent call last):
  File "<frozen runpy>", line 198, in _run_module_as_main
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
=======================================================
train.py FAILED
-------------------------------------------------------
Failures:
[1]:
  time      : 2026-11-24_03:12:37
  host      : n1
  rank      : 0 (local_rank: 0)
  exitcode  : {other}
  error_file: <N/A>
  traceback : To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html
-------------------------------------------------------
Root Cause (first observed failure):
[0]:
  time      : 2026-11-24_03:12:37
  host      : n1
  rank      : 1 (local_rank: 1)
  exitcode  : {root}
  error_file: <N/A>
  traceback : Signal 9 (SIGKILL) received by PID 19506
=======================================================
"""  # noqa: E501


@pytest.mark.parametrize(
    ("root", "other", "ranks", "wanted"),
    [
        ("-9 (pid: 19506)  (SIGKILL)", "-15 (pid: 19504)  (SIGTERM)", {0: PEER}, ("1", None, 9)),
        ("1 (pid: 2)", "1 (pid: 3)", {0: TEXTS["numpy"].text, 1: PEER}, ("0", 1, None)),
        ("1 (pid: 2)", "-11 (pid: 3)", {1: PEER}, ("0", None, 11)),
        ("1 (pid: 2)", "-15 (pid: 3)", {0: PEER, 1: TEXTS["numpy"].text}, ("1", 1, None)),
        ("3 (pid: 2)", "1 (pid: 3)", {0: PEER}, ("1", 3, None)),
        ("-6 (pid: 2)", "1 (pid: 3)", {0: PEER}, ("1", None, 6)),
    ],
)
def test_what_torchrun_reports(
    root: str, other: str, ranks: dict[int, str], wanted: tuple[str, int | None, int | None]
) -> None:
    lines = [line for rank, text in ranks.items() for line in labelled("pytorch", rank, text)]
    if root.startswith("-6"):  # C++'s last words have no label
        lines += TEXTS["sizes"].text.splitlines()
    found = step_errors([*lines, *TORCHRUN.format(root=root, other=other).splitlines()])
    assert (found.ranks, found.node, found.first) == (wanted[0], "n1", wanted[1:])
    assert not root.startswith("-6") or (found.reason and "expected size" in found.reason.text)


def test_before_torchruns_report_no_rank_need_be_labelled() -> None:
    """As before PyTorch 2.3: what several ranks say stands in no order that is known."""
    report = TORCHRUN.format(root="1 (pid: 2)", other="1 (pid: 3)").splitlines()
    said = [*PEER.splitlines(), *TEXTS["numpy"].text.splitlines()]
    assert cause([*said, *report]) == Cause.OUT_OF_MEMORY
    assert cause([*said, *TEXTS["assertion"].text.splitlines(), *report]) is None


@pytest.mark.slow
def test_failures_have_the_cause_that_ranks_print(tmp_path: Path) -> None:
    """Through the launcher, with an exit code that no program chooses, and with its own."""
    local = [sys.executable, str(ROOT / "workflow" / "launchers" / "local_ranks.py"), "2"]
    lost = f"printf %s {shlex.quote(PEER)} >&2"
    for number, (name, code, wanted, told) in enumerate((
        ("cuda 2.6 (lllyasviel/FramePack 369)", "exit 1", "GPU_OUT_OF_MEMORY", "29.76 GiB"),
        ("numpy", "exit 1", "OUT_OF_MEMORY", "1.00 PiB"),
        ("numpy", "exit 3", "NON_ZERO_EXIT", "exit code 3: numpy"),
        ("c++", "kill -ABRT $$", "OUT_OF_MEMORY", "std::bad_alloc"),
        ("sizes", "kill -ABRT $$", "KILLED", "signal SIGABRT: RuntimeError: [enforce"),
        ("compiler", "exit 1", "NON_ZERO_EXIT", "exit code 1: torch._inductor.exc.Inductor"),
    )):  # fmt: skip
        said = f"printf %s {shlex.quote(TEXTS[name].text)} >&2; {code}"
        script = f"if [ $RANK = 1 ]; then {said}; fi; trap {shlex.quote(lost + '; exit 1')} TERM"
        argv = [*local, "bash", "-c", f"{script}; while :; do sleep 0.05; done"]
        folder = tmp_path / str(number)
        assert launch(spec(folder, argv=argv, ranks=2), ROOT) == 1
        found = failure(folder)
        assert (found["cause"], found["first_ranks"]) == (wanted, "1"), found["detail"]
        assert told in found["detail"] and "(rank 1 on " in found["detail"]
    argv = [*local, "bash", "-c", f"[ $RANK = 1 ] && exit 0; sleep 0.2; {lost}; exit 1"]
    assert launch(spec(tmp_path / "left", argv=argv, ranks=2), ROOT) == 1
    found = failure(tmp_path / "left")
    assert "rank 1 had ended with exit code 0 before: RuntimeError" in found["detail"]
    assert found["detail"].endswith("(says rank 0)") and "first_nodes" not in found
