"""Published tables whose parameters are a product: each is compared with the others equal."""

from pathlib import Path

import pytest
import yaml

from scalesweep.aspects.find import find
from scalesweep.core.errors import UserError
from scalesweep.experiment.results import ExperimentResults
from scalesweep.importers.table_map import load_map
from scalesweep.importers.table_runs import runs_of
from tests.fakes.imported_table import imported
from tests.fakes.published import PAIR_RATIOS, PAIRS, PAIRS_MAP


def test_parameters_of_a_table_are_compared_with_the_others_equal(
    tmp_path: Path,
) -> None:
    """The published ratios of pairs of GPUs come out, from a table with holes, and so do those of
    each of the other words."""
    _, entry, tables = imported(tmp_path, PAIRS, PAIRS_MAP)
    assert not entry["linked"] and not entry["excluded"] and entry["points"] == 10
    table = tables["comparisons"].query("against == 'reference' and point_id.notna()")
    ratios = table.set_index(["ps", "variable_update", "nccl"])
    links = ratios.query("parameter == 'link'")
    assert {k: round(v, 2) for k, v in links["ratio"].items()} == PAIR_RATIOS
    assert set(links["value"]) == {"PIX"} and set(links["base_value"]) == {"PHB"}
    nccl = ratios.query("parameter == 'nccl' and link == 'PIX'")
    assert nccl["ratio"].tolist() == pytest.approx([1428.81 / 1196.69])
    servers = ratios.query("parameter == 'ps' and link == 'PHB'")
    assert servers["ratio"].tolist() == pytest.approx([1225.74 / 1572.61])


LAYOUTS = {
    "name": "splits",
    "scale": "nodes",
    "scaling": "strong",
    "parameters": {
        "ranks": {"column": "nodes"},
        "tp": {"column": "tp"},
        "mbs": {"column": "mbs"},
        "dp": {"column": "dp", "derive": "8 * ranks // tp"},
        "gradacc": {"column": "gradacc", "derive": "256 / (mbs * dp)"},
    },
    "metrics": {
        "each": {"unit": "tokens/s", "better": "higher", "scope": "rank", "column": "each"}
    },
}


def splits(broken: str = "") -> str:
    """Tokens a second of each GPU: 4 % less with each more tp, and at twice as many nodes."""
    lines = [
        f"{nodes},{tp},{mbs},{8 * nodes // tp},{256 * tp // (8 * nodes * mbs)},"
        f"{1000 * mbs * 0.96 ** (tp + nodes.bit_length())}\n"
        for nodes in (1, 2, 4)
        for tp in (1, 2, 4)
        for mbs in (1, 2)
    ]
    return "nodes,tp,mbs,dp,gradacc,each\n" + "".join(lines) + broken


def test_what_follows_from_other_columns_tells_no_points_apart(tmp_path: Path) -> None:
    spec, entry, tables = imported(tmp_path, splits(), LAYOUTS)
    assert spec["derive"] == {"dp": "8 * ranks // tp", "gradacc": "256 / (mbs * dp)"}
    assert {*spec["axes"]} == {"ranks", "tp", "mbs"} and len(spec["repeats"]) == 18
    results = ExperimentResults(entry, tables)
    means = tables["comparisons"].query("statistic == 'mean' and against == 'reference'")
    pairs = means.set_index(["parameter", "value"])[["pairs", "ratio"]]
    assert pairs.loc[("tp", "4")].tolist() == pytest.approx([6, 0.96**3])
    assert pairs.loc[("mbs", "2")].tolist() == pytest.approx([9, 2])
    assert {(row["dp"], row["gradacc"]) for row in results.points} >= {(8, 32), (32, 4)}
    medians = [finding for finding in find(results) if finding.rule == "effects"][-1]
    assert medians.sentence == "Median of 6 pairs: each with nodes 4, over 1, is 0.9216 times."
    assert medians.flags == ("imported",)


def test_rows_that_contradict_what_follows_are_refused(tmp_path: Path) -> None:
    broken = "4,2,1,16,8,900\n4,2,1,8,32,900\n4,0,1,8,32,900\n"
    (tmp_path / "table.csv").write_text(splits(broken))
    path = tmp_path / "map.yaml"

    def load(old: str = "", new: str = "") -> None:
        path.write_text(yaml.safe_dump(LAYOUTS).replace(old, new))

    load()
    table = runs_of(load_map(path, tmp_path / "table.csv"))
    assert len(table.runs) == 18
    assert [(refusal.line, refusal.reason) for refusal in table.refusals] == [
        (20, "gradacc is 8, but 256 / (mbs * dp) = 16"),
        (21, "dp is 8, but 8 * ranks // tp = 16"),
        (22, "parameters.dp.derive: '8 * ranks // tp' fails: integer division or modulo by zero"),
    ]
    for old, new, words in (
        ("8 * ranks // tp", "8 * ranks // tq", "parameters.dp.derive: .*unknown parameter 'tq'"),
        ("8 * ranks // tp", "gradacc", "parameters: these need each other"),
        ("column: nodes", "column: nodes\n    derive: tp", "parameters.ranks: cannot be derived"),
    ):
        load(old, new)
        with pytest.raises(UserError, match=words):
            load_map(path, tmp_path / "table.csv")
