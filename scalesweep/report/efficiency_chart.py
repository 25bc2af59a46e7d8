"""The small figure of a card: efficiency over the scale with intervals, in the page's colours."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

from scalesweep.aspects.scaling.findings import Verdict
from scalesweep.aspects.scaling.series_words import common_and_own
from scalesweep.core.formatting import percent, shorten
from scalesweep.experiment.results import ExperimentResults

# In units of the SVG.
WIDTH, HEIGHT = 300, 178
_LEFT, _RIGHT, _TOP, _BOTTOM = 40, 286, 10, 144
_APART = 7  # between the marks of two series at one scale
_LINE = 15  # a line of the legend
_LABEL = 24  # room for the label of a scale
MAX_SERIES = 4
_HIGHEST = 1.6  # share of the ideal beyond which the axis ends


@dataclass(frozen=True)
class _Frame:
    """Where scales and shares of the ideal are drawn."""

    counts: Sequence[int]
    top: float

    def x(self, count: int) -> float:
        span = max(math.log2(self.counts[-1] / self.counts[0]), 1.0)
        return _LEFT + 20 + (_RIGHT - _LEFT - 40) * math.log2(count / self.counts[0]) / span

    def y(self, share: float) -> float:
        return _BOTTOM - (_BOTTOM - _TOP) * min(max(share, 0.0), self.top) / self.top


def efficiency_chart(results: ExperimentResults, verdicts: Sequence[Verdict]) -> Markup | None:
    """An SVG of the series that have efficiencies; None where none has one.

    Of more than four some are shown, from the lowest at its largest scale to the highest.
    """
    if not verdicts:
        return None
    shown = list(verdicts)
    if len(shown) > MAX_SERIES:
        shown.sort(key=lambda verdict: verdict.points[-1].value)
        last = len(shown) - 1
        shown = [shown[round(place * last / (MAX_SERIES - 1))] for place in range(MAX_SERIES)]
    every = [point for verdict in shown for point in verdict.points]
    counts = {point.count for point in every} | {_base(results, verdict) for verdict in shown}
    highest = max(point.value if point.high is None else point.high for point in every)
    frame = _Frame(sorted(counts), min(max(1.05, highest), _HIGHEST))
    parts = [*_axes(results, frame)]
    for place, verdict in enumerate(shown):
        shift = (place - (len(shown) - 1) / 2) * _APART
        parts += _series(place, _base(results, verdict), verdict, shift, frame)
    _, own = common_and_own(results, [verdict.series for verdict in shown])
    labels = [
        verdict.series.label if len(shown) == 1 else label
        for verdict, label in zip(shown, own, strict=True)
    ]
    labels = [label for label in labels if label]
    for place, label in enumerate(labels):
        at = HEIGHT + _LINE * place + 14
        parts.append(
            f'<g class="s{place + 1}"><circle cx="{_LEFT}" cy="{at - 4}" r="3.5"/></g>'
            f'<text x="{_LEFT + 9}" y="{at}">{escape(shorten(label, 42))}</text>'
        )
    if len(shown) < len(verdicts):
        labels.append(f"{len(shown)} of {len(verdicts)} series")
        at = HEIGHT + _LINE * (len(labels) - 1) + 14
        parts.append(f'<text x="{_LEFT + 9}" y="{at}">{labels[-1]}</text>')
    words = [
        f"{f'{verdict.series.label}: ' if verdict.series.label else ''}{point.at} {point.text}"
        for verdict in shown
        for point in verdict.points
    ]
    alt = escape(f"Efficiency with 95 % intervals: {'; '.join(words)}")
    return Markup(
        f'<svg class="small-chart" viewBox="0 0 {WIDTH} {HEIGHT + _LINE * len(labels) + 6}"'
        f' role="img" aria-label="{alt}">{"".join(parts)}</svg>'
    )


def _base(results: ExperimentResults, verdict: Verdict) -> int:
    return results.scale_of(verdict.series.rows[0])


def _axes(results: ExperimentResults, frame: _Frame) -> Iterator[str]:
    """Lines at 0, 50 and 100 %, and the target, of the ideal, and the scales that were measured."""
    for share in (0.0, 0.5, results.target, 1.0):
        kind = {results.target: "bound", 1.0: "ideal"}.get(share, "grid")
        y = frame.y(share)
        yield f'<path class="{kind}" d="M{_LEFT} {y:.1f}H{_RIGHT}"/>'
        yield f'<text class="end" x="{_LEFT - 5}" y="{y + 3.5:.1f}">{100 * share:.0f} %</text>'
    last = math.inf
    for count in reversed(frame.counts):  # the largest is always labelled
        if last - frame.x(count) >= _LABEL:
            last = frame.x(count)
            yield f'<text class="mid" x="{last:.1f}" y="{HEIGHT - 18}">{count:,}</text>'
    middle = (_LEFT + _RIGHT) / 2
    words = f"Number of {escape(results.scale)}"
    yield f'<text class="mid" x="{middle}" y="{HEIGHT - 3}">{words}</text>'


def _series(place: int, base: int, verdict: Verdict, shift: float, frame: _Frame) -> Iterator[str]:
    """Base, points and intervals of a series; a mark has its numbers as a title."""
    at = [(base, 1.0), *((point.count, point.value) for point in verdict.points)]
    line = " ".join(f"{frame.x(count) + shift:.1f},{frame.y(share):.1f}" for count, share in at)
    yield f'<g class="s{place + 1}"><polyline points="{line}"/>'
    yield f'<circle class="base" cx="{frame.x(base) + shift:.1f}" cy="{frame.y(1):.1f}" r="3.5"/>'
    for point in verdict.points:
        x, title = frame.x(point.count) + shift, percent(point.value, point.low, point.high)
        if point.low is not None and point.high is not None:
            low, high = frame.y(point.low), frame.y(point.high)
            yield f'<path class="interval" d="M{x:.1f} {low:.1f}V{high:.1f}"/>'
        yield (
            f'<circle cx="{x:.1f}" cy="{frame.y(point.value):.1f}" r="3.5">'
            f"<title>{escape(f'{point.at}: {title}')}</title></circle>"
        )
    yield "</g>"
