"""The frame of a benchmark that runs on ranks: set-up, warm-up, timed part, result, teardown.

A benchmark is a class with what is its own (`Benchmark`). On every rank `execute` calls its methods
in their order, times the phases that all benchmarks have (import, init, teardown) and collects the
facts about all ranks; on rank 0 it writes the result. The phases in between are the benchmark's
own: ``with self.phases("timed"):``.
"""

import importlib
import platform
import sys
import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, cast

import numpy as np

from harness import facts, import_without, native, ranks, tf32
from harness.native import Metric, Work
from harness.phases import Phases, since_start
from harness.program import EXIT_FAILED, ProgramError, Run, run_program

Arrays = dict[str, np.ndarray]


class Benchmark(ABC):
    """A rank's part in a run. The frame calls the methods in the order below.

    Any of them may raise ProgramError; `close` is called then as well.
    """

    framework: ClassVar[str] = "tensorflow"  # of `ranks.FRAMEWORKS`

    def __init__(self, run: Run, phases: Phases) -> None:
        """Keep the run; the framework is imported, but not started yet."""
        self.run, self.params, self.phases = run, run.params, phases

    @abstractmethod
    def start(self) -> None:
        """Start the ranks, on all of them together (phase init)."""

    def set_up(self) -> None:  # noqa: B027 (optional)
        """Get ready what is measured: data, model."""

    def warm_up(self) -> None:  # noqa: B027 (optional)
        """Do untimed what would disturb the timed part if it were done there first."""

    @abstractmethod
    def measure(self) -> None:
        """Do what is measured; what came of it is kept in attributes."""

    @abstractmethod
    def gather(self) -> dict[str, np.ndarray | None]:
        """Return the arrays of samples.npz from all ranks, ``[..., rank]``, on rank 0; else None.

        Runs on all ranks together (phase teardown), before the result is written.
        """

    def threads(self) -> tuple[int, int]:
        """Return this rank's inter-op and intra-op threads, 0 for the framework's choice."""
        return self.params["inter_threads"], self.params["intra_threads"]

    def convolves(self) -> bool:
        """Return whether most of what is computed are convolutions, and not matrix products: by
        PyTorch's defaults only they may use TF32."""
        return False

    def about_rank(self) -> Any:  # noqa: B027 (optional)
        """Return what else `notes` needs to know of this rank, as JSON."""

    def work(self) -> Work:
        """Return how much was done, on rank 0; nothing where no samples are handled."""
        return {}

    def metrics(self, arrays: Arrays) -> dict[str, Metric]:
        """Return the metrics by name, on rank 0, from what `gather` returned there."""
        return {}

    def notes(self, about_ranks: list[Any]) -> dict[str, Any]:
        """Return what a reader of the numbers should know, on rank 0; `about_rank` of each rank."""
        return {}

    def close(self) -> None:  # noqa: B027 (optional)
        """Clean up, whether the run ended well or not, and however far it came."""


Make = Callable[[Run, Phases], Benchmark]  # a benchmark's class, or what chooses it


def run_benchmark(name: str, arguments: list[str]) -> int:
    """Run the `Program` of a package of the benchmarks; return the exit code."""
    try:
        code = run_program(name, lambda run: execute(run, f"{name}.benchmark"), arguments)
    except Exception:
        ranks.end(1, traceback.format_exc())
        raise
    ranks.end(code)
    return code


def execute(run: Run, module: str) -> None:
    """Run a benchmark on this rank. Raises ProgramError, with its exit code, on known trouble."""
    make = _imported(run, module)
    phases = Phases()
    phases.add("import", since_start())
    benchmark = make(run, phases)
    try:
        with phases("init"):
            benchmark.start()
            if (asked := run.params.get("tf32")) is not None:
                ranks.raise_together(tf32.choose(asked))
        benchmark.set_up()
        benchmark.warm_up()
        benchmark.measure()
        with phases("teardown"):
            arrays = benchmark.gather()
            known = ranks.gather_json(
                [
                    facts.rank_facts(*benchmark.threads(), ranks.first_on_host()),
                    benchmark.about_rank(),
                    tf32.facts(benchmark.convolves()),
                ]
            )
        if ranks.rank() == 0:
            samples = cast(Arrays, arrays)  # of all ranks: they are here
            native.write(run.out, samples, _native(benchmark, samples, known))
    finally:
        benchmark.close()
    ranks.stop()


def _native(benchmark: Benchmark, samples: Arrays, known: list[Any]) -> dict[str, Any]:
    """Return the content of native.json, on rank 0; `known` is what each rank says of itself."""
    facts_of_ranks = [rank for rank, *_ in known]
    notes = benchmark.notes([about for _, about, _ in known])
    exchange = ranks.implementation().exchange() | (notes.get("exchange") or {})
    return {
        "phases": benchmark.phases.seconds,
        "phase_spans": benchmark.phases.spans,
        "metrics": benchmark.metrics(samples),
        "work": benchmark.work(),
        "resources": {
            "hosts": [rank["host"] for rank in facts_of_ranks],
            "slurm_nodes": [rank["slurm_node"] for rank in facts_of_ranks],
        },
        "environment": {
            "ranks": facts_of_ranks,
            "versions": {
                "python": platform.python_version(),
                "numpy": facts.installed("numpy"),
                **ranks.implementation().versions(),
            },
            "variables": facts.variables(ranks.FRAMEWORKS[benchmark.framework][1]),
        },
        "notes": {
            **notes,
            "exchange": exchange,
            "tf32": tf32.of_ranks([numbers for *_, numbers in known]),
        },
    }


def _imported(run: Run, module: str) -> Make:
    """Import the benchmark, and its framework with it. Raises ProgramError where this Python lacks
    either, or has a version of the framework without what the benchmark takes from it."""
    try:
        import_without("pandas", "scipy", "PIL")
        make: Make = importlib.import_module(module).Program
        ranks.use(getattr(make, "framework", "tensorflow"), run.out)
    except ImportError as error:
        traceback.print_exc()
        known = {name: facts.installed(name) for name in ranks.FRAMEWORKS}
        has = ", ".join(f"{name} {version}" for name, version in known.items() if version)
        python = (
            f"{sys.executable}, the Python that the site names{f' (with {has})' if has else ''}"
        )
        raise ProgramError(EXIT_FAILED, f"{python}, lacks what is imported: {error}") from None
    return make
