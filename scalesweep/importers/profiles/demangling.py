"""Names of C++ functions as their source has them, from those that a linker sees."""

import subprocess
from collections.abc import Mapping, Sequence

_TIMEOUT_S = 60


def demangled(names: Sequence[str]) -> Mapping[str, str]:
    """The plain name of each mangled one, by ``c++filt``; nothing where there is none."""
    mangled = [name for name in names if name.startswith("_Z") and name.isprintable()]
    if not mangled:
        return {}
    try:
        done = subprocess.run(
            ["c++filt"], input="\n".join(mangled), capture_output=True, text=True,
            timeout=_TIMEOUT_S, check=True,
        )  # fmt: skip
    except (OSError, ValueError, subprocess.SubprocessError):
        return {}
    plain = done.stdout.splitlines()
    if len(plain) != len(mangled):
        return {}
    return {name: text for name, text in zip(mangled, plain, strict=True) if text != name}
