"""``scalesweep ab``: two commits measured alternately, a verdict for each point."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import pandas as pd

from scalesweep.ab.commits import SHORT, Repository
from scalesweep.ab.outcome import Measured, changes_of, evidence_of
from scalesweep.ab.session import AbSession
from scalesweep.analysis.table_io import write_csv, write_parquet
from scalesweep.config.campaign import Campaign
from scalesweep.core.errors import UserError
from scalesweep.core.formatting import PHASES, counted, listed
from scalesweep.history.evidence import Evidence, keep
from scalesweep.history.page import PAGE, write_history
from scalesweep.judge.change import INCONCLUSIVE
from scalesweep.judge.words import sentence, why


def line_of(evidence: Evidence) -> str:
    """``regression: steps, ranks 2: step_time +49.8 [48.9, 50.7] % in 5 pairs.``"""
    change, phase = evidence.change, evidence.point["phase"]
    metric = evidence.point["metric"] + (f", {PHASES[phase]}" if phase != "run" else "")
    text = f"{change.verdict}: {sentence(f'{evidence.label}: {metric}', change)[:-1]}"
    more = why(change, "pair", 0.0) if change.verdict == INCONCLUSIVE else ""
    return f"{text} in {counted(len(change.base), 'pair')}. {more}".rstrip()


VERDICTS = "verdicts"  # stem of the table next to the runs
Say = Callable[[str], None]


def measure_ab(campaign: Campaign, options: Mapping[str, str], show: bool, say: Say) -> None:
    """Measure ``base`` and ``new`` of the options alternately, and say what they show.

    What it costs is said first; ``show``: only that. Raises UserError.
    """
    session = AbSession(campaign, options, say)
    repository, targets = session.repository, session.targets
    base, new = (repository.commit(options[n], n.upper()) for n in ("base", "new"))
    pairs = session.pairs(base, new)
    for name, commit in (("base", base), ("new", new)):
        say(f"{name}: {described(repository, commit)}")
    if changes := repository.local_changes:
        say(f"note: {changes}")
    repeats = listed([str(n) for n in sorted({target.repeats for target in targets})])
    points = counted(len(targets), "point")
    say(f"{points}, {repeats} runs of each commit at each, and one that is not counted")
    schedule = [planned.target.run_id(0) for planned in pairs.schedule(targets)]
    say(f"cost: {session.cost_text(Counter(schedule))}")
    if show:
        return
    with session.open():
        measured = session.measure(base, new, targets)
    report(campaign, repository, measured, pairs.folder, (base, new), say)


def report(
    campaign: Campaign,
    repository: Repository,
    measured: Sequence[Measured],
    folder: Path,
    commits: tuple[str, str],
    say: Say,
    first_bad: bool = False,
) -> None:
    """Say the verdicts, a line for each point; write their table and keep them in the history.

    Raises UserError if no point was measured, and in the end if a run of one has failed.
    """
    base, new = commits
    points: list[Evidence] = []
    failed = 0
    commits_said = {
        "base": base,
        "new": new,
        "subject": repository.subject(new),
        "first_bad": first_bad,
    }
    for entry, change in zip(measured, changes_of(campaign, measured), strict=True):
        if entry.failure:
            side, cause = entry.failure
            failed += 1
            say(f"failed: {entry.target.label}: {side}: {cause}")
        if point := evidence_of(entry, change, **commits_said):
            points.append(point)
            say(line_of(point))
    if not points:
        raise UserError(f"{folder}: no pair of runs has been finished; call it again to go on")
    table = pd.DataFrame(
        [{"label": p.label, **p.point, **asdict(p.change), "pairs": len(p.change.base)}
         for p in points]
    ).drop(columns=["base", "new"])  # fmt: skip
    write_csv(table, folder / f"{VERDICTS}.csv")
    write_parquet(table, folder / f"{VERDICTS}.parquet", {})
    say(f"verdicts: {folder / VERDICTS}.csv")
    if campaign.history and base != new:
        keep(campaign.history.folder, points)
        if (campaign.history.folder / "sessions").is_dir():
            write_history(campaign.history)
            say(f"history: {campaign.history.folder / PAGE}")
    if failed:
        raise UserError(f"{counted(failed, 'point')} failed; the logs are in {folder}")


def described(repository: Repository, commit: str) -> str:
    """A commit in short, and its subject."""
    return f"{commit[:SHORT]} ({repository.subject(commit)})"
