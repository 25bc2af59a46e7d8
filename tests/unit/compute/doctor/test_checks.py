"""Checks are carried out apart: one that hangs, breaks or dies takes no other with it."""

import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from scalesweep.compute.doctor import checks
from scalesweep.compute.doctor.checks import FAILED, OK, SKIPPED, Check, Checks, Group, carry_out
from scalesweep.core.errors import UserError


def well() -> Checks:
    yield Check("a", OK, "as it must be")
    yield Check("b", OK, "too")


def hangs() -> Checks:
    yield Check("c", OK, "before it hangs")
    subprocess.Popen(["sleep", "86431"])
    time.sleep(86431)


def breaks() -> Checks:
    yield from ()
    raise LookupError("two\nlines")


def complains() -> Checks:
    yield from ()
    raise UserError("x.yaml: no such key")


def dies() -> Checks:
    yield from ()
    os.kill(os.getpid(), signal.SIGKILL)


def outcome(check: Check) -> tuple[str, str]:
    return check.state, check.detail


def sleepers() -> list[bytes]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found.append(path.read_bytes())
        except OSError:
            continue
    return [words for words in found if words == b"sleep\x0086431\x00"]


def test_each_has_its_own_deadline_and_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "GRACE_S", 0.2)
    groups = [
        Group(("c", "d", "e"), 0.5, hangs),
        Group(("a", "b"), 60, well),
        Group(("f", "g"), 60, breaks),
        Group(("h",), 60, complains),
        Group(("i",), 60, dies),
    ]
    found = {check.name: outcome(check) for check in carry_out(groups)}
    assert found == {
        "a": (OK, "as it must be"),
        "b": (OK, "too"),
        "c": (OK, "before it hangs"),
        "d": (FAILED, "no answer within 0.5 s"),
        "e": (SKIPPED, "needs d"),
        "f": (FAILED, "the check itself broke: LookupError: two lines"),
        "g": (SKIPPED, "needs f"),
        "h": (FAILED, "x.yaml: no such key"),
        "i": (FAILED, "the check ended without an answer"),
    }
    assert sleepers() == []


@pytest.mark.parametrize("end", [lambda: None, lambda: time.sleep(0.05)])
def test_what_is_broken_off_tidies_up(tmp_path: Path, end: Callable[[], None]) -> None:
    def tidies() -> Checks:
        try:
            yield Check("a", OK, "")
            time.sleep(100)
        finally:
            (tmp_path / "tidied").touch()

    running = carry_out([Group(("a", "b"), 100, tidies)])
    assert next(running).name == "a"
    end()
    running.close()
    assert (tmp_path / "tidied").exists()
