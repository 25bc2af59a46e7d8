"""Sites: their peaks, the GPUs that points take of them, and programs that are not there."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from scalesweep.config.campaign import Campaign
from scalesweep.config.site import Site, load_site
from scalesweep.jobs.missing_programs import missing_program
from scalesweep.planning.machine import peaks_of


def site(folder: Path, **keys: Any) -> Site:
    (folder / "m.yaml").write_text(yaml.safe_dump({"site": "m", "nodes": 4, **keys}))
    return load_site("m", folder=folder)


def test_peaks_are_stated_or_of_the_data_sheet(tmp_path: Path) -> None:
    assert peaks_of(site(tmp_path)) == {}
    stated: dict[str, Any] = {"flops": {"float32": 2.0e12}, "bytes_per_s": 1.5e11}
    assert peaks_of(site(tmp_path, peaks=stated)) == stated
    named = {"device": "h100_sxm", "flops": {"bfloat16": 6.4e15}}
    peaks = peaks_of(site(tmp_path, gpus_per_node=8, peaks=named))
    assert peaks["devices"] == 8 and peaks["bytes_per_s"] == pytest.approx(8 * 3.35e12)
    assert peaks["flops"]["bfloat16"] == 6.4e15 and peaks["flops"]["float16"] == 8 * 989.5e12


@pytest.mark.parametrize(
    ("body", "more"),
    [
        ("axes: {size: [1, 2, 4]}", "gpus_per_node: 4\n"),
        ("axes: {size: [1, 8]}", ""),  # nothing is known of the site
        ("axes: {size: [1, 8]}\nexclude: [size > 4]", "gpus_per_node: 4\n"),
        ("axes: {size: [1, 8]}", "gpus_per_node: 4\nenv: {CUDA_VISIBLE_DEVICES: '-1'}\n"),
        ("axes: {size: [1, 2], env.CUDA_VISIBLE_DEVICES: ['0,1', null]}", "gpus_per_node: 4\n"),
        ("axes: {ranks: [1, 8]}\nfixed: {size: 2, ranks_per_node: 2}", "gpus_per_node: 4\n"),
        ("axes: {size: [1, 9], env.CUDA_VISIBLE_DEVICES: ['', '-1']}", "gpus_per_node: 4\n"),
    ],
)
def test_points_whose_gpus_are_there(
    toy: Path, campaign_of: Callable[[str], Campaign], body: str, more: str
) -> None:
    for name, lines in (("benchmarks/toy/benchmark", "gpus: size\n"), ("sites/toy", more)):
        with (toy / f"{name}.yaml").open("a") as file:
            file.write(lines)
    assert campaign_of(body).experiments[0].points


def test_a_program_to_be_built_is_of_the_working_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert site(tmp_path, programs={"a": "build/a"}).programs == {"a": f"{tmp_path}/build/a"}


def test_a_path_that_hardly_can_be_right_on_the_nodes_of_a_cluster(tmp_path: Path) -> None:
    def told(path: str, here: bool = False) -> bool:
        return bool(missing_program("p", path, here, has_prologue=False))

    assert not told(str(tmp_path)) and told(str(tmp_path / "porgram"))
    # The nodes may have these.
    for path in ("/no/such/folder/program", "porgram"):
        assert not told(path) and told(path, here=True)
