"""``scalesweep bisect``: the first commit that made the program slower, by bisection.

The step between good and bad is measured first. A commit on the way is good or bad by whether the
interval of its ratio to the good one, measured alternately with it, lies below or above half of
that step (on logarithms). At the end the commits on both sides of the step are measured against
each other, which is what the history keeps.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from scalesweep.ab.commits import SHORT, BadCommitError, say
from scalesweep.ab.outcome import Measured, margin_of, report
from scalesweep.ab.pairs import Target
from scalesweep.ab.session import AbSession
from scalesweep.config.campaign import Campaign
from scalesweep.core.errors import UserError
from scalesweep.core.formatting import counted, listed, percent
from scalesweep.judge.change import LEVEL, side_of

# A commit whose interval still holds the bound gets twice the repeats, so often at most.
LOOKS = 3
# Of each look, so that all of them together are wrong in 5 % at most (Bonferroni).
_LEVEL = LEVEL / LOOKS


def first_bad(campaign: Campaign, options: Mapping[str, str], show: bool) -> None:
    """Name the first bad commit between ``good`` and ``bad`` of the options.

    What it costs is said first; ``show``: only that. Raises UserError, also if bad is not worse
    than good.
    """
    session = AbSession(campaign, options)
    repository = session.repository
    good, bad = (repository.commit(options[n], n) for n in ("GOOD", "BAD"))
    commits = repository.between(good, bad)
    say(f"good: {repository.described(good)}")
    say(f"bad: {repository.described(bad)}, {counted(len(commits), 'commit')} later")
    repository.say_local_changes()
    first = session.left(session.pairs(good, bad))
    say(f"cost: the step, {counted(len(session.targets), 'point')}: {session.cost_text(first)}")
    if steps := math.ceil(math.log2(len(commits))):
        say(
            f"cost: then about {counted(steps, 'commit')} and the result, each at one of these "
            f"points; up to {2 ** (LOOKS - 1)} times as many runs of a commit that is hard to tell"
        )
    if not show:
        with session.open():
            find(session, good, commits)


def find(session: AbSession, good: str, commits: Sequence[str]) -> None:
    """Search ``commits``, which come after ``good``, the oldest first, and print the first bad one.
    Raises UserError if the last is not worse than good."""
    target, step = measure_step(session, good, commits[-1])
    last_good, bad, skipped = search(
        len(commits), lambda place: judge_commit(session, good, commits[place], target, step / 2)
    )
    before = good if last_good < 0 else commits[last_good]
    pairs, repository = session.pairs(before, commits[bad]), session.repository
    measured = session.measure(pairs, [target])
    left = [*(n for n in range(last_good + 1, bad) if n in skipped), bad]
    if len(left) > 1:
        say(f"first bad commit: one of {len(left)}, after {before[:SHORT]}:")
        for place in left:
            why = f": {skipped[place]}" if place in skipped else ""
            say(f"  {repository.described(commits[place])}{why}")
    else:
        say(f"first bad commit: {commits[bad]} ({repository.subject(commits[bad])})")
    report(measured, pairs, len(left) == 1)


def search(count: int, look: Callable[[int], tuple[int, str]]) -> tuple[int, int, dict[int, str]]:
    """Bisect ``count`` commits, of which the last is bad.

    ``look`` returns of a place 1 if it is bad, -1 if good, and 0 with the reason if it cannot be
    told. Returns the newest good place (-1: before all), the oldest bad one, and why others were
    skipped.
    """
    good, bad, skipped = -1, count - 1, {}
    while left := [n for n in range(good + 1, bad) if n not in skipped]:
        place = min(left, key=lambda n: abs(2 * n - good - bad))
        side, why = look(place)
        if side > 0:
            bad = place
        elif side < 0:
            good = place
        else:
            skipped[place] = why
    return good, bad, skipped


def measure_step(session: AbSession, good: str, bad: str) -> tuple[Target, float]:
    """The point that shows the step best, and the step: a logarithm, above 0 if the new one is
    worse. Raises UserError if there is none."""
    for look in range(LOOKS):
        asked = [replace(target, repeats=target.repeats << look) for target in session.targets]
        measured = session.measure(session.pairs(good, bad), asked)
        bound = math.log1p(margin_of(session.campaign))
        sides = [side_of(entry.worse, bound, _LEVEL) for entry in measured]
        if 1 in sides or set(sides) == {-1}:
            break
    worse = [entry for entry, side in zip(measured, sides, strict=True) if side > 0]
    if not worse:
        shown = [f"{e.target.label} {_change(e)}" for e in measured if e.logs.size]
        raise UserError(
            f"BAD {bad[:SHORT]} is not shown to be worse than GOOD {good[:SHORT]} by more than "
            f"the margin: {listed(shown, 3)}; nothing to search for unless more --repeats show it"
        )
    chosen = max(worse, key=lambda entry: entry.worse.mean() / entry.worse.std(ddof=1))
    say(f"bad is {_change(chosen)}: {chosen.target.label}; searched at this point, the clearest")
    target = next(t for t in session.targets if t.run_id(0) == chosen.target.run_id(0))
    return target, float(chosen.worse.mean())


def judge_commit(
    session: AbSession, good: str, commit: str, target: Target, half: float
) -> tuple[int, str]:
    """Whether a commit is bad (1) or good (-1), or why that cannot be told (0)."""
    name = session.repository.described(commit)
    for look in range(LOOKS):
        asked = replace(target, repeats=target.repeats << look)
        try:
            (measured,) = session.measure(session.pairs(good, commit), [asked])
        except BadCommitError as error:
            if error.commit == good:
                raise  # it has been measured before: nothing can be told any more
            say(f"skipped: {name}: {error}")
            return 0, str(error)
        if side := side_of(measured.worse, half, _LEVEL):
            say(f"{'bad' if side > 0 else 'good'}: {name}: {_change(measured)}")
            return side, ""
    why = f"{_change(measured)} after {counted(measured.logs.size, 'pair')}"
    say(f"skipped: {name}: cannot be told, {why}")
    return 0, why


def _change(measured: Measured) -> str:
    """How much worse, in words."""
    if not measured.logs.size:
        return "not measured"
    change = math.expm1(float(measured.worse.mean()))
    return f"{percent(abs(change))} {'better' if change < 0 else 'worse'}"
