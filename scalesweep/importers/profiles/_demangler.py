"""Demangles names of C++, in a process of its own: ``python -I _demangler.py < NAMES``

Reads names with NULs between them and prints a JSON list of texts, null for what is no such name.
"""

import ctypes
import json
import resource
import sys

_LONGEST = 8192  # characters
_MEMORY_BYTES, _CPU_S = 1 << 30, 30


def main(names: list[bytes]) -> None:
    """Print the names as the C++ library writes them (``__cxa_demangle``)."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (_CPU_S, _CPU_S))
    library = ctypes.CDLL("libstdc++.so.6")
    demangle = library.__cxa_demangle
    demangle.restype = ctypes.c_void_p
    demangle.argtypes = [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]
    free = ctypes.CDLL(None).free
    free.argtypes = [ctypes.c_void_p]
    texts: list[str | None] = []
    for name in names:
        place = demangle(name, None, None, None) if len(name) <= _LONGEST else None
        texts.append(None if not place else ctypes.string_at(place).decode("utf-8", "replace"))
        if place:
            free(place)
    print(json.dumps(texts))


if __name__ == "__main__":
    main(sys.stdin.buffer.read().split(b"\0"))
