"""A mistake in a file of YAML is one line with file, key and what is allowed (mistakes.yaml)."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from scalesweep.config.benchmark import load_benchmark
from scalesweep.config.campaign import load_campaign
from scalesweep.config.layout import Layout
from scalesweep.config.memory import point_memory
from scalesweep.config.models import read, settled
from scalesweep.config.shapes import load_shapes
from scalesweep.config.site import load_site
from scalesweep.core.errors import UserError
from tests.fakes.two_benchmarks import BOTH, add_toy_fast
from tests.unit.config.test_derived_parameters import GRID

FOLDER = Path(__file__).parent
TABLE = yaml.safe_load((FOLDER / "mistakes.yaml").read_text())
RULES = yaml.safe_load((FOLDER / "rules.yaml").read_text())
# Which file a line names: a campaign, if it is none of these.
FILES = {
    **dict.fromkeys(("metric", "benchmark"), "foreign/benchmark.yaml"),
    **dict.fromkeys(("shapes", "model", "memory", "layout"), "b.yaml"),
    "site": "toy.yaml",
}
KNOWN: dict[str, Any] = dict.fromkeys(("ranks", "dp", "tp", "pp", "cp", "ep", "width", "size"), 1)
SMALL = {"model": "transformer", "width": 64, "heads": 4, "sequence": 16, "vocabulary": 100,
         "batch_size": 4, "ranks_per_node": 2}  # fmt: skip


class Reader:
    """Reads a good file in which a mistake was made, by the kind of file."""

    def __init__(self, request: pytest.FixtureRequest) -> None:
        self.get = request.getfixturevalue

    @property
    def toy(self) -> Path:
        path: Path = self.get("toy")
        return path

    def campaign(self, keys: str, head: str = "campaign: test\nsite: toy") -> None:
        self.get("campaign_of")(keys, f"{head}\n")

    def load(self, text: str) -> None:
        path = self.get("tmp_path") / "campaign.yaml"
        path.write_text(text)
        load_campaign(path)

    def experiment(self, keys: str) -> None:
        self.campaign(keys)

    def order(self, keys: str) -> None:
        self.campaign("axes: {ranks: [1, 2], size: [1, 3, 5]}", f"campaign: c\nsite: toy\n{keys}\n")

    def derived(self, swap: list[str]) -> None:
        self.campaign(swapped(GRID, swap))

    def head(self, keys: str) -> None:
        self.campaign("repeats: 1", keys)

    def several(self, swap: list[str]) -> None:
        add_toy_fast(self.toy / "benchmarks")
        self.load(f"campaign: c\nsite: toy\nexperiments:\n  both:{swapped(BOTH, swap)}")

    def second(self, swap: list[str]) -> None:
        add_toy_fast(self.toy / "benchmarks")
        file = self.toy / "benchmarks" / "toy_fast" / "benchmark.yaml"
        file.write_text(swapped(file.read_text(), swap))
        self.load(f"campaign: c\nsite: toy\nexperiments:\n  both:{BOTH}")

    def gpus(self, keys: str) -> None:
        for file, line in (("benchmarks/toy/benchmark.yaml", "gpus: size\n"),
                           ("sites/toy.yaml", "gpus_per_node: 4\n")):  # fmt: skip
            with (self.toy / file).open("a") as text:
                text.write(line)
        self.campaign(keys)

    def metric(self, keys: dict[str, Any]) -> None:
        self.get("edited")(keys)

    def benchmark(self, keys: dict[str, Any]) -> None:
        self.get("edited")(**keys)

    def site(self, keys: str) -> None:
        content = {"site": "toy", "nodes": 1, "launch": {"single": [], "multi": []}}
        path = self.toy / "sites" / "toy.yaml"
        path.write_text(yaml.safe_dump(content | yaml.safe_load(keys)))
        load_site("toy")

    def shapes(self, keys: dict[str, Any]) -> Any:
        return load_shapes(keys, {*KNOWN, "kind"}, Path("b.yaml"))

    def model(self, keys: dict[str, Any]) -> None:
        model = {"layers": 12, "width": "width", "sequence": 2048} | keys
        self.shapes({"transformer": model}).transformer.at({"width": 768, "kind": "big"}, "b.yaml")

    def memory(self, keys: dict[str, Any]) -> None:
        torch = load_benchmark("torch_training")
        sized = torch.model_copy(update={"memory": self.shapes({"memory": keys}).memory})
        point_memory(sized, {**torch.defaults, "ranks": 4, "model": "transformer"}, "b.yaml")

    def layout(self, keys: dict[str, Any]) -> None:
        whole = {"parameters": ["tp", "pp"], "doc": "", **keys}
        layout = settled(read(Layout, whole, "b.yaml", "layout"), "b.yaml: layout.", KNOWN)
        layout.check(KNOWN, "b.yaml")

    def torch(self, keys: dict[str, Any]) -> None:
        fixed = {name: value for name, value in SMALL.items() if name not in keys.get("axes", {})}
        own = {"fixed": fixed | keys.get("fixed", {})} if "benchmark" not in keys else {}
        experiment = {"benchmark": "torch_training", "scaling": "model", **keys, **own}
        content = {"campaign": "c", "site": "local", "experiments": {"e": experiment}}
        self.load(yaml.safe_dump(content, sort_keys=False))


def swapped(text: str, swap: list[str]) -> str:
    """A text with one part of it replaced."""
    assert swap[0] in text
    return text.replace(*swap)


@pytest.mark.parametrize(
    ("kind", "case"), [(kind, case) for kind, cases in TABLE.items() for case in cases], ids=repr
)
def test_a_mistake_is_one_line(
    request: pytest.FixtureRequest, kind: str, case: dict[str, Any]
) -> None:
    read = getattr(Reader(request), "head" if kind == "campaign" else kind)
    with pytest.raises(UserError) as error:
        read(case.get("set", case.get("swap")))
    message = str(error.value)
    assert case["line"] in message and FILES.get(kind, "campaign.yaml") in message
    assert "\n" not in message


def test_all_mistakes_are_told_at_once(toy: Path) -> None:
    file = toy / "c.yaml"
    for text, places in (
        ("campaign: 3\nsite: toy\norder: {sead: 0}\n"
         "experiments: {e: {exclude: [size >], repeats: 0, axis: {}}}",
         ["campaign: 3", "order: unknown key 'sead'", "e: unknown key 'axis'",
          "e.exclude[0].when: 'size >' is not an expression", "e.repeats: 0"]),
        ("campaign: c\nsite: toy\nexperiments: {e: {benchmark: tyo}, d: {benchmark: toy, "
         "axes: {sise: 1}}}", ["e.benchmark: no", "d.axes.sise"]),
    ):  # fmt: skip
        file.write_text(text)
        with pytest.raises(UserError) as error:
            load_campaign(file)
        lines = str(error.value).split("\nerror: ")
        assert len(lines) == len(places) and all(line.startswith(f"{file}: ") for line in lines)
        assert all(place in line for line, place in zip(lines, places, strict=True)), lines


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
