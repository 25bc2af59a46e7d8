"""What the plain metrics of runs mean: the same in all rows of a summary, or left out of some."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from scalesweep.analysis.metrics import SCALING_WORDS, column
from scalesweep.core.record_check import MAX_METRICS
from scalesweep.tables.summary_cache import Row


def agree(
    rows: Sequence[Row], keys: Sequence[tuple[str, str]]
) -> tuple[list[Row], list[tuple[str, str]]]:
    """Rows in which every metric of a benchmark means the same, and their keys.

    What most runs say counts, and of as many the first. A row that loses a metric has no key: what
    it was made from is read again for the next summary, in which others may be the most.
    """
    said: dict[tuple[str, str], Counter[tuple[str, ...]]] = {}
    for row in rows:
        for name, meaning in row.meanings.items():
            counts = said.setdefault((row.identity["benchmark"], name), Counter())
            counts[_unit_better_scope(meaning)] += 1
    number = Counter(benchmark for benchmark, _ in said)
    scaled = {key for key in said if _is_scaling(key, said)}
    clear = not scaled and all(len(counts) == 1 for counts in said.values())
    if clear and max(number.values(), default=0) <= MAX_METRICS:
        return list(rows), list(keys)
    known: Counter[str] = Counter()
    meant: dict[tuple[str, str], tuple[str, ...]] = {}
    for key, counts in said.items():
        known[key[0]] += 1
        if key not in scaled and known[key[0]] <= MAX_METRICS:
            meant[key] = counts.most_common(1)[0][0]
    agreed, agreed_keys = [], []
    for row, row_key in zip(rows, keys, strict=True):
        lost = [
            name
            for name, meaning in row.meanings.items()
            if meant.get((row.identity["benchmark"], name)) != _unit_better_scope(meaning)
        ]
        agreed.append(_without(row, lost, meant) if lost else row)
        agreed_keys.append(("", "") if lost else row_key)
    return agreed, agreed_keys


def _is_scaling(key: tuple[str, str], said: Mapping[tuple[str, str], Any]) -> bool:
    """Whether tables call the scaling of another metric so: its efficiency or speedup."""
    stem, _, word = key[1].rpartition("_")
    return word in SCALING_WORDS and (key[0], stem) in said


def _without(
    row: Row, lost: Sequence[str], meant: Mapping[tuple[str, str], tuple[str, ...]]
) -> Row:
    warnings = [row.identity["warnings"]]
    for name in lost[:3]:
        most = meant.get((row.identity["benchmark"], name))
        own = row.meanings[name]
        if most is None:
            why = "the name means the scaling of another, or there are too many metrics"
        else:
            why = f"it is {_meaning(_unit_better_scope(own))}, in most runs {_meaning(most)}"
        warnings.append(f"metric '{name}' is left out: {why}")
    if len(lost) > 3:
        warnings.append(f"{len(lost) - 3} more metrics are left out")
    columns = {column(name, "mean", "run") for name in lost}
    return row._replace(
        identity={**row.identity, "warnings": joined(*warnings)},
        plain={name: value for name, value in row.plain.items() if name not in columns},
        meanings={name: m for name, m in row.meanings.items() if name not in lost},
    )


def _unit_better_scope(meaning: Mapping[str, str]) -> tuple[str, ...]:
    """Unit, direction and scope, in whatever order they were kept."""
    return meaning["unit"], meaning["better"], meaning["scope"]


def _meaning(words: Iterable[str]) -> str:
    unit, better, scope = words
    return f"in {unit!r}, {better} is better, of {'all ranks' if scope == 'total' else 'a rank'}"


def meanings_of(rows: Sequence[Row]) -> dict[str, dict[str, dict[str, str]]]:
    """benchmark -> plain metric -> unit, better, scope, which are the same in all rows."""
    meanings: dict[str, dict[str, dict[str, str]]] = {}
    for row in rows:
        meanings.setdefault(row.identity["benchmark"], {}).update(row.meanings)
    return {benchmark: metrics for benchmark, metrics in meanings.items() if metrics}


def joined(*texts: str | None) -> str | None:
    """Warnings as one text; None without any."""
    return "; ".join(text for text in texts if text) or None
