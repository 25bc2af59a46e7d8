"""Keys under names that they had once."""

from pathlib import Path

import pytest

from scalesweep.config import renamed_keys
from scalesweep.config.percent import read_percent
from scalesweep.config.renamed_keys import rename_keys, rewrite_older_forms
from scalesweep.core.errors import UserError

PATH = Path("mine.yaml")


def test_old_keys_are_read_with_a_line_each(caplog: pytest.LogCaptureFixture) -> None:
    content = {
        "memory_gb_per_node": 16,
        "slurm": {"staging": {"memory_gb": 4}},
        "experiments": {"a": {"memory_gb_per_rank": 2}, "b": None},
    }
    rename_keys(content, PATH)
    assert content == {
        "memory_gib_per_node": 16,
        "slurm": {"staging": {"memory_gib": 4}},
        "experiments": {"a": {"memory_gib_per_rank": 2}, "b": None},
    }
    rename_keys({"memory_gb_per_node": 16}, PATH)  # is told once
    assert sorted(caplog.messages) == [
        "mine.yaml: experiments.a.memory_gb_per_rank is now memory_gib_per_rank (GiB, as before)",
        "mine.yaml: memory_gb_per_node is now memory_gib_per_node (GiB, as before)",
        "mine.yaml: slurm.staging.memory_gb is now memory_gib (GiB, as before)",
    ]


def test_both_names_are_refused() -> None:
    with pytest.raises(UserError, match=r"^mine.yaml: memory_gb_per_node: the same as memory_gib"):
        rename_keys({"memory_gb_per_node": 16, "memory_gib_per_node": 32}, PATH)


@pytest.mark.parametrize("content", [None, [], {"slurm": 3, "experiments": []}])
def test_what_is_no_such_file_is_left_to_the_schema(content: object) -> None:
    rename_keys(content, PATH)


@pytest.mark.parametrize(
    ("older", "today", "said"),
    [
        (
            {"budget_node_hours": 50},
            {"budget": {"node_hours": 50}},
            "a.yaml: budget_node_hours is now budget: {node_hours: 50}",
        ),
        (
            {"spend": {"budget_node_hours": 50, "until": "5 %", "target": "io ranks=64"}},
            {
                "budget": {
                    "node_hours": 50, "adaptive": True, "until": "5 %", "target": "io ranks=64",
                }
            },
            "a.yaml: spend is now budget: {node_hours: 50, adaptive: true, until: 5 %, "
            "target: io ranks=64}",
        ),
        (  # neither was exceeded
            {"budget_node_hours": 40.5, "spend": {"budget_node_hours": 50}},
            {"budget": {"node_hours": 40.5, "adaptive": True}},
            "a.yaml: budget_node_hours, spend is now budget: {node_hours: 40.5, adaptive: true}",
        ),
        (
            {"history": {"folder": "h", "margin": 0.03}},
            {"history": {"folder": "h", "margin": "3 %"}},
            "a.yaml: history.margin: 0.03 is now 3 %",
        ),
        (
            {"history": {"folder": "h", "margins": {"t": 0.1, "u": "2.5 %", "v": 0.0755}}},
            {"history": {"folder": "h", "margins": {"t": "10 %", "u": "2.5 %", "v": "7.55 %"}}},
            "a.yaml: history.margins.t: 0.1 is now 10 %",
        ),
    ],
)  # fmt: skip
def test_older_forms_are_read_with_a_line(
    older: dict[str, object],
    today: dict[str, object],
    said: str,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(renamed_keys, "_warned", set())
    rewrite_older_forms(older, Path("a.yaml"))
    assert older == today and said in caplog.messages
    caplog.clear()
    rewrite_older_forms(older, Path("a.yaml"))
    assert older == today and not caplog.messages


def test_both_forms_are_refused() -> None:
    with pytest.raises(UserError, match=r"^mine.yaml: spend: the same as budget; leave out spend"):
        rewrite_older_forms({"budget": {}, "spend": {"budget_node_hours": 1}}, PATH)


def test_margins_mean_what_they_meant() -> None:
    for share in (0.03, 0.07, 0.1, 1e-5, 0.29, 0.999):
        history = {"folder": "h", "margin": share}
        rewrite_older_forms({"history": history}, PATH)
        assert read_percent(str(history["margin"]), "") == pytest.approx(share, rel=1e-15)


@pytest.mark.parametrize(
    "content",
    [
        None,
        [],
        {"spend": 3},
        {"history": {"margin": 3, "margins": 0.5}},
        {"budget": 1},
    ],
)
def test_what_is_no_such_campaign_is_left_to_the_schema(content: object) -> None:
    rewrite_older_forms(content, PATH)
