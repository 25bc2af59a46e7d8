"""Summaries: one row per finished run, and what each of its quantities means.

A row is identity, parameters and quantities (docs/reference/files.md, summary.parquet). Quantities
have the columns ``<metric>_<stat>_<phase>``:

* times per epoch and rank give the metrics of ``QUANTITIES`` for the phases ``init`` (epoch 0)
  and ``later`` (epochs > 0), with stat ``mean`` and ``std``;
* a plain metric of a record (``metrics: {name: {value, unit, better, scope}}``) becomes
  ``<name>_mean_run``: one number for the whole run, so it has no spread of its own. A value
  that is null, NaN or infinite is missing. Its unit, direction and scope travel in the frame's
  ``attrs["metrics"][benchmark][name]``, which Parquet keeps.

``warnings`` holds text where a cross-check failed (warm-up longer than the one epoch that is
kept apart, or than the steps that were declared) and is missing otherwise. Columns that begin
with ``_`` are bookkeeping, among them the curves of ``tables.bookkeeping`` as JSON text.
"""

import contextlib
import math
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson
from numpy.typing import NDArray

from scalesweep.analysis.metrics import QUANTITIES, column
from scalesweep.analysis.steady_state import steady_state
from scalesweep.analysis.types import Arrays, Floats, open_arrays
from scalesweep.core.errors import UserError
from scalesweep.core.files import canonical_json, stamp_of, write_atomic
from scalesweep.core.formatting import shorten
from scalesweep.core.parallel import shared_map
from scalesweep.core.paths import code_digest
from scalesweep.core.rank_columns import machine_names
from scalesweep.core.record import (
    NO_USE,
    NOT_ARRAYS,
    RECORD,
    SAMPLES,
    dates_of,
    parse_record,
    read_samples,
    told_arrays,
)
from scalesweep.core.record_check import MAX_NUMBER, BadRecordError
from scalesweep.tables.bookkeeping import CURVES, as_text, curves_of
from scalesweep.tables.epoch_quantities import EPOCH_COLUMNS, epoch_quantities
from scalesweep.tables.provenance import noted
from scalesweep.tables.summary_row import IDENTITY, Row, agree, joined, meanings_of

if TYPE_CHECKING:
    import pandas as pd

MANY, BATCH = 100, 50  # records that are worth several processes, and that each takes at once
ROWS = ".rows.json"  # in the folder of a site's runs: rows that were read, with stamps of files
INTEGERS = ("version", "repeat", "hosts", "samples", "bytes")

_TAKEN = frozenset((*IDENTITY, *EPOCH_COLUMNS))
_SHORTEST_S = 1 / MAX_NUMBER  # rates are finite


def row_of(record: Mapping[str, Any], samples: Arrays) -> Row:
    """What the summary keeps of one record and its arrays.

    Raises UserError naming the run if the record or an array is not as it must be.
    """
    run_id = str(record.get("run_id"))
    try:
        return _row(record, told_arrays(record, samples))
    except UserError as error:
        raise type(error)(f"{run_id}: {error}") from None
    except KeyError as error:
        raise UserError(f"{run_id}: the record lacks {error}") from None
    except NOT_ARRAYS as error:
        raise UserError(f"{run_id}: {SAMPLES} cannot be read ({_line(error)})") from None
    except NO_USE as error:
        raise UserError(f"{run_id}: the record cannot be summarised ({_line(error)})") from None


def _row(record: Mapping[str, Any], samples: Arrays) -> Row:
    point, work = record["point"], record.get("work") or {}
    identity = {name: record[name] for name in IDENTITY[:8]}
    identity["started"] = dates_of(record)[0] or None
    machines = machine_names(record.get("resources") or {})
    identity["hosts"] = len(machines) or None  # None where none is known
    for name in ("samples", "bytes"):
        amount = work.get(f"{name}_per_epoch")
        identity[name] = None if amount is None else int(amount)
    times = {
        name: _times(name, samples[name], point)
        for name in ("local_times", "global_times")
        if name in samples
    }
    if len({array.shape for array in times.values()}) > 1:
        raise UserError("local_times and global_times have different shapes")
    plain, meanings, left_out = _plain_metrics(record.get("metrics") or {})
    curves, spans = curves_of(record, samples)
    for name in point:
        if name in _TAKEN or name in plain or name.startswith("_"):
            raise UserError(f"a parameter cannot be named '{name}': the summary uses it")
    epochs, unsteady = epoch_quantities(times, identity["samples"], identity["bytes"])
    warm_up = None if times else _warmup_warning(record, samples)
    identity["warnings"] = joined(*left_out, *_log_warnings(record), warm_up, spans, unsteady)
    return Row(identity, point, epochs, plain, meanings, curves)


def _line(error: Exception) -> str:
    """What an error of a library says, on one line and not too long."""
    return shorten(" ".join(str(error).split()), 200)


def _times(name: str, array: NDArray[Any], point: Mapping[str, Any]) -> Floats:
    """``array`` as float64 after checking that it is [epoch, rank], finite and positive."""
    ranks = point["ranks"]
    if array.ndim != 2 or array.dtype.kind not in "fiu" or not array.shape[0]:
        raise UserError(f"{name} is {array.dtype} of shape {array.shape}, not times[epoch, rank]")
    if array.shape[1] != ranks:
        raise UserError(f"{name} holds {array.shape[1]} ranks, the point has {ranks}")
    values = array.astype(np.float64, copy=False)
    # One pass for the usual case; NaN fails the comparison too.
    if not (values.min() > _SHORTEST_S and values.max() < MAX_NUMBER):
        epoch, rank = np.argwhere(~((values > _SHORTEST_S) & (values < MAX_NUMBER)))[0]
        value = values[epoch, rank]
        raise UserError(f"{name} of epoch {epoch}, rank {rank} is {value}, not a positive time")
    return values


def _warmup_warning(record: Mapping[str, Any], samples: Arrays) -> str | None:
    """What the steady-state test says against the declared warm-up of a benchmark that times
    steps, and what to change."""
    if "warmup_step_times" not in samples or "step_times" not in samples:
        return None
    warmup = samples["warmup_step_times"]
    steps = np.concatenate([warmup, samples["step_times"]])
    state = steady_state(steps, len(warmup))
    if not state.message:
        return None
    late = not state.drifting and state.detected is not None
    advice = f"let the first {state.detected} steps warm up" if late else "run more steps"
    return f"{state.message.replace('values', 'steps')}; {advice}"


def _plain_metrics(
    metrics: Mapping[str, Any],
) -> tuple[dict[str, float], dict[str, dict[str, str]], list[str]]:
    """Values by column, meanings by name, and what is said of those that are left out."""
    values, meanings, left_out = {}, {}, []
    for name, metric in metrics.items():
        value = metric["value"]
        meaning = {key: metric[key] for key in ("unit", "better", "scope")}
        if name in QUANTITIES:
            known = QUANTITIES[name]
            if (known.unit, known.better, known.scope) != tuple(meaning.values()):
                left_out.append(f"metric '{name}' is left out: the name has another meaning here")
                continue
        values[column(name, "mean", "run")] = math.nan if value is None else float(value)
        meanings[name] = meaning
    return values, meanings, left_out


def _log_warnings(record: Mapping[str, Any]) -> list[str]:
    """What was noted where the metrics of an external program were read from its logs."""
    stamps, extract = noted(record, "stamps"), noted(record, "extract")
    metrics = (extract.get("metrics") or {}).items()
    return [
        *(f"stamps: {said}" for said in stamps.get("warnings") or ()),
        *(f"metric '{name}': {said['warning']}" for name, said in metrics if "warning" in said),
    ]


def build_summary(
    records: Sequence[Path],
    broken: dict[str, str] | None = None,
    processes: int = 1,
    remember: Path | None = None,
) -> "pd.DataFrame":
    """Summary of the runs whose ``record.json`` files are given, in their order.

    Each is read once, by so many processes; digests guard records and samples. ``remember``: the
    file that keeps rows (``ROWS``); only runs with new or touched files are read then. ``broken``
    takes the runs whose files cannot be trusted, or hold what no row can be made of, which are left
    out: id -> why. A metric that means something else in one run than in most is left out of that
    run, with a warning. Raises UserError naming every run (the first three, then a count) that
    cannot be read, without ``broken`` these too.
    """
    kept = _kept_rows(remember) if remember else {}
    known: dict[Path, Any] = {
        path: Row(*row[1:])
        for path in records
        if (row := kept.get(path.parent.name)) and row[0] == _stamps(path)
    }
    new = [path for path in records if path not in known]
    processes = processes if len(new) >= MANY else 1
    batches = [new[at : at + BATCH] for at in range(0, len(new), BATCH)]
    read = chain.from_iterable(shared_map(_read_batch, None, batches, processes, _import_tables))
    rows: list[Row] = []
    bad: list[str] = []
    known |= dict(zip(new, read, strict=True))
    for path, row in ((path, known[path]) for path in records):
        run_id = path.parent.name
        if isinstance(row, Row):
            rows.append(row)
        elif isinstance(row, UserError) and broken is not None:
            broken[run_id] = str(row).removeprefix(f"{run_id}: ")
        elif isinstance(row, OSError):
            bad.append(f"{run_id}: {row.strerror}: {row.filename}")
        else:
            bad.append(str(row))
    if bad:
        more = f"; and {len(bad) - 3} more" if len(bad) > 3 else ""
        raise UserError("; ".join(bad[:3]) + more)
    if remember and new:
        kept |= {path.parent.name: [_stamps(path), *known[path]] for path in new
                 if isinstance(known[path], Row)}  # fmt: skip
        content = orjson.dumps({"code": code_digest("numpy"), "rows": kept})
        with contextlib.suppress(OSError):  # a copy that is read only: they are read again
            write_atomic(remember, content, durable=False)
    return _frame(agree(rows))


def _kept_rows(remember: Path) -> dict[str, list[Any]]:
    """By run the stamps of its files and its row, as this code has kept them."""
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        content = orjson.loads(remember.read_bytes())
        if content["code"] == code_digest("numpy"):
            return dict(content["rows"])
    return {}


def _stamps(path: Path) -> list[str | None]:
    """Of all files that a row is made of."""
    return [stamp_of(f"{path.parent}/{name}") for name in (RECORD, SAMPLES)]


def _import_tables() -> None:
    """Half a second's work for this process while others read records, which need none of it."""
    import scalesweep.analysis.table_io  # noqa: F401


def _read_batch(_work: None, paths: Sequence[Path]) -> list[Row | UserError | OSError]:
    return read_rows(paths)


def read_rows(paths: Sequence[Path]) -> list[Row | UserError | OSError]:
    """Rows of the runs at ``paths``, or why there is none."""
    rows: list[Row | UserError | OSError] = []
    for path in paths:
        try:
            rows.append(_read_run(path))
        except (UserError, OSError) as error:
            rows.append(error)
    return rows


def _read_run(path: Path) -> Row:
    """Record and samples of the run at ``path``; one read per file."""
    folder, run_id = path.parent, path.parent.name
    try:
        record = parse_record(path.read_bytes(), run_id)
    except FileNotFoundError:
        raise BadRecordError(f"{run_id}: {RECORD} is missing") from None
    if record["samples"] is None:
        return row_of(record, {})
    try:
        content = read_samples(folder, record)
    except BadRecordError as error:
        raise BadRecordError(f"{run_id}: {error}") from None
    try:
        arrays = open_arrays(content)
    except NOT_ARRAYS as error:
        raise UserError(f"{run_id}: {SAMPLES} cannot be read ({_line(error)})") from None
    return row_of(record, arrays)


def _frame(rows: Sequence[Row]) -> "pd.DataFrame":
    """Rows as a frame: identity, parameters by name, quantities, bookkeeping."""
    import pandas as pd

    from scalesweep.analysis.table_io import typed_values

    data: dict[str, Any] = {}
    for name in IDENTITY:
        values = [row.identity[name] for row in rows]
        data[name] = typed_values(values, int if name in INTEGERS else str)
    for name in sorted({n for row in rows for n in row.point}, key=lambda n: (n != "ranks", n)):
        data[name] = typed_values([row.point.get(name) for row in rows])
    for name in EPOCH_COLUMNS:
        data[name] = np.array([row.epochs[name] for row in rows], np.float64)
    for name in sorted({name for row in rows for name in row.plain}):
        data[name] = np.array([row.plain.get(name, math.nan) for row in rows], np.float64)
    data["_point"] = typed_values([canonical_json(row.point) for row in rows])
    for name in CURVES:
        data[name] = typed_values([as_text(row.curves[name]) for row in rows])
    frame = pd.DataFrame(data)
    frame.attrs = {"metrics": meanings_of(rows)}
    return frame
