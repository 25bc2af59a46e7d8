"""``scalesweep ab``: two commits measured alternately, a verdict for each point."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import pandas as pd

from scalesweep.ab.commits import SHORT, Repository
from scalesweep.ab.outcome import Measured, settled_point, verdicts_of
from scalesweep.ab.session import AbSession
from scalesweep.analysis.paired import MOST_NEEDED
from scalesweep.analysis.table_io import typed_values, write_csv, write_parquet
from scalesweep.analysis.verdicts import INCONCLUSIVE
from scalesweep.config.campaign import Campaign
from scalesweep.core.errors import UserError
from scalesweep.core.formatting import PHASES, counted
from scalesweep.history.run import PAGE, write_history
from scalesweep.history.settled import Commit, Settled, SettledPoint, keep
from scalesweep.history.words import settled_change


def line_of(label: str, point: SettledPoint) -> str:
    """``regression: steps, ranks 2: step_time +49.8 [48.9, 50.7] %, 5 pairs``."""
    phase = "" if point.phase == "run" else f", {PHASES[point.phase]}"
    text = f"{point.kind}: {label}: {point.metric}{phase} {settled_change(point)}, "
    text += counted(point.pairs, "pair")
    if point.kind == INCONCLUSIVE:
        text += f"; {settling(point)}"
    return text


def settling(point: SettledPoint) -> str:
    """What would settle an inconclusive verdict."""
    why = f"{point.reason}; " if point.reason else ""
    if point.needed is None:
        return f"{why}to settle it would take more than {MOST_NEEDED} repeats of each"
    more = counted(point.needed - point.pairs, "more repeat")
    return f"{why}{more} of each would probably settle it (--repeats {point.needed})"


VERDICTS = "verdicts"  # stem of the table next to the runs
Say = Callable[[str], None]


def measure_ab(
    campaign: Campaign, options: Mapping[str, str], in_slurm: bool, show: bool, say: Say
) -> None:
    """Measure ``base`` and ``new`` of the options alternately, and say what they show.

    What it costs is said first; ``show``: only that. Raises UserError.
    """
    session = AbSession(campaign, options, in_slurm, say)
    repository = session.repository
    base, new = (repository.commit(options[n], n.upper()) for n in ("base", "new"))
    pairs, targets = session.pairs(base, new), session.targets
    schedule = [planned.target.run_id(0) for planned in pairs.schedule(targets)]
    cost = session.cost(targets, {group: schedule.count(group) for group in schedule})
    for name, commit in (("base", base), ("new", new)):
        say(f"{name}: {described(repository, commit)}")
    if changes := repository.local_changes:
        say(f"note: {changes}")
    repeats = sorted({target.repeats for target in targets})
    each = f"{repeats[0]}" if len(repeats) == 1 else f"{repeats[0]} to {repeats[-1]}"
    points = counted(len(targets), "point")
    say(f"{points}, {each} runs of each commit at each, and one that is not counted")
    say(f"cost: {session.cost_text(cost)}")
    session.check(cost)
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
    between: int = 0,
) -> None:
    """Say the verdicts, a line for each point; write their table and keep them in the history.

    Raises UserError if no point was measured, and in the end if a run of one has failed.
    """
    points: list[SettledPoint] = []
    failed = 0
    for entry, verdict in zip(measured, verdicts_of(campaign, measured), strict=True):
        if entry.failure:
            side, why = entry.failure
            failed += 1
            say(f"failed: {entry.target.label}: {side}: {why}")
        if point := settled_point(entry, verdict):
            points.append(point)
            say(line_of(entry.target.label, point))
    if not points:
        raise UserError(f"{folder}: no pair of runs has been finished; call it again to go on")
    rows = [asdict(point) for point in points]
    table = pd.DataFrame({name: typed_values([row[name] for row in rows]) for name in rows[0]})
    write_csv(table, folder / f"{VERDICTS}.csv")
    write_parquet(table, folder / f"{VERDICTS}.parquet", {})
    say(f"verdicts: {folder / VERDICTS}.csv")
    if campaign.history and commits[0] != commits[1]:
        base, new = (
            Commit(commit, repository.time(commit), repository.subject(commit))
            for commit in commits
        )
        measurement = Settled(
            started=max(start for entry in measured for start in entry.started),
            campaign=campaign.name,
            results=str(folder.resolve()),
            repository=str(repository.top),
            base=base,
            new=new,
            points=points,
            first_bad=first_bad,
            between=between,
        )
        keep(campaign.history.folder, measurement)
        if (campaign.history.folder / "sessions").is_dir():
            write_history(campaign.history)
            say(f"history: {campaign.history.folder / PAGE}")
    if failed:
        raise UserError(f"{counted(failed, 'point')} failed; the logs are in {folder}")


def described(repository: Repository, commit: str) -> str:
    """A commit in short, and its subject."""
    return f"{commit[:SHORT]} ({repository.subject(commit)})"
