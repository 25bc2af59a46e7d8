"""Logs of tf_cnn_benchmarks and keras-multi-gpu that the acceptance tests read, changed."""

import re
from typing import Any

from scalesweep.importers.imported_run import ImportedRun
from tests.conftest import ROOT

TEXT, HOROVOD, KERAS = (
    (ROOT / "tests/acceptance/imports/logs" / name).read_bytes().decode()
    for name in ("tf_cnn.log", "tf_cnn_horovod.log", "keras_multi_gpu.log")
)


def one(
    rate: float = 1000.0, flags: str = "", second: int = 17, devices: int = 1, **header: str
) -> str:
    """A run of another rate, with more flags, devices and other lines of the header."""
    changes = {
        "--num_gpus 1": f"--num_gpus {devices} {flags}".strip(),
        "16:50:17": f"16:50:{second}",
        "128 global": f"{128 * devices} global",
        "['/gpu:0']": str([f"/gpu:{n}" for n in range(devices)]),
        "alexnet": header.pop("model", "alexnet"),
    }
    text = re.sub(r"(?<=/sec: )\d+\.\d", lambda it: f"{float(it[0]) * rate / 1000:.1f}", TEXT)
    for old, new in changes.items():
        text = text.replace(old, new)
    for name, value in header.items():
        text = re.sub(rf"(?m)^({name.replace('_', ' ')}: +).*", rf"\1{value}", text)
    return text


def run(rate: float = 1000.0, **names: Any) -> str:
    """What the program itself prints of it."""
    text = one(rate, **names)
    return text[text.index("TensorFlow:") :]


def labelled(label: str) -> str:
    """A Horovod job of two ranks whose lines are mixed, each behind its label."""
    return re.sub(r"(?m)^\[1,(\d)\]<stdout>:", label.replace("{}", r"\1"), HOROVOD)


def total_rate(found: ImportedRun) -> float:
    return float(found.metrics["total_images_per_second"]["value"])
