"""Settings of Horovod that show in the command and the environment of an external program."""

from typing import Any

import pytest

from scalesweep.compute.horovod_settings import visible_settings

RUN = ("/bin/horovodrun", "-np", "2")
CACHE = "--cache-capacity=1024"


@pytest.mark.parametrize(
    ("words", "environment", "values", "origins"),
    [
        (
            (*RUN, "--fusion-threshold-mb", "32", "--cache-capacity=0"),
            {"FUSION_THRESHOLD": "1", "CYCLE_TIME": "2.5"},
            (32 << 20, 0.0025, 0), ("launcher", "variable", "launcher"),
        ),
        (("mpirun", "-x", "HOROVOD_CYCLE_TIME=3.5"), {}, (None, 0.0035, None),
         (None, "variable", None)),
        (("srun", "--export=ALL,HOROVOD_CYCLE_TIME=3.5,OMP_NUM_THREADS=2"), {},
         (None, 0.0035, None), (None, "variable", None)),
        (("srun", "env", "HOROVOD_CYCLE_TIME=3.5"), {}, (None, 0.0035, None),
         (None, "variable", None)),
        ((*RUN, "--autotune", CACHE), {}, (None, None, 1024), ("autotune", "autotune", "launcher")),
        ((*RUN, CACHE), {"AUTOTUNE": "1"}, (None, None, 1024),
         ("autotune", "autotune", "launcher")),
        ((*RUN, "--no-autotune", CACHE), {"AUTOTUNE": "1"}, (None, None, 1024),
         (None, None, "launcher")),
        (("mpirun",), {"FUSION_THRESHOLD": "many"}, (None,) * 3, ("variable", None, None)),
        (("mpirun", "-np", "2"), {}, None, None),
        ((), {"GLOO_IFNAME": "lo"}, None, None),
    ],
)  # fmt: skip
def test_what_shows_is_known(
    words: tuple[str, ...], environment: dict[str, str], values: Any, origins: Any
) -> None:
    variables = {f"HOROVOD_{name}": value for name, value in environment.items()}
    settings = visible_settings([*words, "python", "train.py"], {"PATH": "/bin", **variables})
    if values is None:
        assert settings is None
        return
    assert settings is not None
    names = ("bucket_bytes", "cycle_s", "cache_capacity")
    assert tuple(settings[name] for name in names) == values
    assert tuple(settings["from"].values()) == origins
