"""benchmark.yaml of foreign programs: mistakes, digest, the examples of the documentation."""

import re
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from scalesweep.config.benchmark import Benchmark, load_benchmark
from scalesweep.config.site import load_site
from scalesweep.core.errors import UserError
from tests.conftest import ROOT
from tests.fakes.foreign import SITE


def test_the_main_metric(edited: Callable[..., Benchmark]) -> None:
    assert edited().main_metric == "total_rate"
    assert edited(main_metric="peak").main_metric == "peak"
    keyed = {"pattern": r"(?P<key>\d+) (?P<value>\S+)"}
    assert edited(keyed, main_metric="total_rate_8").main_metric == "total_rate_8"
    with pytest.raises(UserError, match=r"'total_rate' is not one of total_rate_\*, rate, peak"):
        edited(main_metric="total_rate")


def test_a_parameter_that_is_null_is_in_no_word(edited: Callable[..., Benchmark]) -> None:
    text = r"e: extra is null in '--x=\{extra\}' of the command; in benchmark.yaml write \{when"
    plain, under = "--x={extra}", {"when": "ranks > 1", "words": ["--x={extra}"]}
    points: list[dict[str, Any]] = [{"ranks": 1, "extra": "fail"}, {"ranks": 2, "extra": None}]
    for word in (plain, under):
        command = edited(command=[word]).command
        command.check(points[:1], ["extra"], "e")
        with pytest.raises(UserError, match=text):
            command.check(points, ["extra"], "e")
    edited(command=[under]).command.check([{"ranks": 1, "extra": None}], ["extra"], "e")


def test_the_digest_is_of_what_is_read(edited: Callable[..., Benchmark]) -> None:
    def read(*metric: dict[str, object], **keys: str) -> tuple[str, set[str]]:
        benchmark = edited(*metric, **keys)
        assert benchmark.extract is not None
        return benchmark.extract.order["digest"], set(benchmark.kinds.values())

    digest, kinds = read()
    same = {"match": "last", "from": "stdout", "optional": False}
    assert not kinds and read(same, summary="Another one.") == (digest, kinds)
    assert read({"kind": "intensive"}) == (digest, {"intensive"})  # changes no number
    assert read({"unit": "1"})[0] != digest


def test_the_examples_of_the_documentation_load(foreign: Path) -> None:
    pages = ("guide/external_programs.md", "reference/external_examples.md")
    text = "".join((ROOT / "docs" / page).read_text() for page in pages)
    blocks = [textwrap.dedent(block) for block in re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)]
    names = []
    for block in blocks:
        content = yaml.safe_load(block)
        if "name" in content:
            path = foreign / "benchmarks" / content["name"]
            path.mkdir()
            (path / "benchmark.yaml").write_text(block)
            names.append(load_benchmark(content["name"]).name)
        elif "launch" in content and "programs" not in content:  # keys of a benchmark.yaml
            path = foreign / "benchmarks" / names[-1] / "benchmark.yaml"
            path.write_text(yaml.safe_dump({**yaml.safe_load(path.read_text()), **content}))
            assert "torchrun" in load_benchmark(names[-1]).launch["multi"]
        elif "campaign" not in content:
            site = yaml.safe_dump({**SITE, **content})
            (foreign / "sites" / "toy.yaml").write_text(site)
            assert load_site("toy").programs["osu_allreduce"].startswith("/opt")
    assert sorted(names) == ["actors", "my_training", "osu_allreduce"]
