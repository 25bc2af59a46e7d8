"""The settings that Horovod runs with: variables first, else the defaults of its version."""

from typing import Any

import pytest

from harness.horovod_settings import effective_settings


@pytest.mark.parametrize(
    ("environ", "version", "fusion", "cycle_s", "origins"),
    [
        ({}, "0.28.1", 128 << 20, 0.001, "default default"),
        ({}, None, None, None, "default default"),
        ({"HOROVOD_CYCLE_TIME": "2.5"}, "0.28.1", 128 << 20, 0.0025, "default variable"),
        ({"HOROVOD_FUSION_THRESHOLD": "0"}, "0.28.1", 0, 0.001, "variable default"),
        ({"HOROVOD_FUSION_THRESHOLD": "much"}, "0.28.1", None, 0.001, "variable default"),
        ({"HOROVOD_AUTOTUNE": "1"}, "0.28.1", None, None, "autotune autotune"),
        ({"HOROVOD_AUTOTUNE": "0"}, "0.28.1", 128 << 20, 0.001, "default default"),
    ],
)
def test_effective_settings(
    environ: dict[str, str], version: Any, fusion: Any, cycle_s: Any, origins: str
) -> None:
    settings = effective_settings(environ, version)
    assert (settings["bucket_bytes"], settings["cycle_s"]) == (fusion, cycle_s)
    assert list(settings["from"].values())[:2] == origins.split()
    assert settings["cache_capacity"] == (None if version is None else 1024)
