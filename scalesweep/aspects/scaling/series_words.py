"""How sentences name scaling series: by what differs between them, what they share said once."""

from collections.abc import Sequence

from scalesweep.core.formatting import counted, listed, plain
from scalesweep.experiment.results import ExperimentResults, Series

MOST = 3  # series that a sentence names


def common_and_own(results: ExperimentResults, series: Sequence[Series]) -> tuple[str, list[str]]:
    """What all these series share of the parameters that tell series apart, and what is each's
    own: texts, empty where there is nothing."""
    names = results.series_labels
    values = {name: {plain(series.rows[0].get(name)) for series in series} for name in names}
    shared = [name for name in names if len(values[name]) == 1]
    rest = [name for name in names if name not in shared]
    return results.named(series[0].rows[0], shared), [
        results.named(o.rows[0], rest) for o in series
    ]


def series_words(results: ExperimentResults, series: Sequence[Series]) -> str:
    """Who a sentence is about: ``batch_size 2``, ``6 series (data synth: model a, model b, ...)``;
    empty where the experiment has one series only."""
    if len(series) == 1:
        return series[0].label
    common, own = common_and_own(results, series)
    # Long labels of many series say less than the ends of their range, which are named anyway.
    long = len(series) > MOST and any("," in text for text in own)
    named = "" if long else listed([text for text in own if text], MOST)
    inside = ": ".join(text for text in (common, named) if text)
    count = counted(len(series), "series", "series")
    if len(series) == len(results.series):
        return f"All {count}"
    return f"{count} ({inside})" if inside else count
