"""The settings that Horovod runs with: variables first, else the defaults of its version."""

import pytest

from harness.horovod_settings import effective_settings


@pytest.mark.parametrize(
    ("environ", "version", "fusion", "cycle", "origins"),
    [
        ({}, "0.28.1", 128 << 20, 1.0, "default default"),
        ({}, None, None, None, "default default"),
        ({"HOROVOD_CYCLE_TIME": "2.5"}, "0.28.1", 128 << 20, 2.5, "default variable"),
        ({"HOROVOD_FUSION_THRESHOLD": "0"}, "0.28.1", 0, 1.0, "variable default"),
        ({"HOROVOD_FUSION_THRESHOLD": "much"}, "0.28.1", None, 1.0, "variable default"),
        ({"HOROVOD_AUTOTUNE": "1"}, "0.28.1", None, None, "autotune autotune"),
        ({"HOROVOD_AUTOTUNE": "0"}, "0.28.1", 128 << 20, 1.0, "default default"),
    ],
)
def test_effective_settings(
    environ: dict[str, str],
    version: str | None,
    fusion: int | None,
    cycle: float | None,
    origins: str,
) -> None:
    found = effective_settings(environ, version)
    cycle_s = None if cycle is None else cycle / 1e3
    assert (found["bucket_bytes"], found["cycle_s"]) == (fusion, cycle_s)
    assert list(found["from"].values())[:2] == origins.split()
    assert found["cache_capacity"] == (None if version is None else 1024)
