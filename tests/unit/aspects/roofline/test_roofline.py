"""Rooflines: classes and least times by hand, ceilings, the table, figures and what is said."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from scalesweep.analysis.roofline import COMPUTE, LAUNCH, MEMORY, UNRATED, Roof
from scalesweep.analysis.stats import mean_of
from scalesweep.aspects.find import rules
from scalesweep.aspects.make_tables import make_tables
from scalesweep.aspects.roofline.figure import roofline_figures
from scalesweep.aspects.roofline.findings import step_against_roof
from scalesweep.aspects.roofline.rooflines import rooflines
from scalesweep.aspects.roofline.section import layer_table
from scalesweep.aspects.roofline.table import layer_rows
from scalesweep.core.paths import REPO
from scalesweep.experiment.results import ExperimentResults
from scalesweep.findings.base import Finding
from scalesweep.report.export_tables import write_all
from scalesweep.report.page_tables import shown_table
from scalesweep.tables.bookkeeping import as_text
from scalesweep.tables.layers import LAYERS, LayerTimes
from scalesweep.tables.machine import DATASHEET, MEASURED, Ceiling, Machine, machine_of
from scalesweep.tables.making import TableInputs
from scalesweep.tables.points import ExperimentData
from scalesweep.tables.provenance import FACTS, kept_facts
from tests.fakes.plan import whole_plan

# 100 GFLOP/s and 20 GB/s: the ridge is at 5 FLOP/byte, as in docs/methods/roofline.md.
FLOPS, BYTES = 100e9, 20e9
LAUNCH_S = 10e-6
# name, kind, count, FLOP and bytes forward and backward, seconds forward and of both.
CONV = ("conv", "conv2d", 2, 1e9, 2e9, 20e6, 40e6, 0.015, 0.050)
NORM = ("norm", "batch_norm", 3, 10e6, 15e6, 40e6, 60e6, 0.003, 0.008)
TINY = ("tiny", "dense", 1, 1e4, 2e4, 1e4, 2e4, 20e-6, 50e-6)
STEP_S = 0.130


def times(
    step: float = STEP_S, layers: Sequence[Any] = (CONV, NORM, TINY), slower: float = 1
) -> str:
    columns = list(zip(*layers, strict=True))
    names = list(LayerTimes.__annotations__)[:9]
    values = {name: list(column) for name, column in zip(names, columns, strict=True)}
    for name in ("forward", "both"):
        values[name] = [value * slower for value in values[name]]
    return json.dumps({**values, "step": step, "launch": LAUNCH_S})


class Campaign:
    """Runs of step_layers at some local batches, and of ceilings."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []
        self.experiments: list[dict[str, Any]] = []

    def layers(self, by_batch: Mapping[int, Sequence[str]], **more: Any) -> "Campaign":
        axes = ["batch_size"] if len(by_batch) > 1 else []
        points = [
            ({"batch_size": batch, "ranks": 1, "ranks_per_node": 1}, text)
            for batch, texts in by_batch.items()
            for text in texts
        ]
        fixed = {"ranks": 1, "ranks_per_node": 1, "model": "net", **more.pop("fixed", {})}
        if not axes:
            fixed["batch_size"] = next(iter(by_batch))
        entry = {"name": "layers", "axes": axes, "fixed": fixed, "work": ["batch_size"], **more}
        return self._add(entry, points)

    def ceiling(
        self, kind: str, values: Sequence[float], source: str = "measured", **point: Any
    ) -> "Campaign":
        """A point of an experiment that measures a ceiling; ``values`` of its repeats."""
        number = len(self.experiments)
        fixed = {"ranks": 1, "ranks_per_node": 1, **point}
        entry = {
            "name": f"{kind}{number}", "axes": [], "fixed": fixed, "ceiling": kind,
            "main_metric": "rate",
        }  # fmt: skip
        points = [(fixed, None)] * len(values)
        return self._add(entry, points, values, source)

    def _add(
        self, entry: dict[str, Any], points: Sequence[Any], values: Sequence[float] = (),
        source: str = "measured",
    ) -> "Campaign":  # fmt: skip
        runs = []
        for number, (point, text) in enumerate(points):
            run_id = f"{entry['name']}-{number}"
            runs.append({"run_id": run_id, "repeat": number, "point": point, "status": "done"})
            rate = values[number] if values else np.nan
            self.rows.append(
                {"run_id": run_id, "source": source, "samples": pd.NA, "started": None,
                 "warnings": None, LAYERS: text, "rate_mean_run": rate}
            )  # fmt: skip
        self.experiments.append({**entry, "runs": runs})
        return self

    def done(self, **more: Any) -> tuple[pd.DataFrame, Any]:
        """Summary and plan."""
        summary = pd.DataFrame(self.rows)
        meaning = {"unit": "FLOP/s", "better": "higher", "scope": "total"}
        summary.attrs["metrics"] = {"b": {"rate": meaning}}
        return summary, whole_plan({"experiments": self.experiments, **more})

    def study(self, **more: Any) -> ExperimentResults:
        """The first experiment with its tables."""
        summary, plan = self.done(**more)
        tables = make_tables(summary, plan)
        entry = plan["experiments"][0]
        return ExperimentResults(entry, tables[entry["name"]])


def measured(**more: Any) -> Campaign:
    """A campaign whose layers take what is above, each repeat a little else, and its ceilings."""
    steps = [times(STEP_S * factor) for factor in (0.98, 1.0, 1.02)]
    return ceilings(Campaign().layers({32: steps}, **more))


def ceilings(campaign: Campaign) -> Campaign:
    campaign.ceiling("compute", [0.996 * FLOPS, 0.998 * FLOPS, FLOPS])
    return campaign.ceiling("memory", [0.996 * BYTES, 0.998 * BYTES, BYTES])


def told_of(results: ExperimentResults) -> list[Finding]:
    return [rules()[each.rule].say(each) for each in step_against_roof(results)]


@pytest.mark.parametrize(
    ("kind", "flop", "moved", "launch", "bound", "least"),
    [
        ("dense", 3e9, 60e6, LAUNCH_S, COMPUTE, 0.030),  # 3 GFLOP at 100 GFLOP/s, 60 MB at 20 GB/s
        ("dense", 25e6, 100e6, LAUNCH_S, MEMORY, 0.005),
        ("dense", 3e4, 3e4, 2 * LAUNCH_S, LAUNCH, 1.5e-6),  # starting it takes 20 us
        ("dense", 3e4, 3e4, 1e-6, MEMORY, 1.5e-6),
        ("lrn", 1e8, 100e6, LAUNCH_S, MEMORY, 0.005),
        ("lrn", 4e9, 100e6, LAUNCH_S, UNRATED, 0.040),
        ("activation", 1e3, 1e4, LAUNCH_S, LAUNCH, 5e-7),
    ],
)
def test_least_times_and_classes_by_hand(
    kind: str, flop: float, moved: float, launch: float, bound: str, least: float
) -> None:
    roof = Roof(FLOPS, BYTES)
    assert roof.least_s(flop, moved) == pytest.approx(least)
    assert roof.class_of(kind, flop, moved, launch) == bound
    assert (roof.rate(1), roof.rate(5), roof.rate(50)) == (BYTES, FLOPS, FLOPS)


def test_the_table_by_hand() -> None:
    study = measured().study()
    rows = {row["layer"]: row for row in study.rows("roofline")}
    assert list(rows) == ["conv", "norm", "tiny", "step"]
    conv, norm, _, step = rows.values()
    # FLOP, bytes, times and bounds of the layers: the worked example of the documentation.
    assert conv["flops"] == pytest.approx(60e9)
    assert (conv["of_roof"], norm["of_roof"]) == pytest.approx((0.6, 0.625))
    # 60 + 15 + 0.0015 ms of 130 ms; the layers come to 124.05 ms.
    assert step["of_roof"] == pytest.approx(75.0015 / 130, rel=1e-3)
    assert step["coverage"] == pytest.approx(124.05 / 130, rel=1e-3)
    assert step["of_roof_low"] < step["of_roof"] < step["of_roof_high"]
    # Wider than over the repeats of the step alone: ceilings have repeats, too.
    alone = measured()
    for row in alone.rows[3:]:
        row["rate_mean_run"] = FLOPS if row["run_id"].startswith("c") else BYTES
    assert not alone.study().rows("roofline")[-1]["of_roof_low"]
    assert {row["roof"] for row in rows.values()} == {MEASURED}
    assert study.rows("ceilings")[0]["value"] == pytest.approx(FLOPS)


def test_layers_without_products_are_not_held_against_a_product() -> None:
    """A normalisation over channels with 40 FLOP a byte: only its bytes count."""
    lrn = ("norm1", "lrn", 1, 2e9, 2e9, 50e6, 50e6, 0.010, 0.060)
    steps = [times(0.17 * factor, (CONV, lrn)) for factor in (0.98, 1.0, 1.02)]
    study = ceilings(Campaign().layers({32: steps})).study()
    _, other, step = study.rows("roofline")
    assert (other["bound"], other["least_ms"]) == (UNRATED, pytest.approx(5))  # 100 MB; not 40 ms
    assert step["least_ms"] == pytest.approx(65)
    (finding,) = told_of(study)
    # Its gap would be 55 ms, that of conv is 40 ms.
    assert "the largest gap is in conv, compute bound" in finding.sentence
    assert roofline_figures(study)


def test_a_ceiling_that_still_grows_confirms_nothing_of_the_step() -> None:
    study = measured().study()
    table = study.tables["roofline"]
    assert table is not None
    table["growing"] = True
    (finding,) = told_of(study)
    assert (finding.state, finding.reason) == ("open", "the ceiling still grew at the last size")


def test_the_worked_example_of_the_documentation() -> None:
    page = (REPO / "docs" / "methods" / "roofline.md").read_text()
    *layers, step = measured().study().rows("roofline")
    for row in layers:
        numbers = [
            row["flop"] / 1e9, row["bytes"] / 1e6, row["ms"], row["intensity"], row["least_ms"]
        ]  # fmt: skip
        texts = [f"{number:.6f}".rstrip("0").rstrip(".") for number in numbers]
        cells = [row["layer"], str(row["count"]), *texts, row["bound"]]
        assert f"| {' | '.join(cells)} |" in page
    assert f"/ 130 = {100 * 75.0015 / 130:.1f} %" in page
    assert f"/ 130 = {100 * 124.05 / 130:.1f} %" in page
    assert step["ms"] == pytest.approx(130)
    assert f"{sum(row['least_ms'] for row in layers):.4f}" == "75.0015"


def test_the_report_shows_the_step_and_the_layers_that_take_longest() -> None:
    study = measured().study()
    table = layer_table(study, 100)
    assert table is not None
    rows = [[cell.text for cell in row] for row in table.rows]
    assert [row[1] for row in rows] == ["step", "conv (2 layers)", "norm (3 layers)", "tiny"]
    assert rows[1][4:] == ["60.0", "50.0", "compute", "60.0", "60.0 %", "–"]
    assert rows[0][0] == "3/3"
    assert rows[0][-1] == "95.4 %" or rows[0][-1] == "95.5 %"
    # What the page sorts by and exports are the table's own values.
    shown = shown_table(study, table, "layers", "layers")
    written = {row["layer"]: row["ms"] for row in study.rows("roofline")}
    place = [heading.text for heading in shown["headings"]].index("Time [ms]")
    orders = [float(row[place].order) for row in shown["rows"]]
    assert orders == pytest.approx([written[name] for name in ("step", "conv", "norm", "tiny")])
    assert layer_table(Campaign().ceiling("memory", [1.0]).study(), 100) is None


def test_ceilings_are_the_best_of_a_node_by_type() -> None:
    campaign = Campaign().ceiling("compute", [50e9, 52e9]).ceiling("compute", [90e9])
    # Two ranks on each of two nodes: half of it is of a node.
    campaign.ceiling("compute", [240e9], ranks=4, ranks_per_node=2)
    campaign.ceiling("compute", [300e9], dtype="bfloat16")
    campaign.ceiling("memory", [900e9], source="simulated").ceiling("memory", [20e9])
    machine = machine_of(*campaign.done(peaks={"flops": {"float32": 1e12}, "bytes_per_s": 5e10}))
    values = {(one.kind, one.stated, one.dtype): one.value for one in machine.ceilings}
    assert values == {
        ("compute", MEASURED, "float32"): 120e9,
        ("compute", MEASURED, "bfloat16"): 300e9,
        ("memory", MEASURED, ""): 20e9,
        ("compute", DATASHEET, "float32"): 1e12,
        ("memory", DATASHEET, ""): 5e10,
    }
    best = next(one for one in machine.ceilings if one.value == 120e9)
    assert (best.repeats, best.low, best.where) == (1, None, "compute2")


def test_the_type_of_the_model_chooses_its_ceiling() -> None:
    campaign = measured(fixed={"precision": "mixed_bfloat16"})
    assert campaign.study().rows("roofline")[-1]["roof"] is None  # no bfloat16 was measured
    campaign.ceiling("compute", [4 * FLOPS], dtype="bfloat16")
    rows = campaign.study().rows("roofline")
    assert rows[0]["least_ms"] == pytest.approx(15)


def ran_on(campaign: Campaign, experiment: str, tf32: dict[str, Any] | None, gpus: bool) -> None:
    """Say of an experiment's runs what they noted of TF32, and whether their host has GPUs."""
    names = [[{"name": "A100"}] if gpus else []]
    hardware = {"hosts": ["n1"], "facts": {"gpus": {"values": names}}}
    record = {
        "source": "measured", "resources": {"hosts": {"values": ["n1"]}},
        "environment": {"hardware": hardware}, "notes": {} if tf32 is None else {"tf32": tf32},
    }  # fmt: skip
    for row in campaign.rows:
        if row["run_id"].rpartition("-")[0] == experiment:
            row[FACTS] = as_text(kept_facts(record, ["n1"]))


def test_tf32_and_float32_are_not_held_against_each_other() -> None:
    """A100 as the course on performance has it: 21 TFLOP/s, 151 in TF32, 1.6 TB/s."""
    on, off = ({"device": "GPU", "supported": True, "in_force": value} for value in (True, False))
    cpu = {"device": "CPU", "supported": False, "in_force": False}
    campaign = Campaign().layers({32: [times()] * 3})
    campaign.ceiling("compute", [21e12] * 3).ceiling("compute", [151e12] * 3)
    campaign.ceiling("memory", [1.6e12] * 3)
    for tf32, least, bound_by in ((on, 151e12, "tf32"), (off, 21e12, "float32")):
        ran_on(campaign, "layers", tf32, True)
        ran_on(campaign, "compute1", off, True)
        ran_on(campaign, "compute2", on, True)
        study = campaign.study()
        conv = study.rows("roofline")[0]
        assert conv["least_ms"] == pytest.approx(max(6e9 / least, 120e6 / 1.6e12) * 1e3)
        assert conv["numbers"] == bound_by
        by_type = {row["dtype"]: row for row in study.rows("ceilings") if row["dtype"]}
        assert {name: row["value"] for name, row in by_type.items()} == {
            "float32": 21e12, "tf32": 151e12,
        }  # fmt: skip
        # The course's minimum intensities: 13 and 94.
        assert by_type["float32"]["ridge"] == pytest.approx(13, rel=0.02)
        assert by_type["tf32"]["ridge"] == pytest.approx(94, rel=0.02)
        assert roofline_figures(study)
    # Runs on GPUs that do not say, or differ, belong to neither.
    ran_on(campaign, "layers", None, True)
    assert campaign.study().rows("roofline")[0]["roof"] is None
    ran_on(campaign, "layers", {**on, "in_force": None}, True)
    assert campaign.study().rows("roofline")[0]["roof"] is None
    # Records of before, of hosts without a GPU, and of today on a CPU: float32.
    for before in (None, cpu):
        ran_on(campaign, "layers", before, False)
        assert campaign.study().rows("roofline")[0]["numbers"] == "float32"


def test_ranks_share_the_ceilings_of_their_node() -> None:
    campaign = measured()
    for run in campaign.experiments[0]["runs"]:
        run["point"] = {**run["point"], "ranks": 2, "ranks_per_node": 2}
    campaign.experiments[0]["fixed"] |= {"ranks": 2, "ranks_per_node": 2}
    assert campaign.study().rows("roofline")[0]["least_ms"] == pytest.approx(120)


def test_without_measured_ceilings_nothing_is_said_of_the_step() -> None:
    layers = Campaign().layers({32: [times()] * 2})
    study = layers.study()
    rows = study.rows("roofline")
    assert [row["bound"] for row in rows] == [None] * 4
    assert rows[0]["intensity"] == pytest.approx(50)
    assert roofline_figures(study) == step_against_roof(study) == []
    study = layers.study(peaks={"flops": {"float32": 2 * FLOPS}, "bytes_per_s": 2 * BYTES})
    assert study.rows("roofline")[0]["roof"] == DATASHEET
    assert step_against_roof(study) == []
    assert len(roofline_figures(study)) == 1


@pytest.mark.parametrize(
    ("steps", "state", "words"),
    [
        (
            [times(STEP_S * factor) for factor in (0.98, 1.0, 1.02)], "clear",
            "of what its layers could; the largest gap is in conv, compute bound.",
        ),
        ([times(0.1 * f, slower=0.8) for f in (0.7, 1.0, 1.3)], "open", "The step reaches"),
        ([times(0.1, slower=0.8)], "open", "The step reaches"),
        ([times(0.2), times(0.202)], "note", "The layers, timed apart, come to"),
        ([times(0.09), times(0.0909)], "note", "The layers, timed apart, come to"),
        (
            [times(0.06 * factor, slower=0.5) for factor in (0.99, 1.0, 1.01)], "note",
            "faster than the measured ceilings allow",
        ),
    ],
)  # fmt: skip
def test_what_the_step_reaches(steps: list[Any], state: str, words: str) -> None:
    (finding,) = told_of(ceilings(Campaign().layers({32: steps})).study())
    assert finding.state == state and words in finding.sentence


def test_the_interval_holds_what_was_planted() -> None:
    """Of 200 points of three repeats, each with ceilings of its own, in nine of ten or more."""
    rng = np.random.default_rng(7)
    truth = 75.0015 / 130
    by_batch = {
        batch: [times(STEP_S * float(np.exp(rng.normal(0, 0.02)))) for _ in range(3)]
        for batch in range(1, 201)
    }
    summary, plan = Campaign().layers(by_batch).done()
    data = ExperimentData(summary, plan["experiments"][0])
    hits = 0
    for point in data.points():
        found = []
        for kind, value, dtype in (("compute", FLOPS, "float32"), ("memory", BYTES, "")):
            drawn = value * np.exp(rng.normal(0, 0.01, 3))
            span = mean_of(drawn)
            bounds = (span.low, span.high)
            found.append(Ceiling(kind, MEASURED, dtype, drawn.mean(), *bounds, 3, "there"))
        inputs = TableInputs(data, [point], [[point]], Machine(found), None)
        reached = [*layer_rows(inputs)][-1].of_roof
        assert reached is not None and reached.low is not None and reached.high is not None
        hits += reached.low <= truth <= reached.high
    assert hits >= 180


def shrinking() -> Campaign:
    """Local batches of 32 to 4: rates fall, and the share of weights in the bytes grows."""
    by_batch = {}
    for batch in (32, 16, 8, 4):
        part = batch / 32
        slow = part * (1 + 0.3 / part / 8)
        layers = []
        for name, kind, count, *rest in (CONV, NORM, TINY):
            flop, moved, seconds = rest[:2], rest[2:4], rest[4:]
            layers.append(
                (name, kind, count, *(f * part for f in flop), *(m * (part + 0.1) for m in moved),
                 *(s * slow for s in seconds))
            )  # fmt: skip
        step = STEP_S * slow
        by_batch[batch] = [times(step * factor, layers) for factor in (0.99, 1.01)]
    return ceilings(Campaign().layers(by_batch, scaling="strong"))


def test_figures_and_findings_as_the_local_batch_shrinks(tmp_path: Path) -> None:
    peaks = {"flops": {"float32": 2 * FLOPS}, "bytes_per_s": 1.5 * BYTES}
    study = shrinking().study(peaks=peaks)
    (group,) = rooflines(study)
    assert [point.local_batch for point in group] == [32, 16, 8, 4]
    (drawing,) = roofline_figures(study)
    assert drawing.name == "roofline" and "at a local batch of 32" in drawing.title
    ax = drawing.figure.axes[0]
    assert "conv ×2" in [text.get_text() for text in ax.texts]
    assert len(ax.lines[1].get_xdata()) == 4  # a path over the batches
    assert ax.get_ylabel() == "Rate of a rank [GFLOP/s]"
    drawing.figure.savefig(tmp_path / "roofline.png")
    large, small = told_of(study)
    assert large.sentence.startswith("At batch_size 32 the step reaches 5")
    assert small.sentence.startswith("At batch_size 4 the step reaches ")


def test_a_new_ceiling_makes_the_tables_of_layers_again(tmp_path: Path) -> None:
    campaign = measured()
    for ceiling, expected in ((None, 60), (2 * FLOPS, 30)):
        if ceiling:
            campaign.ceiling("compute", [ceiling])
        summary, plan = campaign.done(site="s")
        write_all(summary, plan, tmp_path / "runs", tmp_path / "tables")
        table = pd.read_csv(tmp_path / "tables" / "layers" / "roofline.csv")
        assert table["least_ms"][0] == pytest.approx(expected)
