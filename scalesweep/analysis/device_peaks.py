"""What data sheets state of devices: FLOP/s of products of dense matrices, and bytes/s of memory.

Data sheets of NVIDIA since Ampere print most rates with structured sparsity, which is twice what
dense matrices have; here is the half of them.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from scalesweep.analysis.model_shape import DTYPES, ModelShape

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


def _device(
    source: str,
    bytes_per_s: float,
    *,
    float32: float,
    half: float,
    tf32: float | None = None,
    bfloat16: bool = True,
    float8: float | None = None,
) -> Device:
    """``float32``, ``half`` (float16, and bfloat16 unless it has none), ... in TFLOP/s, dense."""
    values = {
        "float32": float32,
        "tf32": tf32,
        _BFLOAT16: half if bfloat16 else None,
        "float16": half,
        _FLOAT8: float8,
    }
    flops = {dtype: values[dtype] for dtype in DTYPES}
    known = {dtype: value * _T for dtype, value in flops.items() if value is not None}
    return Device(known, bytes_per_s * _T, source)


_V100 = "NVIDIA V100 data sheet, January 2020"
_A100 = "NVIDIA A100 data sheet, June 2021"
_H100 = "NVIDIA H100 data sheet, halved for dense matrices"
_H200 = "NVIDIA H200 data sheet, halved for dense matrices"
_B200 = "NVIDIA HGX B200 (Blackwell data sheet), halved for dense matrices"
_MI250X = "AMD Instinct MI250X data sheet, matrix rates"
_MI300X = "AMD Instinct MI300X data sheet, matrix rates"

DEVICES: Mapping[str, Device] = {
    "v100_sxm2": _device(_V100, 0.9, float32=15.7, half=125.0, bfloat16=False),
    "v100_pcie": _device(_V100, 0.9, float32=14.0, half=112.0, bfloat16=False),
    "a100_40gb": _device(_A100, 1.555, float32=19.5, half=312.0, tf32=156.0),
    "a100_80gb_sxm": _device(_A100, 2.039, float32=19.5, half=312.0, tf32=156.0),
    "a100_80gb_pcie": _device(_A100, 1.935, float32=19.5, half=312.0, tf32=156.0),
    "h100_sxm": _device(_H100, 3.35, float32=67.0, half=989.5, tf32=494.5, float8=1979.0),
    "h100_pcie": _device(_H100, 2.0, float32=51.0, half=756.5, tf32=378.0, float8=1513.0),
    "h100_nvl": _device(_H100, 3.9, float32=60.0, half=835.5, tf32=417.5, float8=1670.5),
    "h200": _device(_H200, 4.8, float32=67.0, half=989.5, tf32=494.5, float8=1979.0),
    "b200": _device(_B200, 7.7, float32=75.0, half=2250.0, tf32=1100.0, float8=4500.0),
    # Both dies of a package; a rank has one.
    "mi250x": _device(_MI250X, 3.2768, float32=95.7, half=383.0),
    "mi250x_die": _device(f"{_MI250X}, half of it", 1.6384, float32=47.85, half=191.5),
    "mi300x": _device(_MI300X, 5.3, float32=163.4, half=1307.4, tf32=653.7, float8=2614.9),
}

# What drivers, and so logs, call devices; names that several devices have are not among them.
DRIVER_NAMES: Mapping[str, str] = {
    **dict.fromkeys(("Tesla V100-SXM2-16GB", "Tesla V100-SXM2-32GB"), "v100_sxm2"),
    **dict.fromkeys(("Tesla V100-PCIE-16GB", "Tesla V100-PCIE-32GB"), "v100_pcie"),
    **dict.fromkeys(("NVIDIA A100-SXM4-40GB", "NVIDIA A100-PCIE-40GB"), "a100_40gb"),
    "NVIDIA A100-SXM4-80GB": "a100_80gb_sxm",
    "NVIDIA A100 80GB PCIe": "a100_80gb_pcie",
    "NVIDIA H100 80GB HBM3": "h100_sxm",
    "NVIDIA H100 PCIe": "h100_pcie",
    "NVIDIA H100 NVL": "h100_nvl",
    "NVIDIA H200": "h200",
    "NVIDIA B200": "b200",
    "AMD Instinct MI250X": "mi250x_die",  # a device to its driver is a die
    "AMD Instinct MI300X": "mi300x",
}


def device_peak(shape: ModelShape) -> float | None:
    """The data sheet's FLOP/s of the device and type of numbers that a model states; None where it
    states none, or there is no such peak."""
    device = DEVICES.get(shape.device or "")
    if device is None or not shape.dtype:
        return None
    return mixed_peak(device.flops, shape.dtype, shape.float8_share)
