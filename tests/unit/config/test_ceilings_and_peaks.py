"""What benchmark.yaml and the site file say of ceilings: ``ceiling`` and ``peaks``."""

from pathlib import Path

import pytest

from scalesweep.config.benchmark import load_benchmark
from scalesweep.config.site import load_site
from scalesweep.core.errors import UserError

BENCHMARK = """
name: probe
version: 1
summary: Measures.
parameters:
  ranks: {type: integer, default: 1, doc: ranks}
  ranks_per_node: {type: integer, default: 1, doc: ranks on a node}
command: ["true"]
result: native
"""


def probe(folder: Path, more: str) -> str | None:
    (folder / "probe").mkdir(exist_ok=True)
    (folder / "probe" / "benchmark.yaml").write_text(BENCHMARK + more)
    return load_benchmark("probe", folder=folder / "probe").ceiling


def test_a_benchmark_declares_what_it_is_the_most_of(tmp_path: Path) -> None:
    assert probe(tmp_path, "") is None
    assert probe(tmp_path, "main_metric: flops\nceiling: compute\n") == "compute"
    with pytest.raises(UserError, match="ceiling: memory needs a main_metric"):
        probe(tmp_path, "ceiling: memory\n")
    with pytest.raises(UserError, match=r"ceiling: 'disk'.*compute"):
        probe(tmp_path, "main_metric: rate\nceiling: disk\n")


def test_peaks_of_a_site(tmp_path: Path) -> None:
    file = tmp_path / "m.yaml"
    file.write_text("site: m\nnodes: 1\n")
    assert load_site("m", folder=tmp_path).peaks == {}
    file.write_text("site: m\nnodes: 1\npeaks: {flops: {float32: 2.0e+12}, bytes_per_s: 1.5e+11}\n")
    assert load_site("m", folder=tmp_path).peaks == {
        "flops": {"float32": 2e12}, "bytes_per_s": 1.5e11,
    }  # fmt: skip
    assert load_site("m", folder=tmp_path).ceilings is None
    file.write_text("site: m\nnodes: 1\nceilings: results/ceilings\n")
    assert load_site("m", folder=tmp_path).ceilings == "results/ceilings"


def test_a_site_names_the_device_of_its_nodes(tmp_path: Path) -> None:
    file = tmp_path / "m.yaml"
    file.write_text("site: m\nnodes: 4\ngpus_per_node: 8\npeaks: {device: h100_sxm}\n")
    peaks = load_site("m", folder=tmp_path).peaks
    assert peaks["devices"] == 8 and peaks["bytes_per_s"] == pytest.approx(8 * 3.35e12)
    assert peaks["flops"]["bfloat16"] == 8 * 989.5e12
    file.write_text(
        "site: m\nnodes: 4\ngpus_per_node: 8\n"
        "peaks: {device: h100_sxm, flops: {bfloat16: 6.4e+15}}\n"
    )
    peaks = load_site("m", folder=tmp_path).peaks
    assert peaks["flops"]["bfloat16"] == 6.4e15 and peaks["flops"]["float16"] == 8 * 989.5e12
