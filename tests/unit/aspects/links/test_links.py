"""Links between ranks: the rule by simulation, table, matrix and what is said, with hosts."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scalesweep.aspects.links.figure import link_figures
from scalesweep.aspects.links.table import BETWEEN, WITHIN, Pair, links_of, slow_links
from scalesweep.experiment.results import ExperimentResults
from scalesweep.table.declared import columns_of
from tests.fakes.epoch_study import Study
from tests.fakes.finding_rows import only

HOSTS = [f"n{number:02}" for number in range(8)]


def latencies(
    seed: int, count: int = 8, slow: Mapping[tuple[int, int], float] | None = None,
    hosts: Mapping[int, float] | None = None, spread: float = 0.06,
) -> Any:  # fmt: skip
    """``[repeat, rank, rank]`` of 27 µs; noise of repeats only adds, and is heavy-tailed."""
    draw = np.random.default_rng(seed)
    base = 27e-6 * np.exp(spread * draw.standard_normal((count, count)))
    for (a, b), factor in (slow or {}).items():
        base[min(a, b), max(a, b)] *= factor
    for host, factor in (hosts or {}).items():
        base[host, host + 1 :] *= factor
        base[:host, host] *= factor
    noise = 1 + 0.05 * draw.pareto(2.5, (5, count, count))
    found = np.triu(base * noise, 1)
    return found + found.transpose(0, 2, 1)


def test_false_alarms_of_healthy_networks_are_rare_and_a_planted_link_is_found() -> None:
    """At most 5 % of 120 networks of 8 hosts name any; a link of 1.6 times is found in all."""
    alarms = found = others = 0
    for seed in range(120):
        alarms += any(links_of(latencies(seed).min(axis=0), HOSTS)["slow"])
        planted = links_of(latencies(seed, slow={(2, 5): 1.6}).min(axis=0), HOSTS)
        every = zip(planted["rank_a"], planted["rank_b"], planted["slow"], strict=True)
        named = {(a, b) for a, b, slow in every if slow}
        found += (2, 5) in named
        others += bool(named - {(2, 5)})
    assert alarms <= 9 and others <= 9 and found >= 115


def test_links_are_compared_with_those_of_their_class() -> None:
    """Two ranks on each of five hosts: within a host a third of the time, which is not fast."""
    hosts = [HOSTS[rank // 2] for rank in range(10)]
    seconds = np.full((10, 10), 30e-6)
    for rank in range(0, 10, 2):
        seconds[rank, rank + 1] = 10e-6
    seconds[3, 8] = 90e-6
    columns = links_of(seconds, hosts)
    assert [(columns["link"] == kind).sum() for kind in (WITHIN, BETWEEN)] == [5, 40]
    (place,) = np.flatnonzero(columns["slow"])
    assert (columns["host_a"][place], columns["host_b"][place]) == ("n01", "n04")
    assert columns["times"][place] == pytest.approx(3)
    assert set(links_of(seconds, [None] * 10)["link"]) == {BETWEEN}


def study_of(folder: Path, runs: Sequence[Any], hosts: Sequence[str]) -> ExperimentResults:
    """An experiment of one point whose runs have left these matrices."""
    folder.mkdir(exist_ok=True)
    study = Study(folder, "links", "none")
    study.experiment |= {"main_metric": "latency", "fixed": {"ranks": len(hosts)}}
    meaning = {"value": 1e-5, "unit": "s", "better": "lower", "scope": "total"}
    for seconds in runs:
        study.run(
            {"ranks": len(hosts)}, None, arrays={"link_seconds": seconds}, work={},
            metrics={"latency": meaning, "slowest_latency": meaning},
            resources={"hosts": list(hosts), "slurm_nodes": [None] * len(hosts)},
        )  # fmt: skip
    return study.results()


def test_a_slow_link_is_named_by_its_hosts_and_framed(tmp_path: Path) -> None:
    runs = [latencies(seed, slow={(2, 5): 3.0}) for seed in range(2)]
    study = study_of(tmp_path, runs, HOSTS)
    frame = study.tables["links"]
    assert len(frame) == 2 * 28
    assert [item.name for item in columns_of(Pair)] == list(frame)
    finding = only(slow_links(study))
    assert finding.state == "clear"
    assert finding.sentence.startswith("Slow links between hosts: the link between n02 and n05 ")
    assert " times the median of 28." in finding.sentence
    (drawing,) = link_figures(study)
    (axes, *_) = drawing.figure.axes
    assert sum(patch.get_linewidth() > 2 for patch in axes.patches) == 2  # the link, both ways
    assert axes.get_yticklabels()[2].get_text() == "2 n02"


def test_a_slow_host_is_named_instead_of_its_links(tmp_path: Path) -> None:
    study = study_of(tmp_path, [latencies(seed, hosts={3: 2.5}) for seed in range(3)], HOSTS)
    finding = only(slow_links(study))
    assert finding.sentence.startswith("Slow links between hosts: host n03 takes 2")


def test_healthy_few_and_single_are_said_to_be_so(tmp_path: Path) -> None:
    finding = only(slow_links(study_of(tmp_path / "a", [latencies(1)], HOSTS)))
    assert finding.sentence.startswith("None of 28 links between hosts is slow: at most 1")
    few = study_of(tmp_path / "b", [latencies(1, 3, slow={(0, 1): 9.0})], HOSTS[:3])
    assert only(slow_links(few)).sentence.endswith("are not judged: too few of them.")
    assert len(link_figures(few)) == 1
    assert link_figures(study_of(tmp_path / "two", [latencies(1, 2)], HOSTS[:2])) == []
    # In a single run, and in one of three: it was the run.
    runs = [latencies(1, slow={(0, 1): 9.0}), latencies(2), latencies(3)]
    for count, state in ((1, "open"), (3, "note")):
        (finding,) = slow_links(study_of(tmp_path / state, runs[:count], HOSTS))
        assert finding.state == state
    # On one host the ranks are named.
    here = study_of(tmp_path / "e", [latencies(s, slow={(0, 1): 9.0}) for s in (1, 2)], ["n"] * 8)
    assert "the link between rank 0 on n and rank 1 on n" in only(slow_links(here)).sentence


def test_a_network_of_two_kinds_of_links_is_no_broken_one(tmp_path: Path) -> None:
    """Two groups of four hosts behind switches: 16 of 28 links are longer ones."""
    far = {(a, b): 1.8 for a in range(3) for b in range(3, 6)}
    finding = only(slow_links(study_of(tmp_path, [latencies(s, slow=far) for s in (1, 2)], HOSTS)))
    assert finding.state == "note" and "too many of them are slow" in finding.sentence


@pytest.mark.parametrize("array", [np.ones((2, 8, 7)), np.ones((8, 8)), np.zeros((2, 8, 8))])
def test_runs_whose_times_cannot_be_used_are_left_out(
    tmp_path: Path, array: Any, caplog: pytest.LogCaptureFixture
) -> None:
    assert study_of(tmp_path, [array], HOSTS).tables.get("links") is None
    assert caplog.text.count("left out of the table of links") == 1 and "links-0" in caplog.text
