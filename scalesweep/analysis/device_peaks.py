"""What data sheets state of devices: FLOP/s of products of dense matrices, and bytes/s of memory.

Data sheets of NVIDIA since Ampere print most rates with structured sparsity, which is twice what
dense matrices have; in resources/devices.csv is the half of them, in TFLOP/s. ``mi250x`` is both
dies of a package: a rank has one, and to its driver a device is one.
"""

import csv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from scalesweep.analysis.model_shape import DTYPES, ModelShape
from scalesweep.core.paths import RESOURCES

_T = 1e12
_BFLOAT16, _FLOAT8 = "bfloat16", "float8"


@dataclass(frozen=True)
class Device:
    """A device's dense peaks (FLOP/s by type of numbers), memory (bytes/s), and the data sheet."""

    flops: Mapping[str, float]
    bytes_per_s: float
    source: str


def mixed_peak(flops: Mapping[str, float], dtype: str, float8_share: float | None) -> float | None:
    """FLOP/s for numbers of a type, of peaks by type; None where there is none, or of float8
    without its share: two peaks mix.

    With a share s of the FLOP in float8 and the rest in bfloat16 the least time of a FLOP is
    s / P8 + (1 - s) / P16.
    """
    if dtype != _FLOAT8:
        return flops.get(dtype)
    if float8_share is None or not {_FLOAT8, _BFLOAT16} <= flops.keys():
        return None
    return 1 / (float8_share / flops[_FLOAT8] + (1 - float8_share) / flops[_BFLOAT16])


def _written() -> Iterator[tuple[str, Device, list[str]]]:
    """The devices of resources/devices.csv, by name, with what drivers call them."""
    with (RESOURCES / "devices.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            flops = {dtype: float(row[dtype]) * _T for dtype in DTYPES if row[dtype]}
            device = Device(flops, float(row["TB/s"]) * _T, row["source"])
            yield row["device"], device, [name for name in row["to drivers"].split("; ") if name]


DEVICES: Mapping[str, Device] = {name: device for name, device, _ in _written()}
# What drivers, and so logs, call devices; names that several devices have are not among them.
DRIVER_NAMES: Mapping[str, str] = {each: name for name, _, names in _written() for each in names}


def device_peak(shape: ModelShape) -> float | None:
    """The data sheet's FLOP/s of the device and type of numbers that a model states; None where it
    states none, or there is no such peak."""
    device = DEVICES.get(shape.device or "")
    if device is None or not shape.dtype:
        return None
    return mixed_peak(device.flops, shape.dtype, shape.float8_share)
