"""Addresses in pages of files."""

import os
from pathlib import Path
from urllib.parse import quote


class Links:
    """Relative addresses from the page to files."""

    def __init__(self, out: Path) -> None:
        self._base = out.parent.absolute()

    def to(self, path: Path) -> str:
        """Relative address of ``path``, percent-encoded; "./" keeps a name with a colon from being
        read as a scheme."""
        return f"./{quote(os.path.relpath(path, self._base))}"
