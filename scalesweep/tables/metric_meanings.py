"""What the plain metrics of runs mean: the same in all rows of a summary, or left out of some."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from scalesweep.analysis.metrics import SCALING_WORDS, column
from scalesweep.core.record_check import MAX_METRICS
from scalesweep.tables.summary_row import Row, joined

_NAMED = 3
_Key = tuple[str, str]  # benchmark and metric
_Meaning = tuple[str, str, str]  # unit, better, scope


def agree(rows: Sequence[Row]) -> list[Row]:
    """Rows in which every metric of a benchmark means the same: what most runs say, and of as many
    the first. A row loses what it means otherwise, with a warning."""
    said: dict[_Key, Counter[_Meaning]] = {}
    for row in rows:
        for name, meaning in row.meanings.items():
            counts = said.setdefault((row.identity["benchmark"], name), Counter())
            counts[_meaning(meaning)] += 1
    known: Counter[str] = Counter()
    meant: dict[_Key, _Meaning] = {}
    for key, counts in said.items():
        known[key[0]] += 1
        if known[key[0]] <= MAX_METRICS and not _is_scaling(key, said):
            meant[key] = counts.most_common(1)[0][0]
    return [_of_one_meaning(row, meant) for row in rows]


def _is_scaling(key: _Key, said: Mapping[_Key, Any]) -> bool:
    """Whether tables call the scaling of another metric so: its efficiency or speedup."""
    stem, _, word = key[1].rpartition("_")
    return word in SCALING_WORDS and (key[0], stem) in said


def _of_one_meaning(row: Row, meant: Mapping[_Key, _Meaning]) -> Row:
    benchmark = row.identity["benchmark"]
    lost = [n for n, own in row.meanings.items() if meant.get((benchmark, n)) != _meaning(own)]
    if not lost:
        return row
    warnings = []
    for name in lost[:_NAMED]:
        most, own = meant.get((benchmark, name)), _words(_meaning(row.meanings[name]))
        why = "the name means the scaling of another, or there are too many metrics"
        why = why if most is None else f"it is {own}, in most runs {_words(most)}"
        warnings.append(f"metric '{name}' is left out: {why}")
    if len(lost) > _NAMED:
        warnings.append(f"{len(lost) - _NAMED} more metrics are left out")
    columns = {column(name, "mean", "run") for name in lost}
    return row._replace(
        identity={**row.identity, "warnings": joined(row.identity["warnings"], *warnings)},
        plain={name: value for name, value in row.plain.items() if name not in columns},
        meanings={name: m for name, m in row.meanings.items() if name not in lost},
    )


def _meaning(meaning: Mapping[str, str]) -> _Meaning:
    return meaning["unit"], meaning["better"], meaning["scope"]


def _words(meaning: _Meaning) -> str:
    unit, better, scope = meaning
    return f"in {unit!r}, {better} is better, of {'all ranks' if scope == 'total' else 'a rank'}"


def meanings_of(rows: Sequence[Row]) -> dict[str, dict[str, dict[str, str]]]:
    """benchmark -> plain metric -> unit, better, scope, which are the same in all rows."""
    meanings: dict[str, dict[str, dict[str, str]]] = {}
    for row in rows:
        meanings.setdefault(row.identity["benchmark"], {}).update(row.meanings)
    return {benchmark: metrics for benchmark, metrics in meanings.items() if metrics}
