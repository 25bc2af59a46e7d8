"""Hostile result folders: the folders of runs are changed by mutations, then all is reported.

``make soak`` calls this for 2,000 folders, the tests for fewer. Whatever lies in a run's folder,
the report is written within its limit, every run that was not touched is in it with its numbers,
and one that was is either taken or a hole with its cause. A seed decides the mutations; a violation
names it.
"""

import argparse
import contextlib
import gc
import io
import random
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from scalesweep.commands import figures, page, summarise, tables
from scalesweep.core import own_files
from scalesweep.core.causes import Cause
from scalesweep.core.plan_format import read_plan, write_plan_file
from scalesweep.planning.plan import plan_csv
from scalesweep.state.run_state import scan
from tests.fakes.training import SITE
from tests.soak.bystanders import Bystanders
from tests.soak.campaign import ViolationError
from tests.soak.run_mutations import MUTATIONS
from tests.soak.whole_runs import GOOD, POINTS, TOUCHED, make_base

LIMIT_S = 120.0
BATCH = POINTS * TOUCHED  # folders that are changed together


def report_of(root: Path, drawn: bool = False) -> None:
    """What a call of Snakemake makes of the runs below ``root``: summary, tables and page.

    Without ``drawn`` there are no figures.
    """
    runs = root / "runs" / SITE
    plan = read_plan(root / "plan.json")
    every = [run for entry in plan["experiments"] for run in entry["runs"]]
    states = scan(runs, [run["run_id"] for run in every], quarantine=True, verify=True)
    for run in every:
        state = states[run["run_id"]]
        run["status"], run["cause"], run["detail"] = state.status, state.cause, state.detail
    plan.pop("digest", None)
    write_plan_file(root / "plan.json", plan)
    (root / "plan.csv").write_text(plan_csv(plan), encoding="utf-8")
    common = ["--plan", str(root / "plan.json")]
    summary = ["--summary", str(root / "summary.parquet")]
    _call(summarise, *common, "--runs", str(runs), "--out", summary[1])
    made = ["--tables", str(root / "tables"), "--figures", str(root / "figures")]
    _call(tables, *common, *summary, "--runs", str(runs), "--out", made[1])
    (root / "figures").mkdir(exist_ok=True)
    (root / "figures" / "index.json").write_text("[]")
    if drawn:
        _call(figures, *common, *made[:2], "--out", made[3])
    out = str(root / "report.html")
    _call(page, *common, *summary, *made, "--runs", str(runs), "--out", out)


def _call(verb: Any, *words: str) -> None:
    parser = argparse.ArgumentParser()
    verb.add_arguments(parser)
    threshold = gc.get_threshold()
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            verb.run(parser.parse_args(words))
    finally:  # a verb has its process for itself
        gc.enable()
        gc.unfreeze()
        gc.set_threshold(*threshold)


def baseline(root: Path) -> dict[str, dict[str, Any]]:
    """Numbers of every run in the tables, by id."""
    own_files.mark(root)
    report_of(root)
    return numbers(root)


def numbers(root: Path) -> dict[str, dict[str, Any]]:
    """Rows of the tables `runs`, by run: status, cause and what was measured."""
    found = {}
    for path in sorted((root / "tables").glob("*/runs.parquet")):
        for row in pd.read_parquet(path).to_dict("records"):
            found[str(row["run_id"])] = {str(k): v for k, v in row.items() if k != "outlier"}
    return found


class Batch:
    """A results folder some of whose runs are mutated."""

    def __init__(self, base: Path, known: Mapping[str, Mapping[str, Any]], root: Path) -> None:
        self.root, self.known = root, known
        shutil.copytree(base, root)
        self._bystanders = Bystanders(root)
        self._bystanders.put()
        plan = read_plan(root / "plan.json")
        self.touched = [
            run["run_id"]
            for entry in plan["experiments"]
            for run in entry["runs"]
            if run["repeat"] >= GOOD
        ]

    def check(self, done: Mapping[str, str], drawn: bool) -> Counter[str]:
        """Report, and count what became of the mutated runs; raises ViolationError."""
        began = time.monotonic()
        try:
            with alarm(LIMIT_S):
                report_of(self.root, drawn)
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            traceback.print_exc()
            raise ViolationError(f"no report: {type(error).__name__}: {error}") from error
        took = time.monotonic() - began
        if gone := self._bystanders.lost():
            raise ViolationError(f"files of the user are lost: {', '.join(gone)}")
        found, page = numbers(self.root), (self.root / "report.html").read_text("utf-8")
        became: Counter[str] = Counter()
        for run_id, before in self.known.items():
            now = found.get(run_id)
            if now is None:
                raise ViolationError(f"{run_id} is not in the table of runs")
            if run_id in done:
                self._check_touched(run_id, now, page)
                became[now["cause"] or now["status"]] += 1
            else:
                lost = {k: (v, now.get(k)) for k, v in before.items() if not _same(v, now.get(k))}
                if lost:
                    raise ViolationError(f"the good run {run_id} has changed: {lost}")
        became["seconds"] = round(took)
        return became

    def _check_touched(self, run_id: str, row: Mapping[str, Any], page: str) -> None:
        if row["status"] in ("done", "new", "unsupported"):
            return
        state = scan(self.root / "runs" / SITE, [run_id], remember=False)[run_id]
        # One that was a link to the record of another is new once that is set aside.
        told = state.status == "new" or (state.cause and "\n" not in state.detail.strip())
        if not row["cause"] or not told:
            raise ViolationError(f"{run_id} has failed without a cause in a line: {state}")
        if (
            row["cause"] in (Cause.BAD_RECORD, Cause.UNUSABLE_RECORD)
            and str(row["cause"]) not in page
        ):
            raise ViolationError(f"{run_id}: {row['cause']} is not on the page")


def _same(one: Any, other: Any) -> bool:
    return one == other or (pd.isna(one) and pd.isna(other))


@contextlib.contextmanager
def alarm(seconds: float) -> Iterator[None]:
    """Raise TimeoutError in the body after so many seconds."""

    def late(number: int, frame: Any) -> None:
        raise TimeoutError(f"took longer than {seconds:g} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def soak(scratch: Path, seed: int, folders: int, draw_every: int = 0) -> Counter[str]:
    """Mutate so many result folders, ``BATCH`` at a time, and report on each batch.

    ``draw_every``: figures are drawn of every so many batches (0: of none). Returns what became of
    the runs. Raises ViolationError naming the seed, the batch and what was done to its folders.
    """
    base = scratch / "base"
    make_base(base)
    known = baseline(base)
    total: Counter[str] = Counter()
    for number in range(-(-folders // BATCH)):
        draw = random.Random(f"{seed}-{number}")
        batch = Batch(base, known, scratch / "batch")
        done = {}
        for run_id in batch.touched:
            mutation = draw.choice(MUTATIONS)
            mutation(draw, batch.root / "runs" / SITE / run_id)
            done[run_id] = mutation.__name__
        try:
            total += batch.check(done, bool(draw_every) and number % draw_every == 0)
        except ViolationError as violation:
            raise ViolationError(f"seed {seed}, batch {number}: {violation}; {done}") from violation
        shutil.rmtree(batch.root)
    return total


def main() -> None:
    """Mutate as many folders as are asked for and print what became of the runs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folders", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=time.time_ns() % 100_000)
    parser.add_argument("--draw-every", type=int, default=10, help="batches")
    args = parser.parse_args()
    print(f"seed {args.seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="mutations-") as folder:
        try:
            total = soak(Path(folder).resolve(), args.seed, args.folders, args.draw_every)
        except ViolationError as violation:
            sys.exit(f"violation: {violation}")
    print(", ".join(f"{count} {what}" for what, count in total.most_common()))


if __name__ == "__main__":
    main()
