"""``scalesweep ab``: two commits measured alternately, a verdict for each point."""

from collections import Counter
from collections.abc import Mapping

from scalesweep.ab.commits import say
from scalesweep.ab.outcome import report
from scalesweep.ab.session import AbSession
from scalesweep.config.campaign import Campaign
from scalesweep.core.formatting import counted, listed


def measure_ab(campaign: Campaign, options: Mapping[str, str], show: bool) -> None:
    """Measure ``base`` and ``new`` of the options alternately, and print what they show.

    What it costs is said first; ``show``: only that. Raises UserError.
    """
    session = AbSession(campaign, options)
    repository, targets = session.repository, session.targets
    base, new = (repository.commit(options[n], n.upper()) for n in ("base", "new"))
    pairs = session.pairs(base, new)
    for name, commit in (("base", base), ("new", new)):
        say(f"{name}: {repository.described(commit)}")
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
        measured = session.measure(pairs, targets)
    report(campaign, repository, measured, pairs)
