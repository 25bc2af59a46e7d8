"""Studies come out: of what is shipped, and of small files in the form of their sources."""

from argparse import Namespace
from collections.abc import Callable
from pathlib import Path

import pytest

from scalesweep.commands import gallery
from scalesweep.core.errors import UserError
from scalesweep.gallery.study import load_study, study_names
from tests.fakes.gallery import tables_only

Run = Callable[..., list[str]]
SHIPPED = [name for name in study_names() if load_study(name).is_shipped]

# Three rows as llm-foundry prints them, in two tables.
LLM_FOUNDRY = """\
# MPT Training Benchmarks

## H100 80GB BF16
|  Model | SeqLen (T) | # GPUs | GPU | MFU | HFU | MicroBatchSize | GradAccum | GlobalBatchSize | Throughput (T/s) | Throughput (T/s/GPU) | Precision | MP Mode | Sharding Strategy | Activation Checkpointing | NumParams | Model TFLOP | Throughput (S/s) | GlobalBatchSize (T) | Activation CPUOffload |
|  --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |
|  7b | 2048 | 512 | h100_80gb | 42.2 | 42.2 | 6 | 1 | 3072 | 4951479 | 9670 | amp_bf16 | DEFAULT | FULL_SHARD | False | 6658859008 | 417 | 2417 | 6291456 | False |
|  7b | 2048 | 8 | h100_80gb | 46.44 | 46.44 | 6 | 1 | 48 | 85144 | 10643 | amp_bf16 | DEFAULT | FULL_SHARD | False | 6658859008 | 459 | 41 | 98304 | False |
"""  # noqa: E501


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Import a study without its report; what is printed."""
    monkeypatch.chdir(tmp_path)
    tables_only(monkeypatch)

    def call(name: str, source: Path | str = "") -> list[str]:
        gallery.run(Namespace(name=name, source=str(source), results=""))
        return capsys.readouterr().out.splitlines()

    return call


@pytest.mark.slow
@pytest.mark.parametrize("name", SHIPPED)
def test_what_is_shipped_comes_out(run: Run, name: str) -> None:
    lines = run(name)
    assert lines[-2].startswith("published numbers: ") and "differ," not in lines[-2]


def test_llm_foundry_of_a_checkout(run: Run, tmp_path: Path) -> None:
    page = tmp_path / "checkout" / "scripts" / "train" / "benchmarking" / "README.md"
    page.parent.mkdir(parents=True)
    page.write_text(LLM_FOUNDRY)
    assert run("llm_foundry", tmp_path / "checkout")[-2] == "published numbers: 6 of 6 agree"
    page.write_text(LLM_FOUNDRY.replace("| 46.44 | 46.44 |", "| 46.44 | 47.44 |"))
    with pytest.raises(UserError, match="llm_foundry: 1 of 6 published numbers do not come out"):
        run("llm_foundry", page)


def test_without_a_name_the_studies_are_listed(run: Run) -> None:
    lines = run("")
    assert [line.split()[0] for line in lines] == study_names()
