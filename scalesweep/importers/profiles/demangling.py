"""Names of C++ functions as their source has them, from those that a linker sees."""

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

_MANGLED = "_Z"
_TIMEOUT_S = 60
_READER = Path(__file__).with_name("_demangler.py")


def demangled(names: Sequence[str]) -> Mapping[str, str]:
    """The plain name of each mangled one; without those that stay as they are.

    The C++ library does it, in a process of its own: names come from files of strangers. Nothing
    where there is no such library, or where it crashes.
    """
    mangled = [name for name in names if name.startswith(_MANGLED) and "\0" not in name]
    if not mangled:
        return {}
    content = "\0".join(mangled).encode(errors="surrogateescape")
    command = [sys.executable, "-I", str(_READER)]
    try:
        done = subprocess.run(
            command, input=content, capture_output=True, timeout=_TIMEOUT_S, check=True
        )
        plain = json.loads(done.stdout)
    except (OSError, ValueError, subprocess.SubprocessError):
        return {}
    return {name: text for name, text in zip(mangled, plain, strict=True) if text is not None}
