"""How often a sentence is falsely clear, by kind of noise (tests/acceptance/test_clear.py)."""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.lib.pairs import figure, run
from tests.acceptance import test_clear as gate
from tests.conftest import make_project


def measure(experiments: int = 100) -> Iterator[dict[str, Any]]:
    """Of so many experiments with each kind of noise, in percent."""
    with tempfile.TemporaryDirectory() as folder:
        project = make_project(Path(folder) / "project")
        gate.RATES.write(project)
        gate.EPOCHS.write(project)
        for noise, (_, bound) in gate.NOISES.items():
            made = gate.make(project, noise, [*gate.DESIGNS] * (experiments // len(gate.DESIGNS)))
            false = [rules - design.true for design, rules in made.clear()]
            shares = {part: [said & of for said in false] for part, (_, of) in gate.PARTS.items()}
            for name, said in {"falsely clear": false, **shares}.items():
                most = bound if said is false else None
                yield figure(f"{noise}: {name}", 100 * sum(map(bool, said)) / len(said), "%", most)
            for of in ("mean", "efficiency"):
                yield figure(f"{noise}: {of} covered", 100 * made.covered(of).mean(), "%")


if __name__ == "__main__":
    run(measure)
