"""Campaign files: what they expand to, and how mistakes are told."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from scalesweep.config.campaign import Campaign, load_campaign
from scalesweep.core.errors import UserError
from scalesweep.jobs.run_spec import run_spec

Load = Callable[..., Campaign]


@pytest.mark.parametrize(
    ("body", "names", "values"),
    [
        ("axes: {ranks: [1, 2], size: [5, 3]}", "ranks size", [(1, 5), (1, 3), (2, 5), (2, 3)]),
        ("axes: {size: {from: 1, to: 10, step: 3}}", "size", [(1,), (4,), (7,), (10,)]),
        ("axes: {size: {from: 1, to: 6, factor: 2}}", "size", [(1,), (2,), (4,)]),
        ("axes: {rate: {from: 0.1, to: 0.3, step: 0.1}}", "rate", [(0.1,), (0.2,), (0.3,)]),
        ("axes: {size: [4.0]}", "size", [(4,)]),
        ("axes: {rate: [1, 2]}\nlinked: [{ranks: 1, size: 8}, {ranks: 2, size: 4}]",
         "ranks size rate", [(1, 8, 1.0), (1, 8, 2.0), (2, 4, 1.0), (2, 4, 2.0)]),
        ("axes: {size: [1, 2]}\nextra: [{size: 9}, {size: 2}]", "size", [(1,), (2,), (9,)]),
    ],
)  # fmt: skip
def test_axes_make_points_in_file_order(
    campaign_of: Load, body: str, names: str, values: list[tuple[float, ...]]
) -> None:
    points = campaign_of(body).experiments[0].points
    assert [tuple(point[name] for name in names.split()) for point in points] == values


def test_what_a_product_cannot_combine_is_left_out_with_the_reason(campaign_of: Load) -> None:
    body = "axes: {rate: [200, 1], size: [4, 501, 600, 503]}\nexclude: ['size == 501']"
    experiment = campaign_of(body).experiments[0]
    assert [(p["rate"], p["size"]) for p in experiment.points] == [(200, 4), (1, 4), (1, 600)]
    reasons = Counter(reason for _, reason in experiment.excluded)
    (divides,) = (reason for reason in reasons if reason.endswith("is not a multiple of 2"))
    assert reasons == {"size == 501": 2, divides: 1, "toy: too much of both": 2}
    linked = "axes: {rate: [200, 1]}\nlinked: [{size: 4}, {size: 600}]"
    assert len(campaign_of(linked).experiments[0].points) == 3
    extra = campaign_of(f"{linked}\nextra: [{{rate: 2, size: 6}}, {{rate: 2, size: 503}}]")
    assert [len(extra.experiments[0].points), len(extra.experiments[0].excluded)] == [4, 2]


def test_a_series_that_exclusions_cut_is_none_of_a_mix_up(campaign_of: Load) -> None:
    """Work that is left at one count, where other work is at several; or a single count."""
    weak = "scaling: weak\naxes: {ranks: [1, 2, 4], size: [2, 4, 6], threads: [1, 2]}\nexclude: ["
    for rule, points in (
        ("size == 6 and ranks > 1", 14),
        ("threads == 2 and ranks > 1", 12),
        ("size > 2 and ranks > 1", 10),
    ):
        assert len(campaign_of(f"{weak}{rule}]").experiments[0].points) == points
    diagonal = "threads == 2 and size * ranks != 8 and (ranks > 1 or size != 6)"
    with pytest.raises(UserError, match="but it is 6 at 1 and 4 at 2"):
        campaign_of(f"{weak}{diagonal}]")


def test_repeats_of_each_linked_point_by_their_numbers(campaign_of: Load) -> None:
    body = "linked: [{size: 8}, {size: 4}]\nrepeats: [[0, 3], [1]]"
    runs = campaign_of(body).experiments[0].runs
    assert [(run.point["size"], run.repeat) for run in runs] == [(8, 0), (4, 1), (8, 3)]
    same = campaign_of("linked: [{size: 8}]\nrepeats: 4").experiments[0].runs
    assert same[3].run_id == runs[2].run_id  # ids do not depend on how repeats are planned


def test_one_site_for_each_way_to_run(toy: Path) -> None:
    text = (toy / "sites" / "toy.yaml").read_text()
    (toy / "sites" / "big.yaml").write_text(text.replace("site: toy", "site: big"))
    path = toy / "campaign.yaml"
    body = "experiments: {e: {benchmark: toy}}\n"
    path.write_text("campaign: t\nsite: {local: toy, slurm: big}\n" + body)
    local, cluster = load_campaign(path), load_campaign(path, cluster=True)
    assert (local.site.name, cluster.site.name) == ("toy", "big")
    assert local.runs_folder != cluster.runs_folder
    assert list(local.unique_runs()) == list(cluster.unique_runs())
    # A site by name is the same whichever way it was chosen.
    assert load_campaign(path, "big").digest == cluster.digest != local.digest
    assert load_campaign(path, "toy", cluster=True).digest == local.digest
    path.write_text("campaign: t\nsite: toy\n" + body)
    assert load_campaign(path, cluster=True).site.name == "toy"


def test_variables_are_part_of_what_is_measured_wherever_they_are_set(toy: Path) -> None:
    path = toy / "campaign.yaml"

    def load(*experiments: str) -> Campaign:
        path.write_text("campaign: c\nsite: toy\nexperiments:\n" + "\n".join(experiments))
        return load_campaign(path)

    (alone,) = load("  a: {benchmark: toy}").unique_runs()
    campaign = load(
        "  a: {benchmark: toy, axes: {env.OMP_PROC_BIND: [null, close], size: [1, 2]}}",
        "  b: {benchmark: toy, linked: [{env.A: x, env.B: 'y'}, {env.A: z, env.B: null}]}",
        "  c: {benchmark: toy, extra: [{env.OMP_PROC_BIND: spread}]}",
        "  d: {benchmark: toy, fixed: {env.OMP_PROC_BIND: close}}",
    )
    a, b, c, d = campaign.experiments
    assert a.axes == ("size", "env.OMP_PROC_BIND") and b.axes == ("env.A", "env.B")
    assert a.runs[0].run_id == c.runs[0].run_id == alone  # what sets none is what it was
    assert d.runs[0].run_id in {run.run_id for run in a.runs}
    assert len(campaign.unique_runs()) == 4 + 2 + 1
    assert [[run_spec(campaign, e, run)["env"] for run in e.runs] for e in (b, c, d)] == [
        [{"A": "x", "B": "y"}, {"A": "z"}],
        [{}, {"OMP_PROC_BIND": "spread"}],
        [{"OMP_PROC_BIND": "close"}],
    ]
