"""Keys under names that they had once."""

from pathlib import Path

import pytest

from scalesweep.config.renamed_keys import rename_keys
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
