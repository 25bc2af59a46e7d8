"""The row of a run in the summary, and what plain metrics mean: the same in all, or left out."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from scalesweep.analysis.metrics import SCALING_WORDS, column

_Key = tuple[str, str]  # benchmark and metric
_Meaning = tuple[str, str, str]  # unit, better, scope

IDENTITY = (
    *("run_id", "benchmark", "version", "site", "source", "repeat", "started", "wall_s"),
    *("hosts", "samples", "bytes", "warnings"),
)


class Row(NamedTuple):
    """What a run is, its point, and its quantities by column."""

    identity: dict[str, Any]
    point: Mapping[str, Any]
    epochs: dict[str, float]
    plain: dict[str, float]
    meanings: dict[str, dict[str, str]]
    curves: dict[str, Any]


def joined(*texts: str | None) -> str | None:
    """Warnings as one text; None without any."""
    return "; ".join(text for text in texts if text) or None


def agree(rows: Sequence[Row]) -> list[Row]:
    """Rows in which every metric of a benchmark means the same: what most runs say, and of as many
    the first. A row loses what it means otherwise, with a warning."""
    said: dict[_Key, Counter[_Meaning]] = {}
    for row in rows:
        for name, own in row.meanings.items():
            said.setdefault((row.identity["benchmark"], name), Counter())[_meaning(own)] += 1
    meant = {
        key: counts.most_common(1)[0][0]
        for key, counts in said.items()
        if not _is_scaling(key, said)
    }
    return [_of_one_meaning(row, meant) for row in rows]


def _is_scaling(key: _Key, said: Mapping[_Key, Any]) -> bool:
    """Whether tables call the scaling of another metric so: its efficiency or speedup."""
    stem, _, word = key[1].rpartition("_")
    return word in SCALING_WORDS and (key[0], stem) in said


def _of_one_meaning(row: Row, meant: Mapping[_Key, _Meaning]) -> Row:
    benchmark, warnings = row.identity["benchmark"], []
    for name, own in row.meanings.items():
        most = meant.get((benchmark, name))
        if most != _meaning(own):
            why = f"it is {_words(_meaning(own))}, in most runs {_words(most)}" if most else (
                "the name means the scaling of another"
            )  # fmt: skip
            warnings.append(f"metric '{name}' is left out: {why}")
    if not warnings:
        return row
    kept = {n: m for n, m in row.meanings.items() if meant.get((benchmark, n)) == _meaning(m)}
    lost = {column(name, "mean", "run") for name in row.meanings.keys() - kept.keys()}
    return row._replace(
        identity={**row.identity, "warnings": joined(row.identity["warnings"], *warnings)},
        plain={name: value for name, value in row.plain.items() if name not in lost},
        meanings=kept,
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
