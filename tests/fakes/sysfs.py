"""A made /sys with counters of energy and sensors of power, in the forms of the real one."""

import subprocess
import threading
import time
from pathlib import Path
from typing import Any

RANGE = 262_143_328_850  # max_energy_range_uj of an Intel package: 2**32 times 61 uJ


def write(path: Path, value: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    # By rename: a reader never finds the file empty.
    temporary = path.with_name(f".{path.name}.new")
    temporary.write_text(f"{value}\n")
    temporary.replace(path)
    return path


def zone(root: Path, place: str, name: str, energy_uj: int = 0, most: int = RANGE) -> Path:
    """A zone of RAPL (``intel-rapl:0``, its subzone ``intel-rapl:0:1``); its counter."""
    folder = root / "class" / "powercap" / place
    write(folder / "name", name)
    write(folder / "max_energy_range_uj", most)
    return write(folder / "energy_uj", energy_uj)


def deny(path: Path) -> None:
    """Make a file unreadable. Root may read all, so a link to itself stands in (ELOOP)."""
    path.unlink()
    path.symlink_to(path.name)


def samplers(folder: Path) -> list[str]:
    """Processes with a sampler's command line for this folder."""
    found = subprocess.run(
        ["pgrep", "-f", f"sampler.py.*{folder}"], capture_output=True, text=True, check=False
    )
    return found.stdout.split()


class Rising:
    """Counters that rise by a known power, from a thread, until the end of the with block."""

    def __init__(self, watts: dict[Path, float]) -> None:
        self.watts = watts
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._rise, daemon=True)

    def __enter__(self) -> None:
        self._begun = time.monotonic()
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _rise(self) -> None:
        while not self._over.wait(0.005):
            for path, watts in self.watts.items():
                write(path, round(watts * (time.monotonic() - self._begun) * 1e6))
