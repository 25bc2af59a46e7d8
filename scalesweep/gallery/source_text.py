"""The text of a file of a source, up to a size."""

from pathlib import Path

from scalesweep.core.errors import UserError

MAX_BYTES = 64 << 20


def read_source_text(path: Path) -> str:
    """The text of a file. Raises UserError if it cannot be read, is no UTF-8, or is larger than
    ``MAX_BYTES``, of which no more than that is read."""
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}") from None
    if len(content) > MAX_BYTES:
        raise UserError(f"{path}: larger than {MAX_BYTES >> 20} MiB")
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise UserError(f"{path}: is no text in UTF-8") from None
