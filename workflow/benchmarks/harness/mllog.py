"""Writing a training's events as MLPerf's logs have them, one ``:::MLLOG`` line of JSON each.

The keys and their order are those of MLPerf HPC's CosmoFlow (mlcommons/hpc, mlcommons/logging:
mlperf_logging/mllog/constants.py), so that its own tools read the log.
"""

import json
import math
import sys
import time
from pathlib import Path
from typing import Any

MARK = ":::MLLOG"
POINT, START, END = "POINT_IN_TIME", "INTERVAL_START", "INTERVAL_END"


class MLLog:
    """Appends events to a log; without a path (on all ranks but one) it does nothing.

    Every line is in the file when its call returns, so that a run that is killed leaves what it
    did until then.
    """

    def __init__(self, path: str | Path | None) -> None:
        """Open the log at `path`, which keeps what it holds; its folder is made if need be."""
        self._file = None
        if path is not None:
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            self._file = Path(path).open("a", buffering=1, encoding="utf-8")  # noqa: SIM115

    def event(self, key: str, value: Any = None, **metadata: Any) -> None:
        """Write that something is so, like ``event("eval_error", 0.12, epoch_num=3)``.

        A `value` that is no finite number is written as null.
        """
        self._write(POINT, key, value, metadata)

    def start(self, key: str, **metadata: Any) -> None:
        """Write the begin of an interval, whose `key` ends in ``_start`` (``run_start``)."""
        self._write(START, key, None, metadata)

    def end(self, key: str, **metadata: Any) -> None:
        """Write the end of an interval, like ``end("run_stop", status="success")``."""
        self._write(END, key, None, metadata)

    def close(self) -> None:
        """Close the log; later events are dropped."""
        if self._file is not None:
            self._file.close()
        self._file = None

    def _write(self, kind: str, key: str, value: Any, metadata: dict[str, Any]) -> None:
        if self._file is None:
            return
        caller = sys._getframe(2)
        where = {"file": Path(caller.f_code.co_filename).name, "lineno": caller.f_lineno}
        content = {
            "namespace": "",
            "time_ms": time.time_ns() // 1_000_000,
            "event_type": kind,
            "key": key,
            "value": _finite(value),
            "metadata": {**where, **{name: _finite(entry) for name, entry in metadata.items()}},
        }
        self._file.write(f"{MARK} {json.dumps(content, allow_nan=False)}\n")


def _finite(value: Any) -> Any:
    """The value as JSON can hold it: NumPy's numbers as Python's, NaN and infinity as None."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [_finite(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
