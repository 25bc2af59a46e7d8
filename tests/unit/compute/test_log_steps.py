"""Steps that an external program prints: arrays of their times and spans, the warm-up apart."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from scalesweep.analysis.step_account import account_of
from scalesweep.compute.log_metrics import Metric, Reading, read_metrics
from scalesweep.core.npy import write_npz


def read(folder: Path, text: str, metrics: Sequence[Metric], ranks: int = 1) -> Reading:
    (folder / "stdout.log").write_text(text)
    (folder / "stderr.log").write_text("")
    return read_metrics(metrics, folder, ranks)


def test_steps_and_their_spans_are_arrays_of_steps_and_ranks(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    seconds = 0.01 + rng.exponential(1e-4, (40, 2, 3))  # [step, rank, span]
    seconds[:, 1, 0] += 0.02  # rank 1 waits for its input, rank 0 for rank 1
    seconds[:, 0, 2] += seconds[:, 1].sum(axis=1) - seconds[:, 0].sum(axis=1)
    names = ("input", "compute", "communication")
    metrics = [
        Metric(name, pattern, "s", "lower", "rank", match="all", skip=1)
        for name, pattern in (
            ("step_times", r"^step \d+ (\S+) s"),
            ("span", r" (?P<key>input|compute|communication) (?P<value>\S+)"),
            ("span_between", r" between (\S+)"),
        )
    ]
    for ranks in (1, 2):
        lines = []
        for step, of_ranks in enumerate(seconds[:, :ranks]):
            for rank, spans in enumerate(of_ranks):
                parts = " ".join(f"{n} {s:.6f}" for n, s in zip(names, spans, strict=True))
                label = f"[{rank}]<stdout>:" if ranks > 1 else ""
                lines.append(f"{label}step {step} {spans.sum():.6f} s {parts} between 0.0001")
        found = read(tmp_path, "\n".join(lines) + "\n", metrics, ranks)
        write_npz(tmp_path / "samples.npz", found.arrays)
        with np.load(tmp_path / "samples.npz") as samples:
            assert samples["span_input"].shape == samples["step_times"].shape == (39, ranks)
            # What is skipped is kept as the warm-up.
            skipped = seconds[:1, :ranks].sum(axis=2)
            assert samples["warmup_step_times"] == pytest.approx(skipped, abs=1e-6)
            account = account_of(samples, found.notes, ranks)
        assert account is not None and account.steps == 39
        assert account.elapsed == pytest.approx(seconds[1:, :ranks].sum(axis=2).mean() + 1e-4, 1e-3)
        assert ranks == 1 or account.terms["persistent"] == pytest.approx(0.02, 0.02)
