"""What executing runs costs beyond their programs: CPU seconds of 1,000 trivial runs, three ways.

In one run: `snakemake` executes a campaign of the tests' toy benchmark, whose program writes a few
numbers by NumPy, the least that a benchmark of ours leaves; a bash loop starts the same launchers
(no Snakemake); and a bash loop starts the same programs (nothing around them). User and system
time of all processes; half of each loop comes before Snakemake, half after it, because a machine
drifts. The chain behind the runs (plan to report) is not part of it.

Then the launcher's own start: from the start of its process until that of its program, which tells
when it was; next to it an interpreter that does nothing. With the bytecode that the first launch
has left, and without any.

    python -m bench.execute [--runs N] [--starts N]
"""

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from bench.lib.pairs import figure, run
from bench.lib.projects import Cost, campaign, environment, project, snakemake, timed
from scalesweep.compute.job_spec import Order, read_order, write_order

BOUND, START_BOUND_MS = 3.0, 100.0
# Orders and run files of all runs, as the launcher would get and write them, in separate folders.
PREPARE = """
import json, sys
from pathlib import Path
from scalesweep.config.campaign import load_campaign
from scalesweep.compute.job_spec import write_order
from scalesweep.jobs.run_spec import run_spec
campaign = load_campaign(Path(sys.argv[1]))
for number, (experiment, run) in enumerate(campaign.unique_runs().values()):
    order = run_spec(campaign, experiment, run)
    folder = Path("launchers", f"{number}", run.run_id)
    write_order(Path("launchers", f"{number}.json"), {**order, "folder": str(folder)})
    out = Path("programs", str(number)).absolute()
    out.mkdir(parents=True)
    keys = ("run_id", "benchmark", "version", "params", "repeat", "data", "node_local")
    run_file = {**{key: order[key] for key in keys}, "out": str(out)}
    (out / "run.json").write_text(json.dumps({**run_file, "time_limit_s": order["time_limit_s"]}))
"""
LOOPS = {
    "launchers": "{python} workflow/scripts/step.py launch --order launchers/$i.json"
    " 2>&1 | tee launchers/$i.log",
    "programs": "{python} workflow/benchmarks/toy/main.py --run programs/$i/run.json"
    " > programs/$i/stdout.log 2> programs/$i/stderr.log",
}


def loop(folder: Path, way: str, first: int, last: int) -> Cost:
    """Run numbers ``first`` to ``last`` one after the other in a bash loop."""
    body = LOOPS[way].format(python=sys.executable)
    script = f"set -eo pipefail; for i in $(seq {first} {last}); do {body}; done"
    return timed(["bash", "-c", script], folder)


def execute(scratch: Path, runs: int) -> dict[str, Any]:
    """CPU and wall seconds of each way, in all; halves of the loops around Snakemake."""
    folder = project(scratch / "project")
    campaign(folder, "runs.yaml", points=runs)
    prepare = [sys.executable, "-c", PREPARE, "runs.yaml"]
    subprocess.run(prepare, cwd=folder, check=True, env=environment())
    words = ("-c1", "--configfile", "runs.yaml", "--until", "run")
    timed(snakemake(*words, "-n"), folder)  # bytecode and the page cache
    parts: dict[str, list[Cost]] = {way: [] for way in ("snakemake", *LOOPS)}
    for way in LOOPS:
        parts[way].append(loop(folder, way, 0, runs // 2 - 1))
    parts["snakemake"].append(timed(snakemake(*words), folder))
    for way in LOOPS:
        parts[way].append(loop(folder, way, runs // 2, runs - 1))
    for pattern in ("results/runs/local/*/record.json", "launchers/*/*/record.json"):
        assert len(list(folder.glob(pattern))) == runs, pattern
    return {
        way: {"cpu_s": sum(c.cpu_s for c in costs), "wall_s": sum(c.wall_s for c in costs)}
        for way, costs in parts.items()
    }


def start_ms(order: Order, work: Path, launcher: Path, env: dict[str, str]) -> float:
    """Milliseconds from the start of a launcher's process to that of its program, `date`."""
    with tempfile.TemporaryDirectory(dir=work) as name:
        folder = Path(name, order["run_id"])
        file = Path(name, "order.json")
        changed = order.copy()
        changed.update({"folder": str(folder), "argv": ["date", "+%s.%N"]})
        write_order(file, changed)
        command = [sys.executable, str(launcher), "launch", "--order", str(file)]
        began = time.time()
        subprocess.run(command, cwd=work, env=env, capture_output=True, check=False)
        return 1000 * (float((folder / "attempt-1" / "stdout.log").read_text()) - began)


def interpreter_ms(env: dict[str, str]) -> float:
    """Milliseconds of an interpreter that does nothing."""
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", "pass"], env=env, check=True)
    return 1000 * (time.perf_counter() - began)


def start_times(scratch: Path, rounds: int) -> dict[str, float]:
    """Medians of interleaved starts, in milliseconds."""
    order = read_order(scratch / "project" / "launchers" / "0.json")
    kept = environment()
    # Two copies: bytecode of this project is in the first only, that of Python itself in both.
    bare = project(scratch / "bare")
    for folder in list(bare.rglob("__pycache__")):
        shutil.rmtree(folder)
    unkept = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    script = Path("workflow", "scripts", "step.py")
    ways: dict[str, Callable[[], float]] = {
        "launcher": lambda: start_ms(order, scratch, scratch / "project" / script, kept),
        "launcher without bytecode": lambda: start_ms(order, scratch, bare / script, unkept),
        "interpreter": lambda: interpreter_ms(kept),
    }
    times: dict[str, list[float]] = {way: [] for way in ways}
    for _ in range(rounds):
        for way, start in ways.items():
            times[way].append(start())
    return {way: statistics.median(values) for way, values in times.items()}


def measure(runs: int = 1000, starts: int = 41) -> Iterator[dict[str, Any]]:
    """Of so many runs, in hundreds, and medians of so many starts."""
    with tempfile.TemporaryDirectory() as name:
        costs = execute(Path(name), runs)
        began = start_times(Path(name), starts)
    for way in ("programs", "launchers"):
        for key, clock, bound in (("cpu_s", "CPU", BOUND), ("wall_s", "wall", None)):
            ratio = costs["snakemake"][key] / costs[way][key]
            yield figure(f"{runs:,} runs, {clock}, to a bash loop of the {way}", ratio, "x", bound)
    beyond = (costs["snakemake"]["cpu_s"] - costs["programs"]["cpu_s"]) / runs
    yield figure("a run beyond its program, CPU", 1000 * beyond, "ms")
    yield figure("launcher's start", began["launcher"], "ms", START_BOUND_MS)
    for way in ("launcher without bytecode", "interpreter"):
        yield figure(f"{way}'s start", began[way], "ms")


if __name__ == "__main__":
    run(measure)
