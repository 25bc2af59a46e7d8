"""False verdicts and found steps of the history, and of other tools on the same series.

Steps of 0, 2, 5 and 10 % are planted in series of 30 sessions of 5 repeats: in made-up noise (2 %
in a session, 1 % among them; drift, spikes, hiccups, correlation), and in noise of this machine,
measured and resampled. Verdicts are on two sessions after the step, each page with one series, so
that the correction for many points is left out. A step of the machine itself, of which the records
say something, must be called confounded. Then series without any change over a year of evenings,
each judged on every one of them: how many get a false verdict on any. Then what a history of 1,000
sessions of 100 points costs.

    python -m bench.history [--json FILE] [--series N] [--sessions N]
"""

import argparse
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np

from bench.lib.evenings import NOISE, OTHERS, alarmed, decay, trends
from bench.lib.pairs import figure, line, write_json
from bench.lib.planted import KINDS, Kind, plant
from bench.lib.rivals import RIVALS
from scalesweep.analysis.levels import read_series
from scalesweep.analysis.paired import paired_verdict
from scalesweep.analysis.types import Floats
from scalesweep.analysis.verdicts import IMPROVEMENT, REGRESSION, TREND, judge
from scalesweep.history.changes import along
from scalesweep.history.judged import read_history
from scalesweep.history.session_facts import SessionFacts
from scalesweep.history.store import append, load
from tests.fakes.history import FakeSession, make_session

STEPS = (0.0, 0.02, 0.05, 0.1)
SESSIONS, REPEATS = 30, 5
MARGIN = 0.03
PLAIN = 2  # kinds of KINDS whose steps of 5 % must be found
LATER, FOUND = 6, 0.85  # sessions after a step by which at least this share is found
YEARS = ("white", "heavy-tailed (t, 3 degrees)")  # that are judged over 250 evenings too
OURS = "scalesweep"
Judge = Callable[[Sequence[Floats]], int]


def ours(groups: Sequence[Floats]) -> int:
    """Our verdict as a sign, as the rivals give theirs."""
    kind = judge(read_series([np.log(group) for group in groups]), "lower", MARGIN).kind
    return {REGRESSION: 1, IMPROVEMENT: -1}.get(kind, 0)


def found_after(kind: Kind, after: int, n: int) -> float:
    """Share of steps of 5 % that are called regressions so many sessions after them."""
    rng = np.random.default_rng(13)
    sessions = SESSIONS - 2 + after
    signs = [ours(plant(rng, kind, sessions, REPEATS, 0.05, after)) for _ in range(n)]
    return float(np.mean([sign > 0 for sign in signs]))


def this_machine(sessions: int = 200) -> list[Floats]:
    """Times of a small computation on this machine, in sessions of five, relative to the mean."""
    rng = np.random.default_rng(0)
    matrix = rng.normal(size=(120, 120))
    measured = []
    for _ in range(sessions):
        repeats = []
        for _ in range(REPEATS):
            began = time.perf_counter()
            for _ in range(20):
                matrix @ matrix
            repeats.append(time.perf_counter() - began)
        measured.append(np.array(repeats))
    middle = float(np.median(np.concatenate(measured)))
    return [times / middle for times in measured]


def resampled(rng: np.random.Generator, real: Sequence[Floats], step: float) -> list[Floats]:
    """Successive sessions of this machine from a random one on, with what each passes on."""
    begin = int(rng.integers(0, len(real) - SESSIONS + 1))
    groups = real[begin : begin + SESSIONS]
    return [g * (1 + step) if n >= SESSIONS - 2 else g for n, g in enumerate(groups)]


def rates(
    judges: Mapping[str, Judge], make: Callable[[np.random.Generator, float], list[Floats]], n: int
) -> dict[str, dict[float, tuple[float, float]]]:
    """Of each judge and step the shares of series called regression and improvement."""
    rates_of: dict[str, dict[float, tuple[float, float]]] = {name: {} for name in judges}
    for step in STEPS:
        rng = np.random.default_rng(11)
        series = [make(rng, step) for _ in range(n)]
        for name, verdict in judges.items():
            counts = Counter(verdict(groups) for groups in series)
            rates_of[name][step] = (counts[1] / n, counts[-1] / n)
    return rates_of


def shifted(n: int) -> float:
    """Share of steps of 10 % that are called confounded where the kernel changed at the same time,
    among those that are noticed."""
    rng = np.random.default_rng(3)
    facts = ['{"kernel": "6.1"}', '{"kernel": "6.2"}']
    begin = datetime(2026, 1, 1, tzinfo=UTC)
    infos = [
        SessionFacts(
            str(day), begin + timedelta(days=day), f"{day:040d}", False, None, "", "", "", "",
            "node1", "mpirun", "", facts[day >= SESSIONS - 2],
        )
        for day in range(SESSIONS)
    ]  # fmt: skip
    noticed = []
    for _ in range(n):
        series = read_series([np.log(group) for group in plant(rng, KINDS[1], step=0.1)])
        verdict = judge(series, "lower", MARGIN)
        if verdict.kind in (REGRESSION, IMPROVEMENT):
            noticed.append(along(infos, verdict).confounds)
    return float(np.mean(noticed))


def settled(n: int, pairs: int, step: float, drift: float = 0.0) -> float:
    """Share of pages with one point on which two commits, measured alternately, are called
    different: 2 % noise, a machine that becomes slower by ``drift`` from run to run."""
    rng = np.random.default_rng(5)
    order = np.array(([0, 1, 1, 0] * pairs)[: 2 * pairs])
    changed = 0
    for _ in range(n):
        logs = rng.normal(0, 0.02, 2 * pairs) + drift * np.arange(2 * pairs) + step * order
        base, new = (np.exp(logs[order == side]) for side in (0, 1))
        changed += paired_verdict(base, new, "lower", MARGIN).kind in (REGRESSION, IMPROVEMENT)
    return changed / n


def cost(sessions: int) -> dict[str, float]:
    """Seconds to add a session to a history, to read it and to judge it."""
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        fakes = [
            FakeSession(day, {f"ranks {k}": list(rng.normal(1, 0.02, 5)) for k in range(100)})
            for day in range(sessions)
        ]
        append(folder, map(make_session, fakes[:-1]))
        last = make_session(fakes[-1])
        times = [time.perf_counter()]
        append(folder, [last])
        times.append(time.perf_counter())
        load(folder)
        times.append(time.perf_counter())
        read_history(folder)
        times.append(time.perf_counter())
    return dict(zip(("append", "read", "read and judge"), np.diff(times).tolist(), strict=True))


def evening_figures(years: int) -> list[dict[str, Any]]:
    """Series without a change that get a false verdict on any evening, and evenings with one."""
    figures = []
    for noise, draw in NOISE.items():
        bound = 0.05 if "AR" not in noise and "walk" not in noise else None
        bound = 0.1 if "AR(0.6)" in noise else bound
        for evenings in (55, 250) if noise in YEARS else (55,):
            ever, every = alarmed(draw, evenings, years)
            name = f"series with a false verdict in {evenings} evenings, {noise}"
            figures.append(figure(name, ever, "", bound))
            figures.append(figure(f"evenings with one, {evenings}, {noise}", every, ""))
    for noise, draw in OTHERS.items():
        ever, _ = alarmed(draw, 55, years)
        figures.append(figure(f"series with a false verdict in 55 evenings, {noise}", ever, ""))
    return figures


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path)
    parser.add_argument("--series", type=int, default=400, help="series of each kind and step")
    parser.add_argument("--years", type=int, default=200, help="series of a year of evenings")
    parser.add_argument("--sessions", type=int, default=1000, help="of the history on disk")
    args = parser.parse_args()
    judges: dict[str, Judge] = {OURS: ours, **RIVALS}
    makers: dict[str, Any] = {
        kind.name: lambda rng, step, kind=kind: plant(rng, kind, SESSIONS, REPEATS, step)
        for kind in KINDS
    }
    real = this_machine()
    makers["this machine"] = lambda rng, step: resampled(rng, real, step)
    tables = {name: rates(judges, make, args.series) for name, make in makers.items()}
    print(f"{'noise':14} {'judge':22} " + " ".join(f"{step:>8.0%}" for step in STEPS))
    for noise, table in tables.items():
        for name, of in table.items():
            cells = [
                f"{up:5.1%}" if step else f"{up + down:5.1%}" for step, (up, down) in of.items()
            ]
            print(f"{noise:14} {name:22} " + " ".join(f"{cell:>8}" for cell in cells))
    false = [sum(table[OURS][0.0]) for table in tables.values()]
    figures = [figure("false verdicts, all kinds of noise", float(np.mean(false)), "", 0.05)]
    for place, (noise, table) in enumerate(tables.items()):
        figures.append(figure(f"false verdicts, {noise}", false[place], ""))
        power = table[OURS][0.05][0]
        figures.append(figure(f"steps of 5 % found after two sessions, {noise}", power, ""))
    for place, kind in enumerate(KINDS):
        for after in (3, 4, LATER):
            bound = FOUND if place < PLAIN and after == LATER else None
            power = found_after(kind, after, args.series)
            name = f"steps of 5 % found after {after} sessions, {kind.name}"
            figures.append(figure(name, power, "", bound, "higher"))
    figures += evening_figures(args.years)
    share = trends(decay, 100, args.years)[TREND] / args.years
    name = "decay of 10 % over 100 sessions called a trend"
    figures.append(figure(name, share, "", 0.9, "higher"))
    for name in RIVALS:
        worst = max(sum(table[name][0.0]) for table in tables.values())
        figures.append(figure(f"most false verdicts, {name}", worst, ""))
    for drift in (0.0, 0.01):
        share = settled(2000, 5, 0.0, drift)
        figures.append(figure(f"settle, 5 pairs, drift {drift:.0%} a run: false", share, "", 0.05))
    for pairs in (5, 10):
        share = settled(2000, pairs, 0.05)
        figures.append(figure(f"settle, {pairs} pairs: steps of 5 % found", share, ""))
    figures.append(figure("machine's steps called confounded", shifted(100), "", 0.95, "higher"))
    for what, seconds in cost(args.sessions).items():
        title = f"{args.sessions:,} sessions of 100 points: {what}"
        figures.append(figure(title, seconds, "s", 10.0))
    for row in figures:
        print(line(row))
    write_json({"rates": {k: {j: {str(s): v for s, v in o.items()} for j, o in t.items()}
                          for k, t in tables.items()}, "figures": figures}, args.json)  # fmt: skip
    return 0


if __name__ == "__main__":
    sys.exit(main())
