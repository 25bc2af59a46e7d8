"""Points that need more GPUs of a node than there are."""

from collections.abc import Callable
from pathlib import Path

import pytest

from scalesweep.config.campaign import load_campaign
from scalesweep.core.errors import UserError

Points = Callable[[str, str], int]


@pytest.fixture
def points(toy: Path) -> Points:
    """Count the points of an experiment of the toy, whose ranks take ``size`` GPUs each."""
    benchmark = toy / "benchmarks" / "toy" / "benchmark.yaml"
    benchmark.write_text(f"{benchmark.read_text()}gpus: size\n")
    site, path = toy / "sites" / "toy.yaml", toy / "campaign.yaml"
    text = site.read_text()

    def load(body: str, more: str = "gpus_per_node: 4\n") -> int:
        site.write_text(f"{text}{more}")
        path.write_text(f"campaign: t\nsite: toy\nexperiments: {{e: {{benchmark: toy, {body}}}}}\n")
        return len(load_campaign(path).experiments[0].points)

    return load


@pytest.mark.parametrize(
    ("body", "more"),
    [
        ("axes: {size: [1, 2, 4]}", "gpus_per_node: 4\n"),
        ("axes: {size: [1, 8]}", ""),  # nothing is known of the site
        ("axes: {size: [1, 8]}, exclude: [size > 4]", "gpus_per_node: 4\n"),
        ("axes: {size: [1, 8]}, env: {CUDA_VISIBLE_DEVICES: ''}", "gpus_per_node: 4\n"),
        ("axes: {size: [1, 8]}", "gpus_per_node: 4\nenv: {CUDA_VISIBLE_DEVICES: '-1'}\n"),
        ("axes: {size: [1, 2], env.CUDA_VISIBLE_DEVICES: ['0,1', '1,3', null]}",
         "gpus_per_node: 4\n"),
        ("axes: {ranks: [1, 8]}, fixed: {size: 2, ranks_per_node: 2}", "gpus_per_node: 4\n"),
        ("axes: {size: [1, 9], env.CUDA_VISIBLE_DEVICES: ['', '-1', none]}", "gpus_per_node: 4\n"),
        ("axes: {size: [1, 2]}, env: {CUDA_VISIBLE_DEVICES: 'GPU-8932f937,GPU-0a'}",
         "gpus_per_node: 4\n"),
    ],
)  # fmt: skip
def test_points_that_fit(points: Points, body: str, more: str) -> None:
    assert points(body, more) > 0


def test_a_number_that_depends_on_nothing_is_refused_without_values(
    toy: Path, points: Points
) -> None:
    file = toy / "benchmarks" / "toy" / "benchmark.yaml"
    file.write_text(file.read_text().replace("gpus: size", "gpus: '1'"))
    with pytest.raises(UserError) as error:
        points("axes: {ranks: [8]}, fixed: {ranks_per_node: 8}", "gpus_per_node: 4\n")
    assert "experiments.e: 8 ranks on a node would need 8 GPUs, site toy has" in str(error.value)


@pytest.mark.parametrize(
    ("body", "wrong"),
    [
        ("axes: {size: [1, 2, 6]}", "size = 6: 1 rank on a node would need 6 GPUs, site toy has "
         "gpus_per_node = 4"),
        ("axes: {ranks: [1, 8]}, fixed: {size: 2, ranks_per_node: 3}",
         "size = 2: 3 ranks on a node would need 6 GPUs, site toy has gpus_per_node = 4"),
        ("axes: {size: [1, 2], env.CUDA_VISIBLE_DEVICES: [null, '3']}",
         "size = 2: 1 rank on a node would need 2 GPUs, site toy has gpus_per_node = 4, of which "
         "CUDA_VISIBLE_DEVICES = '3' shows 1"),
        ("linked: [{size: 1, env.CUDA_VISIBLE_DEVICES: '0,4'}]", "CUDA_VISIBLE_DEVICES = '0,4': "
         "there is no GPU '4', or it is named twice: list numbers from 0 to 3, GPU-... or MIG-..."),
        *((f"axes: {{env.CUDA_VISIBLE_DEVICES: ['{names}']}}", f"CUDA_VISIBLE_DEVICES = '{names}'")
          for names in ("0;1", "0,,1", "1,1")),
        ("extra: [{size: 5}]", "size = 5: 1 rank on a node would need 5 GPUs, site toy has"),
    ],
)  # fmt: skip
def test_points_that_need_more_gpus_are_refused(points: Points, body: str, wrong: str) -> None:
    with pytest.raises(UserError) as error:
        points(body, "gpus_per_node: 4\n")
    assert f"campaign.yaml: experiments.e: {wrong}" in str(error.value)
    assert "\n" not in str(error.value)
