"""docs/studies.md: its rows are run on two cores or planned; published numbers are imported."""

import csv
import itertools
import statistics

import pytest
import yaml

from scalesweep.commands import import_source, interface
from scalesweep.importers import cli
from tests.conftest import ROOT, Project, make_project
from tests.fakes import published
from tests.studies import missing, rows, rows_of
from tests.workflow.small_campaigns import CAMPAIGNS, PROFILED, SHORTER

# Those that go back to no published study.
OF_NO_STUDY = {"frameworks", "torch_scaling"}


@pytest.mark.slow
@pytest.mark.parametrize("campaign", [name for name in SHORTER if name not in OF_NO_STUDY])
def test_rows_that_two_cores_can_carry(small_campaigns: Project, campaign: str) -> None:
    wanted = rows_of(campaign)
    assert wanted
    assert missing(small_campaigns.path / "results", wanted, f"{campaign}_") == []


@pytest.mark.slow
@pytest.mark.parametrize(("campaign", "profile"), PROFILED)
def test_rows_of_profiled_runs(small_campaigns: Project, campaign: str, profile: str) -> None:
    wanted = rows_of(campaign, profile)
    assert wanted
    assert missing(small_campaigns.path / "results", wanted, f"{profile}_{campaign}_") == []


def test_every_row_is_run_planned_or_imported() -> None:
    run = [*itertools.chain.from_iterable(map(rows_of, SHORTER))]
    run += itertools.chain.from_iterable(rows_of(*each) for each in PROFILED)
    assert {row.name for row in rows() if "run" in row.tests} == {row.name for row in run}
    for row in rows():
        assert row.tests, row
        for each in row.tests:  # or another test, by its file
            assert each in {"run", "plan", "import"} or (ROOT / each.strip("`")).is_file(), row
        # tests/unit/planning/test_shipped_campaigns.py plans every campaign, here and for Slurm.
        commands = row.made[0].startswith("scalesweep ")
        assert commands or (CAMPAIGNS / f"{row.made[0]}.yaml").is_file(), row
        assert row.wanted, row
    names = [row.name for row in rows()]
    assert len(set(names)) == len(names) >= 60


def run_import(*words: str) -> None:
    import_source.run(interface.parser_of("import").parse_args(words))


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """All published tables imported one after the other, and one report of them."""
    project = make_project(tmp_path_factory.mktemp("published") / "project")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(project.path)
        patch.setattr(cli, "report_command", lambda *_args: ["true"])
        for name, (table, table_map) in published.TABLES.items():
            project.write(f"{name}.csv", table)
            project.write(f"{name}.yaml", yaml.safe_dump(table_map, sort_keys=False))
            run_import(f"{name}.csv", "--map", f"{name}.yaml")
        for name in ("nsys.txt", "pprof.txt"):
            run_import(str(ROOT / "tests" / "published" / "exarl" / name), "--ranks", "1")
        published.write_result(project.path / "daint" / "n2", 2, published.LOCAL, published.TOTAL)
        run_import("daint")
    done = project.snakemake("report", "--configfile", "results/imported/campaign.yaml")
    assert done.returncode == 0, done.stdout + done.stderr
    return project


def table(project: Project, experiment: str, name: str) -> list[dict[str, str]]:
    path = project.path / "results" / "imported" / "tables" / experiment / f"{name}.csv"
    with path.open() as file:
        return list(csv.DictReader(file))


@pytest.mark.slow
def test_efficiency_of_data_loading_on_piz_daint(imported: Project) -> None:
    printed = {row["ranks"]: row for row in csv.DictReader(
        published.COSMOFLOW.splitlines(), delimiter=";"
    )}  # fmt: skip
    rows = table(imported, "daint_io_scaling", "scaling")
    assert len(rows) == 2 * len(printed) == 20
    for row in rows:
        told = printed[row["ranks"]]
        efficiency = float(row["loading_rate_eff_run"])
        if row["epochs"] == "later":
            assert efficiency == pytest.approx(float(told["later_eff"]), abs=1e-6)
        elif row["ranks"] == "64":  # the first epoch, near optimal up to here
            assert efficiency == pytest.approx(119.462853 / (64 * 2.129583), rel=1e-6)


@pytest.mark.slow
def test_efficiency_of_models_on_cifar10(imported: Project) -> None:
    printed = {
        row["model"]: float(row["printed"])
        for row in csv.DictReader(published.CIFAR10.splitlines())
        if row["printed"]
    }
    rows = table(imported, "cifar10_m60_scaling", "scaling")
    reached = {
        row["model"]: float(row["images_per_second_eff_run"]) for row in rows if row["gpus"] == "2"
    }
    assert reached == pytest.approx(printed, abs=5e-5) and len(reached) == 8


@pytest.mark.slow
def test_typical_gain_of_a_layout(imported: Project) -> None:
    ratios = {row["model"]: float(row["ratio"]) for row in table(
        imported, "cifar10_m60_scaling", "comparisons"
    )}  # fmt: skip
    # Values of an imported table are in order, so that ratios are over NCHW.
    assert ratios["alexnet"] == pytest.approx(2993.15 / 5165.54) and len(ratios) == 8
    (row,) = (
        row
        for row in table(imported, "cifar10_m60_scaling", "effects")
        if (row["parameter"], row["value"]) == ("data_format", "NHWC")
    )
    assert (row["base"], row["pairs"], row["higher"]) == ("NCHW", "8", "0")
    # "typically +50 % on smaller cifar10", at most +73 %.
    assert float(row["median"]) == pytest.approx(statistics.median(ratios.values()))
    assert 1.4 < 1 / float(row["median"]) < 1.55 and round(1 / float(row["least"]), 2) == 1.73


@pytest.mark.slow
def test_medians_of_tensorflows_table(imported: Project) -> None:
    """The study's sheet prints 1.93, 3.87 and 7.44 times, of some of the rows that the page has."""
    medians = {
        (row["parameter"], row["value"]): float(row["median"])
        for row in table(imported, "tensorflow_2017_scaling", "effects")
        if row["metric"] == "images_per_second"
    }
    for gpus, printed in {"2": 1.93, "4": 3.87, "8": 7.44}.items():
        assert medians["gpus", gpus] == pytest.approx(printed, rel=0.025)
    # "4.4x faster (median) on P100 than K80", "real or synth: no significant effect".
    assert round(1 / medians["platform", "ec2_k80"], 1) == 4.4
    assert medians["data", "real"] == pytest.approx(1, abs=0.01)


@pytest.mark.slow
def test_gpus_and_their_links(imported: Project) -> None:
    alone = table(imported, "memory_clock_points", "comparisons")
    shares = {row["value"]: round(100 * float(row["ratio"]), 2) for row in alone}
    assert shares == {"1": 84.65, "2": 98.83, "3": 94.54, "4": 100.38, "5": 100.39}
    ratios = {
        (row["ps"], row["variable_update"], row["nccl"] == "True"): round(float(row["ratio"]), 2)
        for row in table(imported, "pairs_points", "comparisons")
        if row["parameter"] == "link"
    }
    assert ratios == published.PAIR_RATIOS


@pytest.mark.slow
def test_kernels_and_functions(imported: Project) -> None:
    kernels = table(imported, "profile_nsys_other_points", "functions")
    assert len(kernels) == 44
    adam = kernels[0]
    assert "ApplyAdamKernel" in adam["function"] and float(adam["calls"]) == 75000
    assert float(adam["mean_s"]) == pytest.approx(3988.2e-9, rel=1e-4)
    assert float(adam["share"]) == pytest.approx(0.106, abs=5e-4)
    parts = {row["part"] for row in table(imported, "profile_nsys_other_points", "parts")}
    assert {"optimizer", "matrix", "bias", "reduction", "elementwise"} <= parts
    functions = table(imported, "profile_tau_other_points", "functions")
    probe = next(row for row in functions if row["function"] == "MPI_Probe()")
    assert float(probe["own_s"]) == pytest.approx(263.892)
    (mpi,) = (r for r in table(imported, "profile_tau_other_points", "parts") if r["part"] == "mpi")
    assert float(mpi["seconds"]) == pytest.approx(268.3, abs=0.05)
    assert float(mpi["share"]) == pytest.approx(0.146, abs=5e-4)


@pytest.mark.slow
def test_times_of_ranks_on_piz_daint(imported: Project) -> None:
    (row,) = table(imported, "other_points", "points")
    printed = {
        "total_time_mean_init": 156.493430, "total_time_std_init": 0.021490,
        "local_throughput_mean_init": 2.086113, "local_throughput_std_init": 0.040744,
        "total_throughput_mean_init": 4.089629, "total_throughput_std_init": 0.000562,
        "total_time_mean_later": 6.636029, "total_time_std_later": 0.571867,
        "local_throughput_mean_later": 48.843115, "local_throughput_std_later": 3.702922,
        "total_throughput_mean_later": 97.100322, "total_throughput_std_later": 7.626039,
    }  # fmt: skip
    assert {name: float(row[name]) for name in printed} == pytest.approx(printed, abs=1e-6)
