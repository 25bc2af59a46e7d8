"""The ranking of an experiment's layouts at ranks at which none was run."""

from dataclasses import replace

from scalesweep.analysis.layout_cost import Layout
from scalesweep.aspects.layouts.ranking import Bar, ranking_text

BASE = Layout(dp=2, tp=1, pp=1, micro_batch=1, accumulation=24, per_node=4, layers=4)


def ranked(ranks: int, bar: Bar | None = None) -> str:
    """From splits of 4 and 8 ranks into dp, tp and pp, of which tp costs most."""
    runs = {}
    for of in (4, 8):
        for tp in (1, 2):
            for pp in (1, 2, 4):
                for micro_batch in (1, 2):
                    if dp := of // (tp * pp):
                        layout = replace(
                            BASE, dp=dp, tp=tp, pp=pp, micro_batch=micro_batch,
                            accumulation=48 // (dp * micro_batch),
                        )  # fmt: skip
                        turns = layout.accumulation + pp - 1
                        runs[layout] = turns * micro_batch / (tp * pp) * (1 + tp / 2) + 0.1
    return ranking_text(runs, ranks, "samples/s", False, bar)


def test_layouts_that_cannot_run_are_left_out_and_counted() -> None:
    lines = ranked(16, lambda layout: "too large" if layout.pp == 1 else "").splitlines()
    assert lines[-1] == "left out: 3 layouts: too large"
    rates = [float(line.split()[-2].replace(",", "")) for line in lines[1:-1]]
    assert len(rates) > 2 and rates == sorted(rates, reverse=True)
    assert not any("pp=1" in line for line in lines)


def test_without_a_memory_model_the_ranking_says_so() -> None:
    text = ranked(16)
    assert " tp=1 " in text.splitlines()[1] and "fit into memory is not known" in text
    assert "the last such ranking" not in text


def test_where_nothing_can_run_it_is_refused() -> None:
    assert "no further layout of 16 ranks" in ranked(16, lambda _: "no")
    assert "more than 4 times" in ranked(64)
