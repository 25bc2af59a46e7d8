"""The ranking of an experiment's layouts at ranks at which none was run."""

from dataclasses import replace

from scalesweep.analysis.layout_cost import Layout, measured_of
from scalesweep.commands.predict import layouts_text
from scalesweep.tables.layout_runs import Bar, LayoutStudy, rank_layouts

BASE = Layout(dp=2, tp=1, pp=1, micro_batch=1, accumulation=24, per_node=4, layers=4)


def _study(bar: Bar | None = None) -> LayoutStudy:
    """Splits of 4 and 8 ranks into dp, tp and pp, of which tp costs most."""
    runs = []
    for ranks in (4, 8):
        for tp in (1, 2):
            for pp in (1, 2, 4):
                for micro_batch in (1, 2):
                    if dp := ranks // (tp * pp):
                        layout = replace(
                            BASE, dp=dp, tp=tp, pp=pp, micro_batch=micro_batch,
                            accumulation=48 // (dp * micro_batch),
                        )  # fmt: skip
                        turns = layout.accumulation + pp - 1
                        seconds = turns * micro_batch / (tp * pp) * (1 + tp / 2) + 0.1
                        runs.append((layout, seconds))
    return LayoutStudy(
        "seq 4096, global batch 48", "rate", "samples/s", False, measured_of(runs), bar
    )


def test_layouts_that_cannot_run_are_left_out_and_counted() -> None:
    study = _study(lambda layout: "expected not to fit into memory" if layout.pp == 1 else "")
    made = rank_layouts(study, 16)
    assert made.layouts and all(layout.pp > 1 for layout, _ in made.layouts)
    assert dict(made.left_out) == {"expected not to fit into memory": 3}
    rates = [round(rate, 9) for _, rate in made.layouts]
    assert rates == sorted(rates, reverse=True)
    text = layouts_text("sweep", study, 16)
    assert text.startswith("sweep, seq 4096, global batch 48: layouts at 16 ranks by rate")
    assert "left out: 3 layouts: expected not to fit into memory" in text


def test_without_a_memory_model_the_ranking_says_so() -> None:
    made = rank_layouts(_study(), 16)
    assert made.layouts[0][0].tp == 1 and made.last is None
    assert "fit into memory is not known" in layouts_text("sweep", _study(), 16)


def test_where_nothing_can_run_it_is_refused() -> None:
    assert "no further layout of 16 ranks" in rank_layouts(_study(lambda _: "no"), 16).refused
    assert "more than 4 times" in layouts_text("sweep", _study(), 64)
