"""What a user reads when TensorFlow cannot read a data file, or lacks what was asked for."""

import re
from collections.abc import Iterable

import tensorflow as tf

from harness import watch
from harness.program import EXIT_BAD_DATA, EXIT_MISSING_DATA

MAX_CHARACTERS = 200  # of TensorFlow's own words
_BROKEN = (tf.errors.DataLossError, tf.errors.InvalidArgumentError, tf.errors.OutOfRangeError)

_REFUSED = (tf.errors.UnimplementedError, tf.errors.InvalidArgumentError, tf.errors.NotFoundError)
_LACKING = re.compile("support|not implemented|no .*registered", re.IGNORECASE)


def lines(error: Exception) -> list[str]:
    """Return what TensorFlow's error says, less the lines and parts that show the graph."""
    every = [line.partition("[[{{")[0].strip() for line in error.message.splitlines()]
    return [line for line in every if line and not line.startswith('File "')]


def lacking(error: Exception) -> str | None:
    """Return the line in which TensorFlow says that it has no code for something, else None."""
    return (
        next(filter(_LACKING.search, lines(error)), None) if isinstance(error, _REFUSED) else None
    )


def describe(error: Exception, files: Iterable[str], compression: str = "none") -> tuple[int, str]:
    """Return exit code and message for an error while reading `files` (TFRecord, `compression`).

    66 for data that is gone, 65 for damaged data, else 1. TensorFlow does not say which file is
    damaged: each is read once more, up to the first that fails.
    """
    said = (lines(error) or [type(error).__name__])[-1][:MAX_CHARACTERS]
    # Python that reads for tf.data raises its own error, which TensorFlow only quotes.
    if isinstance(error, tf.errors.NotFoundError) or said.startswith(FileNotFoundError.__name__):
        return EXIT_MISSING_DATA, said
    if not isinstance(error, _BROKEN):
        return 1, said
    damaged = _first_damaged(files, "" if compression == "none" else compression)
    if damaged is None:
        return EXIT_BAD_DATA, said
    advice = "remove it, and the next `snakemake` makes it again"
    return EXIT_BAD_DATA, f"{damaged} is damaged ({said}): {advice}"


def _first_damaged(files: Iterable[str], compression: str) -> str | None:
    """Return the first file whose records cannot all be read, if there is one."""
    for path in dict.fromkeys(files):
        try:
            for _ in tf.data.TFRecordDataset(path, compression_type=compression):
                watch.advance()
        except tf.errors.OpError:
            return path
    return None
