"""The table of points of the page: which metrics are its columns."""

from scalesweep.experiment.points_table import point_table
from scalesweep.experiment.results import ExperimentResults
from tests.fakes.finding_rows import study, value

RATES = ("rate_a", "rate_b", "rate_c", "rate_d", "rate_e")


def of(**metrics: float) -> ExperimentResults:
    names = {**dict.fromkeys(RATES, 2.0), **metrics}
    cells: dict[str, float] = {}
    for metric, mean in names.items():
        cells |= value("run", (mean, None, None), metric)
    results = study([{"a": 1, **cells}], main_metric="rate_a")
    units = {
        f"{name}_mean_run": {"label": name, "unit": "bytes" if "peak" in name else "1",
                             "better": "lower"}
        for name in names
    }  # fmt: skip
    results.tables["points"].attrs["units"] = units
    return results


def headings(results: ExperimentResults) -> list[str]:
    ((_, columns),) = point_table(results, 10).groups
    return [column.heading for column in columns]


def test_memory_of_a_rank_is_a_column_besides_the_first_metrics() -> None:
    assert headings(of()) == [*RATES[:4]]
    assert headings(of(peak_rss=424e6)) == [*RATES[:4], "peak_rss [MB]"]
    # Of a GPU its own.
    both = headings(of(peak_rss=424e6, peak_memory_allocated=8.1e9))
    assert both == [*RATES[:4], "peak_memory_allocated [GB]"]
