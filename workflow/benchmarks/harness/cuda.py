"""Where TensorFlow keeps a tensor of the host, as NVIDIA's driver says through ctypes.

Codes are those of cuda.h.
"""

import ctypes

_MEMORY_TYPE = 2  # CU_POINTER_ATTRIBUTE_MEMORY_TYPE
_SUCCESS, _INVALID_VALUE = 0, 1
_HOST = 1  # CU_MEMORYTYPE_HOST: memory of the host that the driver has pinned


def is_pinned(address: int, number: int) -> bool | None:
    """Return whether the driver has pinned the memory of the host at an address; None if it cannot
    be asked.

    It is asked in the primary context of a GPU, which is TensorFlow's.
    """
    device, context, kind = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_uint()
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return None
    if driver.cuInit(0) or driver.cuDeviceGet(ctypes.byref(device), number):
        return None
    if driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), device):
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
