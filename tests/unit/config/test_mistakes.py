"""A mistake in a file of YAML is one line with file, key and what is allowed (mistakes.yaml)."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from scalesweep.config.benchmark import Benchmark
from scalesweep.config.campaign import Campaign, load_campaign
from scalesweep.config.site import load_site
from scalesweep.core.errors import UserError

TABLE = yaml.safe_load(Path(__file__).with_name("mistakes.yaml").read_text())
FILES = {"metric": "foreign/benchmark.yaml", "benchmark": "foreign/benchmark.yaml",
         "site": "toy.yaml"}  # fmt: skip


@pytest.fixture
def read(request: pytest.FixtureRequest, toy: Path) -> Callable[[str, Any], object]:
    """Read a good file with these keys set."""
    campaign_of: Callable[..., Campaign] = request.getfixturevalue("campaign_of")
    edited: Callable[..., Benchmark] = request.getfixturevalue("edited")

    def site(keys: str) -> object:
        path = toy / "sites" / "toy.yaml"
        content = {"site": "toy", "nodes": 1, "launch": {"single": [], "multi": []}}
        path.write_text(yaml.safe_dump(content | yaml.safe_load(keys)))
        return load_site("toy")

    readers: dict[str, Callable[[Any], object]] = {
        "experiment": campaign_of,
        "campaign": lambda head: campaign_of("repeats: 1", f"{head}\n"),
        "metric": edited,
        "benchmark": lambda changes: edited(**changes),
        "site": site,
    }
    return lambda kind, keys: readers[kind](keys)


@pytest.mark.parametrize(
    ("kind", "case"), [(kind, case) for kind, cases in TABLE.items() for case in cases], ids=repr
)
def test_a_mistake_is_one_line(
    read: Callable[[str, Any], object], kind: str, case: dict[str, Any]
) -> None:
    with pytest.raises(UserError) as error:
        read(kind, case["set"])
    message = str(error.value)
    assert case["line"] in message and FILES.get(kind, "campaign.yaml") in message
    assert "\n" not in message


def test_all_mistakes_are_told_at_once(toy: Path) -> None:
    file = toy / "c.yaml"
    for text, places in (
        ("campaign: 3\nsite: toy\nexperiments: {e: {benchmark: toy, repeats: 0}}",
         ["campaign: 3", "e.repeats: 0"]),
        ("campaign: c\nsite: toy\nexperiments: {e: {benchmark: tyo}, d: {benchmark: toy, "
         "axes: {sise: 1}}}", ["e.benchmark: no", "d.axes.sise"]),
    ):  # fmt: skip
        file.write_text(text)
        with pytest.raises(UserError) as error:
            load_campaign(file)
        lines = str(error.value).split("\nerror: ")
        assert len(lines) == len(places) and all(line.startswith(f"{file}: ") for line in lines)
        assert all(place in line for line, place in zip(lines, places, strict=True)), lines
