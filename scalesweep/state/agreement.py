"""Whether a record is of what is planned now: its point, its command, the program's files.

Runs share an id if they agree in benchmark, version and what differs from the defaults, so whoever
changes a default, the command, or a program without raising the version plans something else under
the id of what was measured. A record says what it measured (``point``, ``program``); what disagrees
is stale, and neither counted nor run again before the user has decided.
"""

from collections.abc import Mapping
from typing import Any

from scalesweep.compute.job_spec import ProgramOrder
from scalesweep.config.benchmark import Benchmark
from scalesweep.config.campaign import Campaign
from scalesweep.config.experiment import Experiment
from scalesweep.config.parameter import VARIABLE_PREFIX
from scalesweep.config.repeats import Run
from scalesweep.core.files import digest_of, stamp_of
from scalesweep.core.formatting import listed
from scalesweep.core.program_files import described_file, located
from scalesweep.state.programs import program_files, program_order, template_for

OTHER_PATTERNS = "its logs were read with other patterns"  # they can be read again
_SHOWN = 3  # differences that a line names
_FORMAT = 3  # of the comparison: another one compares all records again


class Planned:
    """What the runs of a campaign are to measure: what their records are compared with.

    ``keys``: by run what the comparison rests on besides the run's id, so that a record that was
    compared under the same key needs not be read.
    """

    def __init__(self, campaign: Campaign, runs: Mapping[str, tuple[Experiment, Run]]) -> None:
        """``runs``: those that will be looked at, by the names of their folders."""
        self._campaign, self._runs = campaign, runs
        self._now: dict[str, dict[str, Any]] = {}  # programs as they are, by path
        keys: dict[int, str] = {}
        self.keys: dict[str, str] = {}
        for run_id, (experiment, _) in runs.items():
            benchmark = experiment.benchmark
            if id(benchmark) not in keys:
                keys[id(benchmark)] = _key(campaign, benchmark)
            self.keys[run_id] = keys[id(benchmark)]

    def accepts(self, run_id: str) -> bool:
        """Whether the campaign counts a run whatever its record is of."""
        experiment = self._runs[run_id][0]
        accepted = self._campaign.keys.accept_stale
        return experiment.name in accepted or experiment.part_of in accepted

    def other_patterns(self, run_id: str, said: Mapping[str, Any]) -> bool:
        """Whether the logs of a run were read with other patterns than its benchmark has now, by
        ``notes.extract`` of its record or by failure.json."""
        extract, digest = self._runs[run_id][0].benchmark.extract, said.get("extract_digest")
        return extract is not None and digest not in (None, "", extract.order["digest"])

    def differences(self, run_id: str, record: Mapping[str, Any]) -> list[str]:
        """In what a whole record disagrees with the plan."""
        experiment, run = self._runs[run_id]
        benchmark = experiment.benchmark
        measured = record["point"]
        differences = []
        changed = [
            f"{name} was {measured[name]!r}, is {value!r}"
            for name, value in run.point.items()
            if name in measured and measured[name] != value
        ]
        if changed:
            differences.append(listed(changed, _SHOWN))
        program = record.get("program")
        if not program:  # of an importer
            return differences
        # With the values that were measured: a command differs only if its template does.
        point = {**run.point, **{n: measured[n] for n in run.point if n in measured}}
        now = program_order(self._campaign, benchmark, point)
        used = template_for(int(point["ranks"]))
        was, is_ = (
            (of["command"], of["env"], (of["launch"] or {}).get(used)) for of in (program, now)
        )
        words = ("the command", "its variables", f"launch.{used}")
        if unlike := [word for word, a, b in zip(words, was, is_, strict=True) if a != b]:
            differences.append(f"{listed(unlike)} changed")
        if benchmark.extract is not None and (text := self._program(program["files"], now)):
            differences.append(text)
        if self.other_patterns(run_id, record["notes"].get("extract") or {}):
            differences.append(OTHER_PATTERNS)
        return differences

    def _program(self, measured: Mapping[str, Any], now: ProgramOrder) -> str:
        """Which files of the program have another content now."""
        changed = []
        for name, word in now["files"].items():
            if word not in self._now:
                self._now[word] = described_file(located(word))
            before, is_ = measured.get(name) or {}, self._now[word]
            # By size where no digest is known.
            by = "blake2b" if before.get("blake2b") and is_["blake2b"] else "bytes"
            if None not in (before.get(by), is_[by]) and before[by] != is_[by]:
                changed.append(f"{is_['path']} was edited since")
        return listed(changed, _SHOWN)


def _key(campaign: Campaign, benchmark: Benchmark) -> str:
    """Digest of all that the plan of a run with a given id depends on."""
    own = {n: v for n, v in benchmark.defaults.items() if not n.startswith(VARIABLE_PREFIX)}
    env = {n: p for n, p in benchmark.env.items() if not p.startswith(VARIABLE_PREFIX)}
    parts = [[part.when and part.when.text, part.words] for part in benchmark.command]
    files: dict[str, Any] = {}
    if benchmark.extract is not None:
        for name, word in program_files(campaign, benchmark).items():
            files[name] = [word, stamp_of(str(located(word)))]
    patterns = benchmark.extract and benchmark.extract.order["digest"]
    facts = [_FORMAT, benchmark.name, benchmark.version, own, env, parts, benchmark.launch]
    return digest_of([*facts, patterns, files], 6)
