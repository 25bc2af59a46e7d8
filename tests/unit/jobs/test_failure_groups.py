"""Failures as lines: one for what failed in the same way, with its points and no others."""

from typing import Any

import pytest

from scalesweep.jobs.failure_groups import Failure, failure_lines


def failed(
    number: int, detail: str = "exit code 3", experiment: str = "e", **point: Any
) -> Failure:
    return Failure(f"toy-r1-{number}", "NON_ZERO_EXIT", detail, experiment, point)


MODE = [failed(10 * n + r, mode="exit3", ranks=n) for n in (4, 1, 2) for r in (0, 1, 2)]
TWO = [failed(1, experiment="io", shape=[2, 2]), failed(2, experiment="cnn", on=True)]
PLACES = ("(rank 517 on node3)", "(ranks 0-1,4 on node[1-2])")
QUOTA = [failed(n, f"exit code 7: quota exceeded {at}") for n, at in enumerate(PLACES)]
LOST = [
    failed(n, f"job {n} lost a node of node[{n}-9]")._replace(cause="NODE_FAIL") for n in range(3)
]


@pytest.mark.parametrize(
    ("failures", "lines"),
    [
        (MODE, ["NON_ZERO_EXIT: exit code 3: mode=exit3, ranks 1, 2, 4 (9 runs)"]),
        # Experiments are named where there are several, and runs count once.
        ([*TWO, TWO[0]], ["NON_ZERO_EXIT: exit code 3: io, shape=[2,2] (toy-r1-1)",
                          "NON_ZERO_EXIT: exit code 3: cnn, on=true (toy-r1-2)"]),
        ([failed(1, "")], ["NON_ZERO_EXIT (toy-r1-1)"]),
        # Of one reason, wherever it was.
        (QUOTA, ["NON_ZERO_EXIT: exit code 7: quota exceeded (2 runs)"]),
        (LOST, ["NODE_FAIL: job lost a node of its allocation (3 runs)"]),
    ],
)  # fmt: skip
def test_what_failed_in_the_same_way_is_one_line(failures: list[Failure], lines: list[str]) -> None:
    assert failure_lines(failures) == lines
