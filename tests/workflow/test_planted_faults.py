"""Faults in torch_training, through a campaign: the report names each on its first screen."""

import re
from collections.abc import Callable
from html import unescape
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.benchmarks.programs import PYTORCH, warm_socket
from tests.benchmarks.warm import __file__ as warm_file
from tests.conftest import make_project
from tests.fakes.torch_python import TORCH, needs_torch

pytestmark = [pytest.mark.slow, needs_torch]

MS, NEAR_MS, NEAR = 120.0, 2.0, 0.05
ATTEMPTS = 2  # other tests on the same cores may add to the steps of a run
PROGRAM = Path(__file__).with_name("planted_training.py")
PYTHON = """#!/bin/bash
if [[ "$1" == */workflow/benchmarks && "$3" == --run ]]; then
    exec "{python}" -IS "{warm}" "{socket}" "{program}" "$@"
fi
exec "{python}" "$@"
"""
FIXED = {
    "model": "mlp", "layers": 2, "width": 64, "batch_size": 8, "ranks_per_node": 2,
    "inter_threads": 1, "intra_threads": 1, "warmup_batches": 4, "batches": 12,
}  # fmt: skip
# By experiment: what is planted (planted_training.py), counts of ranks, other parameters, and what
# is to be said of it.
TIME = r"([\d.]+) (?:\[[\d., ]+\] )?ms"
CASES: dict[str, tuple[str, list[int], dict[str, Any], str]] = {
    "straggler": (f"forward 1 {MS}", [2], {}, f"Rank 1 computes {TIME} longer in every step"),
    "reader": (
        f"input 1 {MS}", [2], {"input": "staged", "data_samples": 256},
        f"Rank 1 waits {TIME} longer for input in every step",
    ),
    "stage": (
        f"forward 1 {MS}", [2], {"pp": 2, "micro_batches": 2},
        rf"Rank 1 \(pipeline stage 1\) computes {TIME} longer in every step",
    ),
    "collective": (
        f"exchange all {MS}", [1, 2], {},
        f"the largest part is transfer, the exchange of gradients itself, {TIME}",
    ),
}  # fmt: skip

Cards = dict[str, list[str]]


def experiment(planted: str, ranks: list[int], fixed: dict[str, Any], _: str) -> dict[str, Any]:
    """An experiment in which the program is late."""
    return {
        "benchmark": "torch_training", "axes": {"ranks": ranks}, "fixed": FIXED | fixed,
        "scaling": "weak" if len(ranks) > 1 else "none", "env": {"PLANTED": planted}, "repeats": 3,
    }  # fmt: skip


def clear_sentences(page: str) -> Cards:
    """By experiment the sentences of its card, on the first screen, that are marked clear."""
    found = {}
    for section in re.findall(r'<section class="study.*?</section>', page, re.DOTALL):
        card = section.partition("<details")[0]
        name = re.search(r"<h3><a [^>]*>(\w+)</a>", card)
        assert name, card
        items = re.findall(r"<li.*?</li>", card, re.DOTALL)
        texts = [" ".join(unescape(re.sub(r"<[^>]+>", " ", item)).split()) for item in items]
        found[name[1]] = [text.removeprefix("clear ") for text in texts if text[:6] == "clear "]
    return found


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Callable[[int], Cards]:
    """``measured(n)``: what the report of the n-th measurement says."""
    reports: dict[int, Cards] = {}

    def measure(number: int) -> Cards:
        if number not in reports:
            project = make_project(tmp_path_factory.mktemp("planted") / "project")
            socket = warm_socket(PYTORCH)
            text = PYTHON.format(python=TORCH, warm=warm_file, socket=socket, program=PROGRAM)
            python = project.write("late_python", text)
            python.chmod(0o755)
            site = project.path / "config" / "sites" / "local.yaml"
            text = site.read_text()
            assert text.count(" .torch/bin/python") == 1
            site.write_text(text.replace(" .torch/bin/python", f" {python}"))
            experiments = {name: experiment(*case) for name, case in CASES.items()}
            head = {"campaign": "planted", "site": "local", "results": "results"}
            project.write("c.yaml", yaml.safe_dump(head | {"experiments": experiments}))
            done = project.snakemake("--configfile", "c.yaml")
            assert done.returncode == 0, done.stdout + done.stderr
            page = (project.path / "results" / "report.html").read_text()
            reports[number] = clear_sentences(page)
        return reports[number]

    return measure


def check(said: list[str], sentence: str) -> None:
    """What is clear is the fault, with its size, and nothing else; a verdict says no cause."""
    others = [text for text in said if not text.startswith("Run 1 rank")]
    assert len(others) == 1, said
    (text,) = others
    match = re.search(sentence, text)
    assert match, text
    assert float(match[1]) == pytest.approx(MS, abs=max(NEAR_MS, NEAR * MS)), text


@pytest.mark.parametrize("name", CASES)
def test_the_first_screen_names_what_was_planted(
    measured: Callable[[int], Cards], name: str
) -> None:
    for attempt in range(ATTEMPTS):
        try:
            check(measured(attempt)[name], CASES[name][3])
        except AssertionError:
            if attempt == ATTEMPTS - 1:
                raise
        else:
            return
