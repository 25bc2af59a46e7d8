"""The page of a comparison: what changed, how the environments differ, and every number."""

from collections.abc import Iterable, Sequence
from typing import Any

from markupsafe import Markup

from scalesweep.compare.environment_diff import (
    CODE,
    HOSTS,
    MACHINE,
    SETTINGS,
    SOFTWARE,
    Surroundings,
)
from scalesweep.compare.forest_plot import forest
from scalesweep.compare.inputs import Side
from scalesweep.compare.machines import MachineRate
from scalesweep.compare.matching import Joined, by_experiment
from scalesweep.compare.page_tables import (
    MAX_ROWS,
    alone_table,
    count_table,
    difference_table,
    labels,
    point_table,
    version_table,
)
from scalesweep.compare.significance import IMPROVED, WORSE, Change, Count, main_phases
from scalesweep.compare.verdict_words import verdict_words
from scalesweep.core.formatting import (
    PHASES,
    counted,
    listed,
    percent,
    with_interval,
)
from scalesweep.figures.missing import Failed, tried
from scalesweep.report.html_assets import assets, render

TEMPLATE, SCRIPTS = "compare.html.j2", ("tables.js", "compare.js")

MAX_FIGURES = 6
_KIND_WORDS = {
    MACHINE: "The machines differ",
    HOSTS: "No host is common to both sides",
    SOFTWARE: "Versions of software differ",
    CODE: "The code differs",
    SETTINGS: "Environment variables differ",
}


def render_comparison(
    base: Side,
    new: Side,
    changes: Sequence[Change],
    summary: Sequence[Count],
    joined: Joined,
    around: Surroundings,
    unlike: Sequence[str],
    files: Sequence[str],
) -> str:
    """The page as HTML; everything from plans, records and summaries is escaped.

    ``unlike``: metrics that are not compared; ``files``: relative addresses of the tables.
    """
    first = main_phases(summary)
    main = [
        count for count in summary if first.get((count.experiment, count.metric)) == count.phase
    ]
    groups = list(by_experiment(joined.both))
    share = max(30, MAX_ROWS // max(len(groups), 1))
    rows: dict[str, list[Change]] = {}
    for change in changes:
        if change.pair.base and change.pair.new:
            rows.setdefault(change.pair.experiment, []).append(change)
    context = {
        "base": base,
        "new": new,
        "sides": [("Base", base), ("New", new)],
        "joined": joined,
        "around": around,
        "warnings": _warnings(around, base, new),
        "sentences": [_sentence(count, changes, around) for count in main],
        "counts": count_table([count for count in summary if count.main]),
        "more_counts": count_table([count for count in summary if not count.main]),
        "by_chance": sum(count.by_chance for count in summary),
        "compared": sum(count.compared for count in summary),
        "figures": _figures(changes, summary),
        "experiments": [
            point_table(name, pairs, rows.get(name, []), share) for name, pairs in groups
        ],
        "alone": [alone_table(role, joined) for role in ("base", "new")],
        "versions": version_table(joined),
        "assumptions": joined.assumptions,
        "differences": difference_table(around),
        "unlike": unlike,
        "files": files,
        "assets": assets(SCRIPTS, charts=False),
    }
    filters = {
        "when": lambda text: str(text or "–").replace("T", " ")[:16],
        "change": lambda change: (
            f"{100 * change.change:+.1f} % [{100 * change.low:.1f}, {100 * change.high:.1f}]"
        ),
    }
    return render(TEMPLATE, context, filters)


def _warnings(around: Surroundings, base: Side, new: Side) -> list[str]:
    """What a reader has to know before any ratio, as sentences."""
    warnings = []
    for role, side in (("base", base), ("new", new)):
        others = [source for source in around.sources[role] if source != "measured"]
        if others:
            what = listed(others)
            warnings.append(
                f"Rows of {role} ({side.campaign}) are {what}, not measured by this tool."
            )
    if around.shared:
        warnings.append(
            f"{counted(around.shared, 'run')} of both sides {'is' if around.shared == 1 else 'are'}"
            " the same run (same id and start): they cannot show a change."
        )
    warnings += [_machine_words(rate) for rate in around.machine if rate.apart.clear]
    for kind, words in _KIND_WORDS.items():
        if known := around.of(kind):
            named = [
                f"{difference.fact} ({difference.base} / {difference.new})" if kind != HOSTS
                else f"{difference.base} / {difference.new}"
                for difference in known
            ]  # fmt: skip
            warnings.append(f"{words}: {listed(named, 5)}.")
    unknown = around.of(*_KIND_WORDS, known=False)
    if unknown:
        facts = listed([difference.fact for difference in unknown], 8)
        warnings.append(f"Recorded on one side only, so a difference is possible: {facts}.")
    if not around.alike and not around.differences:
        warnings.append("Neither side recorded its hosts, hardware and software.")
    return warnings


def _machine_words(rate: MachineRate) -> str:
    """That the machine itself was slower or faster on the new side."""
    change = rate.apart
    low, high = sorted((abs(change.low), abs(change.high)))
    way = "slower" if change.change < 0 else "faster"
    return (
        f"The machine itself was {way} on the side of new: {rate.words} by "
        f"{percent(abs(change.change), low, high)}, before and after {rate.base_runs} and "
        f"{counted(rate.new_runs, 'run')}. Part of what changed may be the machine's."
    )


_LEVELS = {IMPROVED: "confirmed", WORSE: "warning"}


def _sentence(count: Count, changes: Sequence[Change], around: Surroundings) -> dict[str, str]:
    """The main metric of an experiment in one phase, in words; numbers of the whole behind."""
    group = [
        change
        for change in changes
        if (change.pair.experiment, change.metric, change.phase)
        == (count.experiment, count.metric, count.phase)
        and change.pair.base
        and change.pair.new
    ]
    text, tag = verdict_words(group, around.subject) if group else ("", "unclear")
    if count.overall and count.overall.points > 1:
        mean = count.overall
        text += f" Geometric mean of the ratios {with_interval(mean.value, mean.low, mean.high)}"
        text += f" over {counted(mean.points, 'point')}"
        text += ", which hides that points changed both ways." if tag == "both ways" else "."
    return {"tag": tag, "level": _LEVELS.get(tag, "open"), "text": text}


def _figures(changes: Sequence[Change], summary: Iterable[Count]) -> list[dict[str, Any]]:
    """A figure for each main metric, in the phase that runs are compared in."""
    chosen: dict[tuple[str, str, str, str], list[Change]] = {}
    first = main_phases(summary)
    for change in changes:
        if change.main and first[change.experiment, change.metric] == change.phase:
            key = (change.metric, change.phase, change.quantity.unit, change.quantity.better)
            chosen.setdefault(key, []).append(change)
    groups = [group for group in chosen.values() if any(change.ratio > 0 for change in group)]
    shown = groups[:MAX_FIGURES]
    drawn = [tried(_figure, shown, place) for place in range(len(shown))]
    return [
        {"caption": f"{_title(group[0])}: not drawn, {result.reason}.", "svg": None}
        if isinstance(result, Failed)
        # Written by scalesweep.figures, which serialises every label as XML text.
        else {"caption": result[0], "svg": Markup(result[1])}
        for group, result in zip(shown, drawn, strict=True)
    ]


def _figure(groups: Sequence[Sequence[Change]], place: int) -> tuple[str, str]:
    """Caption and SVG of the ratios of a group, one of which there is at least."""
    drawn = forest(groups[place], labels(groups[place]), f"ratios-{place + 1}")
    assert drawn is not None
    return drawn[0].caption, drawn[1]


def _title(change: Change) -> str:
    return f"{change.quantity.label}, {PHASES[change.phase]}"
