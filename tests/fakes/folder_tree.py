"""What lies in a folder, to compare it with later."""

from pathlib import Path


def tree(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Names, times (ns) and content of all that is below a folder."""
    return {
        str(path.relative_to(folder)): (
            path.lstat().st_mtime_ns, path.read_bytes() if path.is_file() else b"",
        )
        for path in sorted(folder.rglob("*"))
    }  # fmt: skip
