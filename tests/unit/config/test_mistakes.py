"""A mistake in a file of YAML is one line with file, key and what is allowed (mistakes.yaml)."""

from collections.abc import Callable
from pathlib import Path
from textwrap import indent
from typing import Any

import pytest
import yaml

from scalesweep.config.benchmark import load_benchmark
from scalesweep.config.campaign import load_campaign
from scalesweep.config.shapes import load_shapes
from scalesweep.config.site import load_site
from scalesweep.core.errors import UserError
from scalesweep.planning.planned_shapes import point_memory
from scalesweep.smk.config_keys import read_options
from tests.fakes.two_benchmarks import BOTH, add_toy_fast
from tests.unit.config.test_derived_parameters import GRID

FOLDER = Path(__file__).parent
TABLE = yaml.safe_load((FOLDER / "mistakes.yaml").read_text())
RULES = yaml.safe_load((FOLDER / "rules.yaml").read_text())
# Which file a line names: a campaign, if it is none of these.
FILES = {
    **dict.fromkeys(("metric", "benchmark"), "foreign/benchmark.yaml"),
    **dict.fromkeys(("shapes", "model", "memory"), "b.yaml"),
    "site": "toy.yaml",
    "overrides": "--config ",
}
KNOWN: dict[str, Any] = dict.fromkeys(("ranks", "dp", "tp", "pp", "cp", "ep", "width", "size"), 1)


def swapped(text: str, swap: list[str]) -> str:
    """A text with one part of it replaced."""
    assert swap[0] in text
    return text.replace(*swap)


def experiment(keys: str) -> str:
    return f"{HEAD}experiments:\n  e:\n    benchmark: toy\n{indent(keys, '    ')}"


HEAD = "campaign: c\nsite: toy\n"
# The campaign in which a mistake was made.
CAMPAIGNS: dict[str, Callable[[Any], str]] = {
    "experiment": experiment,
    "gpus": experiment,
    "campaign": lambda keys: f"{keys}\nexperiments: {{e: {{benchmark: toy}}}}",
    "order": lambda keys: experiment("axes: {ranks: [1, 2], size: [1, 3, 5]}") + f"\n{keys}",
    "derived": lambda swap: experiment(swapped(GRID, swap)),
    "several": lambda swap: f"{HEAD}experiments:\n  both:{swapped(BOTH, swap)}",
    "second": lambda _: f"{HEAD}experiments:\n  both:{BOTH}",
}


def read_shapes(keys: dict[str, Any]) -> Any:
    return load_shapes(keys, {*KNOWN, "kind"}, Path("b.yaml"))


def read_model(keys: dict[str, Any]) -> None:
    model = {"layers": 12, "width": "width", "sequence": 2048} | keys
    read_shapes({"transformer": model}).transformer.at({"width": 768, "kind": "big"}, "b.yaml")


def read_memory(keys: dict[str, Any]) -> None:
    benchmark = load_benchmark("torch_training")
    sized = benchmark.model_copy(update={"memory": read_shapes({"memory": keys}).memory})
    point_memory(sized, {**benchmark.defaults, "ranks": 4, "model": "transformer"}, "b.yaml")


READ = {"shapes": read_shapes, "model": read_model, "memory": read_memory,
        "overrides": read_options}  # fmt: skip


def read_mistake(request: pytest.FixtureRequest, kind: str, given: Any) -> None:
    """Read a good file in which a mistake was made, by the kind of file."""
    if kind in READ:
        READ[kind](given)
    elif kind in ("metric", "benchmark"):
        edited = request.getfixturevalue("edited")
        edited(given) if kind == "metric" else edited(**given)
    else:
        folder: Path = request.getfixturevalue("toy")
        change_toy(folder, kind, given)
        if kind == "site":
            load_site("toy")
            return
        (folder / "campaign.yaml").write_text(CAMPAIGNS[kind](given))
        load_campaign(folder / "campaign.yaml")


def change_toy(folder: Path, kind: str, given: Any) -> None:
    """Write what a kind of mistakes needs beside the toy benchmark and its site."""
    site, benchmark = folder / "sites/toy.yaml", folder / "benchmarks/toy/benchmark.yaml"
    add_toy_fast(folder / "benchmarks")
    if kind == "site":
        content = {"site": "toy", "nodes": 1, "launch": {"single": [], "multi": []}}
        site.write_text(yaml.safe_dump(content | yaml.safe_load(given)))
    if kind == "gpus":
        site.write_text(f"{site.read_text()}gpus_per_node: 4\n")
        benchmark.write_text(f"{benchmark.read_text()}gpus: size\n")
    if kind == "second":
        file = folder / "benchmarks" / "toy_fast" / "benchmark.yaml"
        file.write_text(swapped(file.read_text(), given))


@pytest.mark.parametrize(
    ("kind", "case"), [(kind, case) for kind, cases in TABLE.items() for case in cases], ids=repr
)
def test_a_mistake_is_one_line(
    request: pytest.FixtureRequest, kind: str, case: dict[str, Any]
) -> None:
    with pytest.raises(UserError) as error:
        read_mistake(request, kind, case.get("set", case.get("swap")))
    message = str(error.value)
    assert case["line"] in message and FILES.get(kind, "campaign.yaml") in message
    assert "\n" not in message


def test_all_mistakes_are_told_at_once(toy: Path) -> None:
    file = toy / "c.yaml"
    for text, places in (
        ("campaign: 3\nsite: toy\ntrack: {builds: a}\n"
         "experiments: {e: {exclude: [size >], repeats: 0, axis: {}}}",
         ["campaign: 3", "track: unknown key 'builds'", "e: unknown key 'axis'"]),
        ("campaign: c\nsite: toy\nexperiments: {e: {benchmark: tyo}, d: {benchmark: toy, "
         "axes: {sise: [1]}}}", ["e.benchmark: no", "d.axes.sise"]),
    ):  # fmt: skip
        file.write_text(text)
        with pytest.raises(UserError) as error:
            load_campaign(file)
        lines = str(error.value).split("\nerror: ")
        assert len(lines) == len(places) and all(line.startswith(f"{file}: ") for line in lines)
        assert all(place in line for line, place in zip(lines, places, strict=True)), lines
    # What two experiments say of one file is a line for each mistake in it.
    benchmark = toy / "benchmarks" / "toy" / "benchmark.yaml"
    wrong = yaml.safe_load(benchmark.read_text()) | {"version": "x", "summary": 3}
    benchmark.write_text(yaml.safe_dump(wrong))
    file.write_text(f"{HEAD}experiments: {{e: {{benchmark: toy}}, d: {{benchmark: toy}}}}")
    with pytest.raises(UserError) as error:
        load_campaign(file)
    keys = [message.split(": ")[1] for message in error.value.messages]
    assert keys == ["version", "summary"]


@pytest.mark.parametrize(
    ("name", "case"),
    [(name, case) for name, of in RULES.items() for case in of["refused"]],
    ids=repr,
)
def test_points_that_shipped_benchmarks_refuse(name: str, case: dict[str, Any]) -> None:
    benchmark = load_benchmark(name)
    with pytest.raises(UserError) as error:
        benchmark.check_point({**benchmark.defaults, **RULES[name]["base"], **case["set"]}, "e")
    assert case["line"] in str(error.value)


def test_points_that_shipped_benchmarks_take_and_their_work() -> None:
    for name, of in RULES.items():
        benchmark = load_benchmark(name)
        for case in of["work"]:
            point = {**benchmark.defaults, **of["base"], **case["set"]}
            benchmark.check_point(point, "e")
            if "mesh" in case:
                assert benchmark.mesh is not None
                assert [*(benchmark.mesh.at(point) or {}).values()] == case["mesh"]
            unit = point["batch_size"] * point["batches"] if name == "torch_training" else 1
            assert benchmark.total_work(point) == case["samples"] * unit
