"""What jobs ask for, from 1 to 1,024 ranks."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from scalesweep.config.site import Site, load_site
from scalesweep.core.errors import UserError
from scalesweep.slurm.job_shape import run_shape, staging_shape

SITE = """\
site: big
nodes: 1024
cores_per_node: 24
memory_gib_per_node: 96
gpus_per_node: {gpus}
time_limit_minutes: 60
stage_workers: 8
slurm: {slurm}
"""


def site(folder: Path, slurm: str = "{}", gpus: int = 0) -> Site:
    (folder / "big.yaml").write_text(SITE.format(slurm=slurm, gpus=gpus))
    return load_site("big", folder=folder)


def point(ranks: int, per_node: int = 1, **more: Any) -> dict[str, Any]:
    return {"ranks": ranks, "ranks_per_node": per_node, **more}


@pytest.mark.parametrize("per_node", [1, 2, 3, 5, 8, 24])
@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 7, 8, 64, 100, 512, 1000, 1024])
def test_every_rank_count_fits_its_nodes(tmp_path: Path, ranks: int, per_node: int) -> None:
    shape = run_shape(site(tmp_path), point(ranks, per_node), limit_s=600)
    assert shape.tasks == ranks
    assert shape.nodes == -(-ranks // per_node)
    # Balanced, every task has a place, and no node is asked for in vain or beyond its cores.
    assert (shape.nodes - 1) * shape.tasks_per_node < ranks <= shape.nodes * shape.tasks_per_node
    assert shape.cpus_per_task == 24 // shape.tasks_per_node
    assert shape.minutes == 11


def test_the_request_in_full(tmp_path: Path) -> None:
    options = (
        "{account: proj1, partition: gpu, qos: high, constraint: knl, exclusive: true,"
        " extra: ['--reservation=week 12', '--switches=1'], startup_minutes: 2}"
    )
    here = site(tmp_path, options, gpus=4)
    shape = run_shape(here, point(12, 4, memory_mode="flat"), 100, constraint="+{memory_mode}")
    assert shape.sbatch_words() == [
        *("--nodes=3", "--ntasks=12", "--cpus-per-task=6", "--time=4", "--mem=98304"),
        *("--account=proj1", "--partition=gpu", "--qos=high", "--constraint=knl&flat"),
        *("--ntasks-per-node=4", "--gpus-per-node=4", "--exclusive", "--no-requeue"),
        *("--reservation=week 12", "--switches=1"),
    ]
    assert shape.node_hours == pytest.approx(0.2)


@pytest.mark.parametrize(
    ("site_features", "own", "asked"),
    [
        ("gpu", None, "gpu"),
        ("gpu", "mc", "mc"),
        ("quad", "+{mode}", "quad&flat"),
        ("", "+{mode}", "flat"),
        ("", "{mode}|cache", "flat|cache"),
        ("gpu|mc", "+{mode}", "(gpu|mc)&flat"),
        ("gpu", "+{mode}|cache", "gpu&(flat|cache)"),
    ],
)
def test_a_constraint_replaces_the_sites_or_adds_to_it(
    tmp_path: Path, site_features: str, own: str | None, asked: str
) -> None:
    here = site(tmp_path, f"{{constraint: '{site_features}'}}" if site_features else "{}")
    assert run_shape(here, point(1, mode="flat"), 60, constraint=own).constraint == asked


def test_memory_is_the_share_of_the_cpus_or_as_said(tmp_path: Path) -> None:
    here = site(tmp_path)
    assert run_shape(here, point(1), 60).mem_mb == 96 * 1024
    assert run_shape(here, point(5, 5), 60).mem_mb == 96 * 1024 * 20 // 24
    assert run_shape(here, point(4, 4), 60, memory_gib_per_rank=1.5).mem_mb == 6 * 1024 + 128
    assert run_shape(here, point(4, 4), 60, memory_gib_per_rank=1.5, mem_mb=7000).mem_mb == 7000
    unknown = here.model_copy(update={"memory_gib_per_node": None})
    assert run_shape(unknown, point(4, 4), 60).mem_mb is None
    with pytest.raises(UserError, match=r"4 ranks on a node take 100\.125 GiB, .* site big has 96"):
        run_shape(here, point(4, 4), 60, memory_gib_per_rank=25)


def test_one_run_after_the_other_and_elsewhere(tmp_path: Path) -> None:
    here = site(tmp_path)
    assert run_shape(here, point(2), 60).extra == ("--no-requeue",)
    alone = here.model_copy(update={"concurrent_runs": 1})
    assert run_shape(alone, point(2), 60).extra == ("--no-requeue", "--dependency=singleton")
    own = run_shape(here, point(2), 60, alone=True)
    assert own == run_shape(alone, point(2), 60)
    elsewhere = replace(run_shape(here, point(2), 60), exclude="n[1-2]")
    assert "--exclude=n[1-2]" in elsewhere.sbatch_words()


def test_what_the_user_adds_comes_last_where_slurm_takes_it(tmp_path: Path) -> None:
    options = (
        "{exclusive: true, extra: ['--exclude=n[1-2]', --exclude=n9, --requeue,"
        " '--exclusive=user', '--gpus-per-node=a100:4', '--switches=1']}"
    )
    here = site(tmp_path, options, gpus=4)
    for shape in (run_shape(here, point(2), 60), staging_shape(here)):
        words = shape.sbatch_words()
        added = ["--requeue", "--exclusive=user", "--gpus-per-node=a100:4", "--switches=1"]
        assert words[-4:] == added and "--no-requeue" in words[:-4]
        assert [word for word in words if "exclude" in word] == ["--exclude=n[1-2],n9"]
