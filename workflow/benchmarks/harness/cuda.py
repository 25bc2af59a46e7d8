"""What NVIDIA's driver says of GPUs and memory, through ctypes; None wherever it cannot be asked.

TensorFlow does not say how large a GPU's second-level cache is, nor where it keeps a tensor of the
host. Codes are those of cuda.h.
"""

import ctypes
from functools import cache
from typing import Any

_L2_CACHE_SIZE = 38  # CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE
_MEMORY_TYPE = 2  # CU_POINTER_ATTRIBUTE_MEMORY_TYPE
_SUCCESS, _INVALID_VALUE = 0, 1
_HOST = 1  # CU_MEMORYTYPE_HOST: memory of the host that the driver has pinned


@cache
def _driver() -> Any:
    """The driver, initialised; None without one."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return None
    return driver if driver.cuInit(0) == _SUCCESS else None


def _device(number: int) -> ctypes.c_int | None:
    device, driver = ctypes.c_int(), _driver()
    if driver is None or driver.cuDeviceGet(ctypes.byref(device), number) != _SUCCESS:
        return None
    return device


def _of_device(number: int, function: str, value: Any, *words: int) -> int | None:
    """A number above 0 that the driver knows of a GPU that this process sees."""
    if (device := _device(number)) is None:
        return None
    code = getattr(_driver(), function)(ctypes.byref(value), *words, device)
    return value.value if code == _SUCCESS and value.value > 0 else None


def cache_bytes(number: int) -> int | None:
    """Return the bytes of the second-level cache of a GPU that this process sees."""
    return _of_device(number, "cuDeviceGetAttribute", ctypes.c_int(), _L2_CACHE_SIZE)


def memory_bytes(number: int) -> int | None:
    """Return the bytes of the memory of a GPU that this process sees."""
    return _of_device(number, "cuDeviceTotalMem_v2", ctypes.c_size_t())


def is_pinned(address: int, number: int) -> bool | None:
    """Return whether the driver has pinned the memory of the host at an address.

    It is asked in the primary context of a GPU, which is TensorFlow's.
    """
    device, context, kind = _device(number), ctypes.c_void_p(), ctypes.c_uint()
    driver = _driver()
    if device is None or driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), device):
        return None
    try:
        driver.cuCtxPushCurrent_v2(context)
        place = ctypes.c_uint64(address)
        code = driver.cuPointerGetAttribute(ctypes.byref(kind), _MEMORY_TYPE, place)
        driver.cuCtxPopCurrent_v2(ctypes.byref(context))
    finally:
        driver.cuDevicePrimaryCtxRelease_v2(device)
    if code == _INVALID_VALUE:  # memory that the driver knows nothing of
        return False
    return kind.value == _HOST if code == _SUCCESS else None
