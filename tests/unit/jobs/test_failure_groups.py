"""Failures as lines: one for what failed in the same way, with its points and no others."""

from typing import Any

from scalesweep.jobs.failure_groups import Failure, failure_lines


def failed(
    number: int, detail: str = "exit code 3", experiment: str = "e", **point: Any
) -> Failure:
    return Failure(f"toy-r1-{number}", "NON_ZERO_EXIT", detail, experiment, point)


def test_what_failed_in_the_same_way_is_one_line() -> None:
    runs = [
        failed(10 * ranks + repeat, mode="exit3", ranks=ranks)
        for ranks in (4, 1, 2) for repeat in (0, 1, 2)
    ]  # fmt: skip
    assert failure_lines(runs) == ["NON_ZERO_EXIT: exit code 3: mode=exit3, ranks 1, 2, 4 (9 runs)"]


def test_experiments_are_named_where_there_are_several_and_runs_count_once() -> None:
    shape = [2, 2]
    runs = [failed(1, experiment="io", shape=shape), failed(2, experiment="cnn", on=True)]
    assert failure_lines([*runs, runs[0]]) == [
        "NON_ZERO_EXIT: exit code 3: io, shape=[2,2] (toy-r1-1)",
        "NON_ZERO_EXIT: exit code 3: cnn, on=true (toy-r1-2)",
    ]
    assert failure_lines([failed(1, "")]) == ["NON_ZERO_EXIT (toy-r1-1)"]


def test_runs_that_failed_for_one_reason_are_one_group_wherever_they_were() -> None:
    details = [
        "exit code 7: quota exceeded (rank 517 on node3)",
        "exit code 7: quota exceeded (ranks 0-1,4 on node[1-2])",
    ]
    failures = [Failure(f"r{n}", "NON_ZERO_EXIT", d, "e", {}) for n, d in enumerate(details)]
    assert failure_lines(failures) == ["NON_ZERO_EXIT: exit code 7: quota exceeded (2 runs)"]
    lost = [
        Failure(f"r{n}", "NODE_FAIL", f"job {n} lost a node of node[{n}-9]", "e", {})
        for n in range(3)
    ]
    assert failure_lines(lost) == ["NODE_FAIL: job lost a node of its allocation (3 runs)"]
