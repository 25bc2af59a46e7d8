"""Findings on training: the share of it that input takes, and MLPerf's score."""

from typing import Any

from scalesweep.analysis.stats import mean_of, share_p, without_interval
from scalesweep.aspects.training.score import Score
from scalesweep.aspects.training.table import curve_column, epochs_of
from scalesweep.core.formatting import counted, finite, number
from scalesweep.experiment.results import ExperimentResults
from scalesweep.findings.base import (
    ATTENTION,
    CLEAR,
    OPEN,
    Finding,
    Rule,
    claim_of,
    declared_evidence,
    evidence_of,
    number_of,
)

# A share of the run spent loading data below this is not worth a sentence.
NOTABLE_LOADING = 0.1
MAX_POINTS, LEAST_RUNS = 4, 3  # of scores
_PARALLEL = "compare more parallel reads, more prefetching or a cache"
_KEEP = "keep the data in memory or on a local disk, or load it while training"


def input_findings(results: ExperimentResults) -> list[Finding]:
    """Both shares, where they are known."""
    return [*input_share(results), *data_loading(results)]


def input_share(results: ExperimentResults) -> list[Finding]:
    """The share of training that ranks wait for input, at the point where it is largest.

    Of each run the seconds that a rank waits for batches over those of its training, both means
    over the ranks and summed over the epochs; the interval is that of the mean over repeats.
    """
    waited, trained = (curve_column(name, results.axes) for name in ("span_input", "local_times"))
    epochs = epochs_of(results)
    if not {waited, trained} <= {*epochs}:
        return []
    runs = epochs.dropna(subset=[waited, trained]).groupby(["place", "run_id"])
    sums = runs[[waited, trained]].sum().query(f"`{trained}` > 0")
    if sums.empty:
        return []
    shares = sums[waited] / sums[trained]
    place = shares.groupby("place").mean().idxmax()
    values = shares.loc[place].to_numpy()
    row: Any = epochs[epochs["place"] == place].head(1).to_dict("records")[0]
    mean = mean_of(values)
    sure, most = mean.known, min(mean.high or 1.0, 1.0)
    share = number_of("share", mean.value, "1", mean.low, most)
    return [
        Finding(
            results.name, "input share", CLEAR if sure else OPEN, subject=results.describe(row),
            words={"what": "Waiting for input", "whole": "training", "how": _PARALLEL},
            numbers=(share,), evidence=evidence_of(results, "epochs", row),
            reason="" if sure else without_interval(values),
        )
    ]  # fmt: skip


def data_loading(results: ExperimentResults) -> list[Finding]:
    """Where loading data before training takes a notable share of the run."""
    notable = [
        row
        for row in results.rows("phases")
        if row["phase"] == "data_loading"
        and finite(row.get("share"))
        and row["share"] >= NOTABLE_LOADING
    ]
    if not notable:
        return []
    row = max(notable, key=lambda row: float(row["share"]))
    ends = (row["share_low"], row["share_high"])
    sure = finite(ends[0]) and ends[0] >= NOTABLE_LOADING
    p = share_p(row["share"], *ends, row.get("runs"), NOTABLE_LOADING)
    # The largest of so many.
    claims = (claim_of(min(1.0, p * len(notable)), "data loading"),)
    numbers = (
        number_of("seconds", row["seconds"], "s", row["seconds_low"], row["seconds_high"]),
        number_of("share", row["share"], "1", *ends),
    )
    return [
        Finding(
            results.name, "input share", CLEAR if sure else OPEN, numbers=numbers, claims=claims,
            words={"what": "Data loading", "whole": "a run", "how": _KEEP},
            subject=results.describe(row), evidence=evidence_of(results, "phases", row),
            reason="" if sure else "no interval, or a wide one",
        )
    ]  # fmt: skip


def score(results: ExperimentResults) -> list[Finding]:
    """The score of the first points of three runs or more, or why one has none."""
    rows = [row for row in results.of(Score) if row.runs >= LEAST_RUNS]
    return [_score(results, row) for row in rows[:MAX_POINTS]]


def _score(results: ExperimentResults, row: Score) -> Finding:
    missed = row.runs - row.reached
    missed_words = f"{missed:,} of {counted(row.runs, 'run')} missed the target"
    flags: list[str] = []
    if row.score is None:
        state, why = ATTENTION, missed_words
        if row.factor is None:
            why = "its runs state several factors"
    else:
        state = CLEAR if row.runs == row.asked else OPEN
        why = f"MLPerf takes {row.asked or 'another number of'} runs" if state == OPEN else ""
        flags = [f"{row.dropped} best and {row.dropped} worst dropped"]
        flags += [missed_words] if missed else []
        flags += [f"times {number(row.factor, 6)} (scaling.json)"] if row.factor != 1 else []
    return Finding(
        results.name, "score", state, evidence=declared_evidence(results, row), reason=why,
        words={"at": f" at {results.describe(row.point)}" if results.axes else ""},
        numbers=(
            number_of("runs", row.runs, "1"), number_of("score", row.score, "s"),
            number_of("dropped", row.dropped, "1"),
        ),
        flags=tuple(flags),
    )  # fmt: skip


RULES = (
    Rule(
        "score", score,
        says={
            CLEAR: "MLPerf score{at} of {runs} runs: {score}.",
            ATTENTION: "No MLPerf score{at} of {runs} runs.",
        },
        next={
            OPEN: "add runs until MLPerf's number is reached",
            ATTENTION: "import what the submission has: scaling.json, runs that reach the target "
            "({dropped} may miss it)",
        },
    ),
    Rule(
        "input share", input_findings,
        says={CLEAR: "{what} takes its largest share of {whole} at {subject}: {share:%}."},
        next={CLEAR: "{how}"},
    ),
)  # fmt: skip
