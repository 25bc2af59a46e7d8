"""What the library logs: one line each on standard error, as much as Snakemake was asked for."""

import logging
import subprocess
import sys
from collections.abc import Iterator

import pytest

from scalesweep.core.log import VERBOSITY, set_up

LOG = logging.getLogger("scalesweep.some.module")


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    log = logging.getLogger("scalesweep")
    handlers, level = log.handlers[:], log.level
    log.handlers.clear()  # what another test has set up
    yield
    log.handlers[:] = handlers
    log.setLevel(level)


@pytest.mark.parametrize(
    ("verbosity", "shown"),
    [
        ("normal", ["starting", "warning: odd: 1 %"]),
        ("quiet", ["warning: odd: 1 %"]),
        ("verbose", ["debug: details", "starting", "warning: odd: 1 %"]),
    ],
)
def test_lines_by_verbosity(
    verbosity: str, shown: list[str], monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.setenv(VERBOSITY, verbosity)
    set_up()
    set_up()  # lines do not come twice
    LOG.debug("details")
    LOG.info("starting")
    LOG.warning("odd: %s", "1 %")
    out, err = capsys.readouterr()
    assert (out, err.splitlines()) == ("", shown)


def test_a_launch_does_not_pay_for_it() -> None:
    code = "import sys, scalesweep.commands.launch; print('logging' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
