"""What a check says, and how checks are carried out: each by a deadline, none in another's way.

Standard library only.
"""

import contextlib
import json
import os
import select
import signal
import sys
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import NamedTuple, NoReturn

from scalesweep.core.errors import UserError
from scalesweep.core.orphans import end_with_parent

OK, WARNING, FAILED, SKIPPED = "ok", "warning", "failed", "skipped"
STATES = (OK, WARNING, FAILED, SKIPPED)
# After its deadline a check is asked to end what it has started, then made to.
GRACE_S = 3.0


class Check(NamedTuple):
    """The outcome of one check: what was found, and what to do where it is not well.

    ``state``: one of ``STATES``; for ``SKIPPED``, ``detail`` says why.
    """

    name: str
    state: str
    detail: str
    mend: str = ""


Checks = Generator[Check, None, None]


class Group(NamedTuple):
    """Checks that one look finds out together: their names in order, and a deadline in seconds."""

    names: Sequence[str]
    seconds: float
    examine: Callable[[], Checks]


def carry_out(groups: Sequence[Group]) -> Iterator[Check]:
    """The outcomes of all checks of the groups, which are at work at the same time.

    Each group has a process of its own, so that one that hangs or breaks takes no other with it:
    its deadline, or what broke, is then the outcome of the first check that is open, on which the
    others of the group wait.
    """
    open_groups = {start.reader: start for start in map(_Started, groups)}
    try:
        while open_groups:
            nearest = min(group.deadline for group in open_groups.values())
            left = max(0.0, nearest - time.monotonic())
            for reader in select.select(list(open_groups), [], [], left)[0]:
                yield from open_groups[reader].read()
            now = time.monotonic()
            for reader, group in list(open_groups.items()):
                if group.ended or now >= group.deadline:
                    del open_groups[reader]
                    yield from group.finish()
    finally:
        for group in open_groups.values():
            group.end()


class _Started:
    """A group at work in a process of its own."""

    def __init__(self, group: Group) -> None:
        self._group = group
        self._names = list(group.names)
        self._rest = b""
        self._broken = ""
        self.ended = False
        self.deadline = time.monotonic() + group.seconds
        self.reader, writer = os.pipe()
        sys.stdout.flush()
        self._pid = os.fork()
        if self._pid == 0:
            os.close(self.reader)
            _work(group, writer)
        os.close(writer)

    def read(self) -> Iterator[Check]:
        """The outcomes that have arrived."""
        content = os.read(self.reader, 65536)
        self.ended = not content
        *lines, self._rest = (self._rest + content).split(b"\n")
        for line in lines:
            said = json.loads(line)
            if isinstance(said, str):
                self._broken = said
                continue
            check = Check(*said)
            if check.name in self._names:
                self._names.remove(check.name)
            yield check

    def finish(self) -> Iterator[Check]:
        """End the process; outcomes of the checks that it leaves open."""
        late = not self.ended
        self.end()
        if not self._names:
            return
        first, *others = self._names
        if late:
            detail, mend = (
                f"no answer within {self._group.seconds:g} s",
                "see whether it hangs there",
            )
        else:
            detail, mend = self._broken or "the check ended without an answer", ""
        yield Check(first, FAILED, detail, mend)
        for name in others:
            yield Check(name, SKIPPED, f"needs {first}")

    def end(self) -> None:
        """End the process and what is left of its group."""
        os.close(self.reader)
        for number, patience in ((signal.SIGTERM, GRACE_S), (signal.SIGKILL, 1.0)):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._pid, number)
            deadline = time.monotonic() + patience
            while time.monotonic() < deadline:
                if os.waitpid(self._pid, os.WNOHANG)[0]:
                    with contextlib.suppress(ProcessLookupError, PermissionError):
                        os.killpg(self._pid, signal.SIGKILL)
                    return
                time.sleep(0.02)
        # What hangs in the kernel (a dead file system) is not waited for.


def _work(group: Group, writer: int) -> NoReturn:
    """In the process of a group: carry it out and write each outcome as it comes."""
    code = 1
    try:
        os.setsid()  # a group of its own, which can be ended as a whole
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
        end_with_parent()
        with os.fdopen(writer, "w", encoding="utf-8") as out:
            try:
                # Closed at the signal too: what it has started is ended, its job cancelled.
                with contextlib.closing(group.examine()) as checks:
                    for check in checks:
                        print(json.dumps(check), file=out, flush=True)
            except (UserError, OSError) as error:
                print(json.dumps(str(error)), file=out, flush=True)
            except Exception as error:
                said = f"the check itself broke: {type(error).__name__}: {error}"
                print(json.dumps(" ".join(said.split())), file=out, flush=True)
        code = 0
    finally:
        os._exit(code)
