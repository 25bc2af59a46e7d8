"""The settings of Horovod that an external program was started with."""

from pathlib import Path
from typing import Any

import pytest

from scalesweep.compute.external_program import keep_attempt, read_result
from scalesweep.compute.horovod_settings import visible_settings

MB = 1 << 20
TRAIN = ["python", "train.py"]


def settings(*words: str, **environment: str) -> dict[str, Any]:
    found = visible_settings([*words, *TRAIN], environment)
    assert found is not None
    return found


def values(found: dict[str, Any]) -> list[Any]:
    """Bytes of a bucket, milliseconds of a cycle, and the capacity of the cache."""
    cycle_s = found["cycle_s"]
    cycle_ms = None if cycle_s is None else 1e3 * cycle_s
    return [found["bucket_bytes"], cycle_ms, found["cache_capacity"]]


def origins(found: dict[str, Any]) -> list[Any]:
    return list(found["from"].values())


def test_options_come_before_variables() -> None:
    words = (
        "/bin/horovodrun",
        "-np",
        "2",
        "--fusion-threshold-mb",
        "32",
        "--cache-capacity=0",
        "--gloo",
    )
    found = settings(*words, HOROVOD_FUSION_THRESHOLD="1", HOROVOD_CYCLE_TIME="2.5")
    assert values(found) == [32 * MB, 2.5, 0]
    assert origins(found) == ["launcher", "variable", "launcher"]


@pytest.mark.parametrize(
    "words",
    [
        ("mpirun", "-np", "2", "-x", "HOROVOD_CYCLE_TIME=3.5"),
        ("srun", "--export=ALL,HOROVOD_CYCLE_TIME=3.5,OMP_NUM_THREADS=2"),
        ("srun", "env", "HOROVOD_CYCLE_TIME=3.5"),
    ],
)
def test_without_horovodrun_only_what_shows_is_known(words: tuple[str, ...]) -> None:
    found = settings(*words)
    assert values(found) == [None, 3.5, None]
    assert origins(found) == [None, "variable", None]


def test_autotuning_leaves_two_unknown() -> None:
    cache = "--cache-capacity=1024"
    for found in (
        settings("horovodrun", "--autotune", cache),
        settings("horovodrun", cache, "-np", "2", HOROVOD_AUTOTUNE="1"),
    ):
        assert values(found) == [None, None, 1024]
        assert origins(found) == ["autotune", "autotune", "launcher"]
    off = settings("horovodrun", "--no-autotune", cache, HOROVOD_AUTOTUNE="1")
    assert values(off) == [None, None, 1024]


def test_odd_values_are_unknown_and_other_programs_have_none() -> None:
    assert values(settings("mpirun", HOROVOD_FUSION_THRESHOLD="many")) == [None] * 3
    assert visible_settings(["mpirun", "-np", "2", "./solver"], {"PATH": "/bin"}) is None
    assert visible_settings(["./solver"], {"HOROVOD_GLOO_IFACE": "lo"}) is None
    assert visible_settings([], {}) is None


def test_the_record_of_an_attempt_holds_them(tmp_path: Path) -> None:
    rate = {"metric": "rate", "pattern": r"rate (\d+)", "unit": "1/s", "better": "higher"}
    extract: Any = {
        "metrics": [{**rate, "scope": "total"}],
        "digest": "d",
        "srun_labels": False,
        "work": {},
    }
    spec: Any = {
        "run_id": "r", "extract": extract, "argv": ["mpirun", "-x", "HOROVOD_CYCLE_TIME=2", "./a"],
        "prologue": [], "asked": None, "params": {"ranks": 2, "ranks_per_node": 2},
    }  # fmt: skip
    keep_attempt(spec, tmp_path, {"point": {"ranks": 2}}, 0, None, {})
    for name in ("stdout.log", "stderr.log"):
        (tmp_path / name).write_text("rate 5\n")
    native, _ = read_result(tmp_path, extract)
    known = {"by": "horovod", "backend": None, "cycle_s": 2 / 1e3}
    exchange = native["notes"]["exchange"]
    assert {name: exchange[name] for name in known} == known
    assert exchange["from"] == {"bucket_bytes": None, "cycle_s": "variable", "cache_capacity": None}
