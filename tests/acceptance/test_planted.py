"""Gate: planted faults come back: cause, ranks and ms; nothing else is called clear.

Arrays of a program that nobody ran (`faults`, `made`), an experiment a fault, all in one campaign.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from tests.acceptance.faults import Fault, Noise, Program, always, both, every, in_turn, planted_run
from tests.acceptance.made import Program as Made
from tests.acceptance.made import make_tables, write_campaign
from tests.acceptance.places import CAUSE, CLEAR, STEP_RULES, TERM, VERDICT, read
from tests.conftest import make_project

TARGET, NEAR, STEPS, REPEATS, BATCH = 0.8, 0.05, 60, 3, 32
RATE = "images_per_second"
# What is planted: a cause, on which ranks, and how many ms it is where it is.
Planted = tuple[str, str, float]


@dataclass(frozen=True)
class Case:
    """Faults of a run of ``ranks``; ``causes`` are those of ranks, ``term`` what all ranks have, as
    the term of the time breakdown and its ms beyond the run of one rank."""

    faults: dict[str, Fault]
    causes: Sequence[Planted] = ()
    term: tuple[str, float] | None = None
    ranks: int = 2

    @property
    def program(self) -> Program:
        """The program with the faults."""
        return Program(faults=self.faults)

    def efficiency(self) -> float:
        """That of the runs without noise."""
        alone, several = (wall(run(self, ranks, Noise(0, 0), 0)) for ranks in (1, self.ranks))
        return alone / several


def run(case: Case, ranks: int, noise: Noise, seed: int) -> dict[str, np.ndarray]:
    """Arrays of a run; of one rank, the reference, without a fault."""
    alone = replace(Program(), exchange=0.2)
    return planted_run(case.program if ranks > 1 else alone, ranks, STEPS, seed, noise)


def wall(arrays: dict[str, np.ndarray]) -> float:
    """Seconds of all steps."""
    return float((arrays["step_times"] + arrays["span_between"]).sum(axis=0).max())


def late(cause: str, ms: float, rank: int = 1) -> Case:
    """A rank that is late in every step."""
    return Case({cause: always(ms, rank)}, [(cause, str(rank), ms)])


def stalls(cause: str, ms: float, steps: int, rank: int) -> Case:
    """A rank that is late in single steps."""
    return Case({cause: every(ms, steps, rank)}, [(cause, str(rank), ms)])


def slow_network(ms: float) -> Case:
    """An exchange that takes longer: 4 ms and these, of the 0.2 ms of one rank."""
    return Case({"transfer": always(ms, 0)}, term=("transfer", 3.8 + ms))


# 19 faults of 20 % of a step and more on two ranks; of the first 15 the efficiency is 53 to 66 %.
NINETEEN = {
    "compute_30": late("compute", 30), "compute_40": late("compute", 40),
    "compute_50": late("compute", 50), "compute_of_rank_0": late("compute", 40, 0),
    "input_30": late("input", 30), "input_40": late("input", 40), "input_50": late("input", 50),
    "logging": late("between", 40, 0),
    "network_30": slow_network(30), "network_50": slow_network(50),
    "checkpoint_400": stalls("between", 400, 10, 0), "stalls_600": stalls("compute", 600, 20, 1),
    "input_of_all": Case({"input": always(40, 0, 1)}, term=("input", 40)),
    "in_turn": Case({"compute": in_turn(40, 2)}, [("compute", "0, 1", 40)]),
    "both_late": Case({"compute": always(30, 1), "input": always(30, 0)},
                      [("compute", "1", 30), ("input", "0", 30)]),
    "compute_13": late("compute", 13), "input_13": late("input", 13),
    "checkpoint_500": stalls("between", 500, 25, 0), "network_13": slow_network(13),
}  # fmt: skip
ALL = (0, 1, 2, 3)
MORE = {
    "nothing": slow_network(0), "nothing_4": replace(slow_network(0), ranks=4),
    "straggler_4": replace(late("compute", 30, 2), ranks=4),
    "stalls_4": replace(stalls("compute", 300, 20, 1), ranks=4),
    "two_causes_4": Case({"compute": always(30, 1), "input": always(20, 2)},
                         [("compute", "1", 30), ("input", "2", 20)], ranks=4),
    "straggler_and_checkpoint_4": Case({"compute": always(30, 1), "between": every(400, 20, 3)},
                                       [("compute", "1", 30), ("between", "3", 400)], ranks=4),
    "pauses_4": Case({"between": every(300, 3, *ALL)}, [("between", "0, 1, 2, 3", 300)], ranks=4),
    "pauses_and_logging_4": Case(
        {"between": both(every(300, 3, *ALL), always(40, 0))},
        [("between", "0, 1, 2, 3", 300), ("between", "0", 40)], ranks=4,
    ),
    "pauses_and_input_4": Case(
        {"between": every(300, 3, *ALL), "input": every(200, 5, *ALL)},
        [("between", "0, 1, 2, 3", 300), ("input", "0, 1, 2, 3", 200)], ranks=4,
    ),
}  # fmt: skip
CASES = {**NINETEEN, **MORE}
# ms of computation by which runs differ: 2 % of a step; and 8 %, one run of six being disturbed by
# others, as on a busy machine.
QUIET, LOUD = Noise(1, 1.25), Noise(1, 5)
DISTURBED, OTHERS = Noise(1, 5, spikes=0.3), 0.3
LEVELS = {"quiet": CASES, "loud": NINETEEN}
QUICK = ("quiet",)
# By level: clear verdicts of the 15; causes of the 19 that are clear and right; verdicts that are
# not clear though the 95 % interval is beyond the target. Of the loud ones, whose points have five
# runs in all, 12 verdicts are aimed at.
VERDICTS = {"quiet": 15, "loud": 11}
CAUSES = {"quiet": 18, "loud": 15}
SHY = {"quiet": 0, "loud": 3}


@dataclass(frozen=True)
class Told:
    """What the tables of an experiment say."""

    case: Case
    results: Path
    experiment: str

    @property
    def clear(self) -> set[str]:
        """Rules whose sentences are clear."""
        found = read(self.results, "findings", self.experiment)
        return {row["rule"] for row in found if row["state"] == CLEAR}

    def causes(self) -> dict[tuple[str, str], tuple[float, bool]]:
        """By cause and ranks how many ms longer, and whether a gain without it is sure."""
        return {
            (row[CAUSE["cause"]], row[CAUSE["ranks"]]): (
                float(row[CAUSE["ms"]]), row[CAUSE["sure"]] == "True"
            )
            for row in read(self.results, "causes", self.experiment)
            if row[CAUSE["cause"]] != "all"
        }  # fmt: skip

    def is_right(self) -> bool:
        """Whether the tables hold all that was planted, with its ms, and nothing else as sure."""
        planted, found = (
            {(cause, ranks): ms for cause, ranks, ms in self.case.causes},
            self.causes(),
        )
        near = {key: pytest.approx(ms, rel=NEAR) for key, ms in planted.items()}
        held = {key: ms for key, (ms, _) in found.items() if key in planted}
        sure = {key for key, (_, sure) in found.items() if sure}
        name, ms = self.case.term or ("elapsed", None)
        (loss,) = [
            row[TERM["loss"]]
            for row in read(self.results, "breakdown", self.experiment)
            if row["ranks"] == str(self.case.ranks) and row[TERM["term"]] == name
        ]  # fmt: skip
        term = ms is None or float(loss) == pytest.approx(ms, rel=NEAR)
        return held == near and sure <= planted.keys() and term

    def efficiency(self) -> tuple[float, float, float]:
        """That of the most ranks and its interval."""
        rows = read(self.results, "scaling", self.experiment)
        (row,) = [row for row in rows if row["ranks"] == str(self.case.ranks)]
        names = (f"{RATE}_eff{end}_run" for end in ("", "_low", "_high"))
        value, low, high = (float(row[name]) for name in names)
        return value, low, high


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory, whole: bool) -> Callable[[str, str], Told]:
    """``told(level, case)``: what the tables of that experiment say."""
    project = make_project(tmp_path_factory.mktemp("planted") / "project")
    meaning = {RATE: {"unit": "images/s", "better": "higher", "scope": "total"}}
    parameters = {"fault": "none", "level": "quiet"}
    made = Made("planted", parameters, meaning, {"main_metric": RATE})
    made.write(project)
    experiments, minute = {}, 0
    for level in LEVELS if whole else QUICK:
        for name, case in LEVELS[level].items():
            seed = 100 * list(CASES).index(name)
            for ranks in (1, case.ranks):
                for repeat in range(REPEATS):
                    disturbed = level == "loud" and ranks > 1 and repeat == 1
                    noise = DISTURBED if disturbed else {"quiet": QUIET, "loud": LOUD}[level]
                    arrays = run(case, ranks, noise, seed + repeat)
                    others = {"others": OTHERS * disturbed, "cores": 2, "host": "n", "missing": ""}
                    point = {"ranks": ranks, "fault": name, "level": level}
                    images = BATCH * STEPS * ranks
                    made.record(
                        project.path / "planted", point, repeat, {RATE: images / wall(arrays)},
                        arrays, minute, load=others,
                        work={"samples_per_epoch": images, "bytes_per_epoch": None},
                    )  # fmt: skip
                    minute += 1
            experiments[f"{name}_{level}"] = {
                "benchmark": "planted", "axes": {"ranks": [1, case.ranks]}, "repeats": REPEATS,
                "fixed": {"fault": name, "level": level}, "scaling": "weak",
            }  # fmt: skip
    results = write_campaign(project, "planted", experiments)
    make_tables(project, "planted")
    return lambda level, name: Told(CASES[name], results, f"{name}_{level}")


@pytest.mark.parametrize("name", CASES)
def test_a_fault_comes_back_with_rank_and_ms(told: Callable[[str, str], Told], name: str) -> None:
    found = told("quiet", name)
    assert found.is_right(), found.causes()
    assert len(found.causes()) == len(CASES[name].causes), found.causes()
    if not CASES[name].causes:  # what all ranks have is a term of the step
        assert "causes" not in found.clear


@pytest.mark.parametrize(
    "level",
    [pytest.param(level, marks=() if level in QUICK else pytest.mark.whole) for level in LEVELS],
)
def test_what_is_clear_is_true_and_most_of_what_is_true_is_clear(
    told: Callable[[str, str], Told], level: str
) -> None:
    every_one = {name: told(level, name) for name in NINETEEN}
    clear_verdicts = [name for name, one in every_one.items() if VERDICT in one.clear]
    for name in clear_verdicts:
        truth = CASES[name].efficiency()
        assert (truth < TARGET) == (every_one[name].efficiency()[0] < TARGET), name
    causes = [name for name, one in every_one.items() if one.clear & STEP_RULES]
    assert all(every_one[name].is_right() for name in causes)
    below = [name for name, case in NINETEEN.items() if case.efficiency() < TARGET - 0.1]
    assert len(below) == 15
    assert sum(name in clear_verdicts for name in below) >= VERDICTS[level]
    assert len(causes) >= CAUSES[level]
    beyond = [name for name in below if every_one[name].efficiency()[2] < TARGET]
    assert sum(name not in clear_verdicts for name in beyond) <= SHY[level]
