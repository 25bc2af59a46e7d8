"""What the doctor says of the facts that probes, ranks and Python have found."""

from typing import Any

import pytest

from scalesweep.compute.doctor import ranks
from scalesweep.compute.doctor.checks import FAILED, OK, SKIPPED, WARNING
from scalesweep.compute.doctor.nodes import (
    Clock,
    judge_clocks,
    judge_folder,
    judge_gpus,
    judge_power,
)
from scalesweep.compute.doctor.programs import Said, said_in
from scalesweep.compute.doctor.software import judge_horovod, judge_tensorflow
from scalesweep.compute.doctor.torch_checks import judge_build

SITE = "config/sites/big.yaml"


def node(host: str = "n1", **facts: Any) -> dict[str, Any]:
    return {"host": host, "token": "t", "files": {"median": 0.001, "longest": 0.01}, **facts}


def rank(number: int | None, host: str = "n1", cpus: Any = (0, 1), **facts: Any) -> dict[str, Any]:
    return {"rank": number, "size": 2, "host": host, "cpus": list(cpus), **facts}


def hvd(size: int = 2, on: str = "Gloo") -> dict[str, Any]:
    return {"horovod": {"rank": 0, "size": size, "sum": float(size), "on": on}}


def torch(number: int, size: int = 2, total: float = 3, order: Any = (0, 1)) -> dict[str, Any]:
    exchange = {"rank": number, "size": size, "sum": total, "order": list(order), "on": "gloo"}
    return rank(None, torch=exchange)


def test_a_folder_that_a_node_does_not_see() -> None:
    blind = node("n2", token=None, folder_error="/r/here: No such file or directory")
    folder, files = judge_folder([node(), blind], "t", "/r")
    assert folder.state == FAILED and files.state == SKIPPED
    assert folder.detail == "n2 does not see /r: /r/here: No such file or directory"
    assert "--results FOLDER" in folder.mend
    folder, _ = judge_folder([node(token="other")], "t", "/r")
    assert folder.detail == "n1 does not see /r: another folder lies there"


@pytest.mark.parametrize(("median", "state"), [(0.004, OK), (0.2, WARNING)])
def test_how_long_a_small_file_takes(median: float, state: str) -> None:
    slow = node("n2", files={"median": median, "longest": 0.5})
    folder, files = judge_folder([node(), slow], "t", "/r")
    assert folder == ("results folder", OK, "/r is seen from 2 nodes", "")
    assert (files.state, bool(files.mend)) == (state, state == WARNING)
    assert f"a small file takes {1000 * median:.1f} ms on n2" in files.detail


@pytest.mark.parametrize(
    ("ahead", "error", "state"),
    [
        (0.001, 0.0002, OK),
        (0.05, 0.0002, WARNING),
        (0.05, 0.03, OK),  # no more than what cannot be told
        (-3.0, 0.0002, FAILED),
    ],
)
def test_clocks(ahead: float, error: float, state: str) -> None:
    check = judge_clocks([Clock("n1", 0.0, error), Clock("n2", ahead, error)])
    assert check.state == state and bool(check.mend) == (state != OK)
    first = "n2 is" if ahead > 0 else "n1 is"
    assert check.detail.startswith(f"{first} {1000 * abs(ahead):.1f} ms ahead of")
    assert f"give or take {2000 * error:.1f} ms" in check.detail
    assert judge_clocks([]).state == SKIPPED


@pytest.mark.parametrize(
    ("gpus", "wanted", "state", "found"),
    [
        ([], 0, OK, "none, as the site file says"),
        (["A100"] * 4, 4, OK, "4 on each node: A100"),
        (["A100"] * 3, 4, FAILED, "n1 shows 3 of 4"),
        (["A100"], 0, WARNING, f"n1 shows 1, {SITE} says 0"),
        ("nvidia-smi: no driver", 4, FAILED, "n1: nvidia-smi: no driver"),
        ("nvidia-smi: no driver", 0, WARNING, "n1: nvidia-smi: no driver"),
    ],
)
def test_gpus(gpus: Any, wanted: int, state: str, found: str) -> None:
    check = judge_gpus([node(gpus=gpus)], wanted, SITE)
    assert (check.state, check.detail) == (state, found)
    assert bool(check.mend) == (state != OK)


def test_power() -> None:
    domains = [f"rapl:package-{n}" for n in range(6)]
    read = judge_power([node(power={"domains": domains, "missing": ""})])
    assert read.detail == (
        "rapl:package-0, rapl:package-1, rapl:package-2, rapl:package-3 and 2 more on n1"
    )
    why = "no RAPL counter on host n2"
    lacks = judge_power([node(power={"domains": ["x"], "missing": ""}),
                         node("n2", power={"domains": [], "missing": why})])  # fmt: skip
    assert (lacks.state, lacks.detail) == (WARNING, why) and "docs/guide/energy.md" in lacks.mend
    assert judge_power([node()]).state == SKIPPED


@pytest.mark.parametrize(
    ("said", "wrong"),
    [
        (Said([rank(0), rank(1)], ""), ""),
        (Said([rank(None), rank(None)], ""), ""),
        (Said([rank(0, **hvd()), rank(0, **hvd())], ""), ""),  # Horovod knows better
        (Said([rank(0), rank(0)], ""), "2 processes started, each as rank 0: the launcher"),
        (Said([rank(0)], ""), "1 of 2 ranks started"),
        (Said([], "exit code 127: cannot start srun"), "exit code 127: cannot start srun"),
        (
            Said([rank(0, **hvd(1, "MPI")), rank(0, **hvd(1, "MPI"))], ""),
            "2 processes started, each alone: Horovod counts 1 rank(s) over MPI",
        ),
        (
            Said([rank(0, horovod_error="ValueError: no Gloo"), rank(1)], ""),
            "2 ranks started, Horovod failed: ValueError: no Gloo",
        ),
        (Said([torch(0), torch(1)], ""), ""),
        (
            Said([torch(0, 1, 1, [0]), torch(0, 1, 1, [0])], ""),
            "2 processes started, each alone: PyTorch counts 1 rank(s)",
        ),
        (
            Said([torch(0), torch(1, total=2)], ""),
            "wrong result of an exchange over gloo: on rank 1 the sum is 2 for 3",
        ),
        (
            Said([torch(0), torch(1, order=[1, 0])], ""),
            "wrong result of an exchange over gloo: on rank 1 the sum is 3 for 3, and 1, 0 came",
        ),
        # What the ranks say is clearer than how their launcher ended.
        (
            Said([rank(0, torch_error="rank 1 of 2 did not join rank 0 on n1")], "exit code 1"),
            "1 of 2 ranks started, PyTorch failed: rank 1 of 2 did not join rank 0 on n1",
        ),
        (
            Said([rank(0, torch_error=""), rank(1, torch_error="no eth7")], ""),
            "2 of 2 ranks started, PyTorch failed: no eth7",
        ),
    ],
)
def test_two_ranks(said: Said, wrong: str) -> None:
    assert ranks.judge(said).startswith(wrong) and bool(ranks.judge(said)) == bool(wrong)


@pytest.mark.parametrize(
    ("facts", "asked", "state", "found"),
    [
        ([rank(0), rank(1)], None, OK, "none asked for"),
        ([rank(0), rank(1)], 2, WARNING, "ranks share CPUs 0-1"),
        ([rank(0), rank(1, "n2")], 2, OK, "2 CPUs per rank asked for: 2 CPUs (0-1) on n1"),
        ([rank(0), rank(1, cpus=(2, 3))], 2, OK, "2 CPUs per rank asked for"),
        ([rank(0), rank(1, cpus=[2])], 2, WARNING, "2 CPUs per rank asked for: 2 CPUs (0-1) on n1"),
        ([rank(0)], 2, SKIPPED, "needs launcher"),
    ],
)
def test_binding(facts: Any, asked: int | None, state: str, found: str) -> None:
    check = ranks.judge_binding(facts, asked, SITE)
    assert check.state == state and check.detail.startswith(found)


FULL = {
    "wrong": {}, "tensorflow": "2.18", "horovod": "0.28",
    "built": {"mpi": True, "gloo": False, "nccl": False},
}  # fmt: skip


@pytest.mark.parametrize(
    ("facts", "wanted", "state", "found"),
    [
        (FULL, ["mpi"], OK, "0.28: built with MPI, without Gloo, NCCL"),
        (FULL, ["gloo"], FAILED, "0.28: built with MPI, without Gloo, NCCL; the site asks"),
        (FULL, ["mpi", "nccl"], WARNING, "0.28: built with MPI, without Gloo, NCCL; the"),
        (
            {**FULL, "horovod": None, "wrong": {"horovod": "ModuleNotFoundError: No module"}},
            [], FAILED, "not installed",
        ),
        (
            {**FULL, "wrong": {"horovod.tensorflow": "ImportError: libmpi.so.40: cannot open"}},
            [], FAILED, "ImportError: libmpi.so.40: cannot open",
        ),
    ],
)  # fmt: skip
def test_horovod(facts: Any, wanted: list[str], state: str, found: str) -> None:
    check = judge_horovod(facts, wanted, SITE)
    assert check.state == state and check.detail.startswith(found)
    assert bool(check.mend) == (state in (FAILED, WARNING))


def test_tensorflow() -> None:
    assert judge_tensorflow(FULL, SITE) == ("TensorFlow", OK, "2.18", "")
    broken = {"tensorflow": None, "wrong": {"tensorflow": "OSError: libcudart.so.12"}}
    check = judge_tensorflow(broken, SITE)
    assert (check.state, check.detail) == (FAILED, "OSError: libcudart.so.12")


def build(**differs: Any) -> dict[str, Any]:
    built = {"distributed": True, "gloo": True, "nccl": True, "mpi": False, "cuda": "13.0",
             "gpus": 4}  # fmt: skip
    return {"wrong": {}, "torch": "2.13", "python": "3.12.1", "executable": "/t/python",
            "numpy": "2.4", "torch_build": {**built, **differs}}  # fmt: skip


NO_CUDA = {"nccl": False, "cuda": None, "gpus": 0}


@pytest.mark.parametrize(
    ("facts", "gpus", "state", "text"),
    [
        (build(), 4, OK, "2.13 in Python 3.12.1 (/t/python), NumPy 2.4; built with Gloo, NCCL, "
                         "without MPI; CUDA 13.0, 4 GPUs"),
        (build(**NO_CUDA), 0, OK, "built with Gloo, without MPI, NCCL; without CUDA"),
        (build(**NO_CUDA), 4, FAILED, "says 4 GPUs on each node: runs would be on CPUs"),
        (build(gpus=0), 4, FAILED, "CUDA 13.0, 0 GPUs; config/sites/big.yaml says 4 GPUs on each"),
        (build(gpus=1), 4, WARNING, "CUDA 13.0, 1 GPU; config/sites/big.yaml says 4 GPUs on each"),
        (build(nccl=False), 4, FAILED, "ranks on GPUs exchange data through NCCL alone"),
        (build(nccl=False), 0, FAILED, "ranks on GPUs exchange data through NCCL alone"),
        (build(gloo=False, **NO_CUDA), 0, FAILED, "built with none of MPI, Gloo and NCCL; without "
                                                  "CUDA; Gloo is missing: ranks cannot meet"),
        (build(distributed=False, gloo=False), 4, FAILED, "torch.distributed is missing"),
        (build() | {"numpy": None}, 4, FAILED, "scalesweep's benchmarks need NumPy"),
        (build() | {"torch": None, "wrong": {"torch": "ModuleNotFoundError: No module"}}, 4,
         FAILED, "/t/python: not installed"),
        (build() | {"wrong": {"torch": "OSError: libcudart.so.13"}}, 4, FAILED,
         "/t/python: OSError: libcudart.so.13"),
    ],
)  # fmt: skip
def test_a_build_of_pytorch(facts: Any, gpus: int, state: str, text: str) -> None:
    check = judge_build(facts, gpus, SITE)
    assert check.state == state and text in check.detail
    assert bool(check.mend) == (state in (FAILED, WARNING))


def test_what_is_said_among_other_output() -> None:
    text = 'log\n[0]<stdout>:@doctor {"rank": 0}\n@doctor {"rank": 1}@doctor {"rank": 2}\n@doctor {'
    assert said_in(text) == [{"rank": 0}, {"rank": 1}, {"rank": 2}]
    assert said_in("@doctor 3\n@doctor ") == []
