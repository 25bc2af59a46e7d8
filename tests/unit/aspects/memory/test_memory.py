"""Tables, findings, section and figure of the memory model, of made-up tables of layouts."""

import re
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scalesweep.analysis.memory_model import MemoryFit
from scalesweep.analysis.table_io import write_tables
from scalesweep.aspects.find import rules
from scalesweep.aspects.memory import MemoryFitRow, MemoryRow, memory_notes, memory_table
from scalesweep.config.shapes import load_shapes
from scalesweep.experiment.results import ExperimentResults
from scalesweep.planning.memory_text import fit_of
from scalesweep.planning.planned_shapes import GIB, point_memory
from tests.fakes.imported_table import imported

DEVICE = 30  # GiB
TRUE = MemoryFit(1.1, 1.4, 0.9, 1.5e9)
KNOWN = dict.fromkeys(("ranks", "dp", "tp", "pp", "batch"))
MAP: dict[str, Any] = {
    "name": "layouts",
    "parameters": {name: {"column": name} for name in KNOWN},
    "metrics": {
        "rate": {"column": "rate", "unit": "tokens/s", "better": "higher", "scope": "total"},
        "peak": {"column": "peak", "unit": "GiB", "better": "lower", "scope": "rank"},
    },
    "failed": {"column": "end", "values": {"oom": "GPU_OUT_OF_MEMORY", "crashed": "KILLED"}},
    "mesh": {"dp": "dp", "tp": "tp", "pp": "pp"},
    "transformer": {
        "layers": 16, "width": 1024, "sequence": 2048, "heads": 16, "ffn_width": 4096,
        "vocabulary": 50304, "tied": False, "micro_batch": "batch", "accumulation": 8,
        "dtype": "'bfloat16'",
    },
    "memory": {"zero": 1, "device_gib": DEVICE, "peak": "peak", "rank": "first"},
}  # fmt: skip


def made_table(noise: float = 0.04, crash: bool = False) -> str:
    """Layouts on 8 GPUs, whose peaks follow ``TRUE``: those that need more than 90 % of the device
    run out of memory."""
    generator = np.random.default_rng(1)
    keys = ("mesh", "transformer", "memory")
    shapes = load_shapes({key: MAP[key] for key in keys}, KNOWN, Path("m"))
    lines = ["ranks,dp,tp,pp,batch,rate,peak,end"]
    for tp, pp, batch in product((1, 2, 4), (1, 2), (1, 2, 4, 8, 16, 32)):
        dp = 8 // (tp * pp)
        point = {"ranks": 8, "dp": dp, "tp": tp, "pp": pp, "batch": batch}
        known = point_memory(shapes, point, "p")
        scatter = generator.lognormal(0, noise)
        end = ",,oom"
        if crash and batch == 2:
            end = ",,crashed"
        elif TRUE.needed(known.parts) * scatter < 0.9 * DEVICE * GIB:
            peak = TRUE.needed(known.parts, "first") * scatter / GIB
            end = f"{1000 * batch},{peak:.4f},ok"
        lines.append(f"8,{dp},{tp},{pp},{batch},{end}")
    return "\n".join(lines) + "\n"


def results_of(folder: Path, text: str, content: dict[str, Any]) -> ExperimentResults:
    _, entry, tables = imported(folder, text, content)
    return ExperimentResults(entry, tables)


@pytest.fixture(scope="module")
def layouts(tmp_path_factory: pytest.TempPathFactory) -> ExperimentResults:
    return results_of(tmp_path_factory.mktemp("layouts"), made_table(), MAP)


def test_every_point_is_predicted_and_judged(layouts: ExperimentResults) -> None:
    rows = layouts.of(MemoryRow)
    assert len(rows) == 36
    failed = [row for row in rows if row.outcome == "out of memory"]
    assert 5 < len(failed) < 20 and all(row.measured is None for row in failed)
    for row in rows:
        parts = row.weights + row.gradients + row.optimizer + row.activations + row.logits
        assert parts + row.overhead == pytest.approx(row.needed)
        assert row.expected <= row.needed * (1 + 1e-9)
        assert row.device == DEVICE * GIB
        if row.measured is not None:
            assert row.ratio == pytest.approx(row.measured / row.expected)
            assert 0.8 < (row.ratio or 0) < 1.25
    judged = [row.called for row in rows if row.called]
    assert judged.count("right") > 25 and judged.count("wrong") <= 1
    # A pipeline's first stage has no logits, its last one does.
    assert any(row.expected < 0.9 * row.needed for row in rows if row.point["pp"] == 2)


def test_constants_come_back_in_the_plan(layouts: ExperimentResults, tmp_path: Path) -> None:
    (row,) = layouts.of(MemoryFitRow)
    assert (row.states, row.activations) == pytest.approx((1.1, 1.4), rel=0.1)
    assert row.peaks == 30
    assert row.error < row.within < 0.2
    write_tables({"e": {"memory_fit": layouts.tables["memory_fit"]}}, tmp_path)
    fit = fit_of(tmp_path / "e")
    assert (fit.activations, fit.peaks) == (pytest.approx(row.activations), row.peaks)


def test_a_point_is_judged_without_its_own_peak(tmp_path: Path) -> None:
    """One peak that is three times too high does not pull its own prediction."""
    peak = r"(?<=000,)[\d.]+(?=,ok)"
    odd = re.sub(peak, lambda it: str(3 * float(it[0])), made_table(noise=0.01), count=1)
    results = results_of(tmp_path, odd, MAP)
    ratios = sorted(row.ratio for row in results.of(MemoryRow) if row.ratio is not None)
    assert ratios[-1] == pytest.approx(3, rel=0.1)
    assert ratios[-2] < 1.15


def test_what_the_findings_say(layouts: ExperimentResults) -> None:
    near, failed = (rules()[f.rule].say(f).sentence for f in memory_notes(layouts))
    assert near.startswith("Of 30 memory peaks, each predicted without itself, the median is off")
    assert failed.endswith("; the memory model calls 6 of them too large and 0 fitting.")
    table = memory_table(layouts, 10)
    assert table is not None and len(table.rows) == 36 and len(table.head) == 10


def test_other_failures_are_no_failures_of_the_model(tmp_path: Path) -> None:
    results = results_of(tmp_path, made_table(crash=True), MAP)
    crashed = [row for row in results.of(MemoryRow) if row.point["batch"] == 2]
    assert {row.outcome for row in crashed} == {"failed otherwise"}
    assert not any(row.called for row in crashed)


@pytest.mark.parametrize(
    "gone", [("memory", None), ("transformer", "dtype"), ("transformer", "vocabulary")]
)
def test_nothing_is_said_of_what_is_not_known(tmp_path: Path, gone: tuple[str, Any]) -> None:
    key, field = gone
    content = {**MAP, key: {k: v for k, v in MAP[key].items() if field and k != field}}
    content = {k: v for k, v in content.items() if v}
    results = results_of(tmp_path, made_table(), content)
    assert not results.of(MemoryRow) and not results.of(MemoryFitRow)
    assert memory_notes(results) == [] and memory_table(results, 10) is None


def test_a_peak_in_another_unit_is_none(tmp_path: Path) -> None:
    peak = {**MAP["metrics"]["peak"], "unit": "%"}
    content = {**MAP, "metrics": {**MAP["metrics"], "peak": peak}}
    results = results_of(tmp_path, made_table(), content)
    rows = results.of(MemoryRow)
    assert len(rows) == 36 and all(row.measured is None for row in rows)
    assert len(memory_notes(results)) == 1  # of what ran out of memory
