"""What a command starts: its ranks, those on a node, and other options, in which points differ."""

import re
from collections.abc import Mapping
from typing import NamedTuple

# Options by meaning: ranks, nodes, ranks on a node.
_MPI = {"ranks": r"--?np?", "each": r"-N|--?npernode|--?ppn|-perhost|-ranks-per-node"}
_SLURM = {"ranks": r"-n|--ntasks", "nodes": r"-N|--nodes", "each": r"--n?tasks-per-node"}
_LAUNCHERS: Mapping[str, Mapping[str, str]] = {
    r"mpirun|mpiexec(?:\.hydra)?|orterun|prterun|ibrun|horovodrun|aprun|mpirun_rsh": _MPI,
    r"srun|flux": _SLURM,
}
_LAUNCHER = r"(?P<before>.*?)(?:^|[\s/$+(`])(?:{})\s+(?P<tail>.*)"
_COUNT = r"(?<!\S)(?:{})[=\s]*([1-9]\d{{0,6}})(?!\S)"
_PER_NODE = re.compile(r"(?<!\S)--?map-by[=\s]+\S*?ppr:([1-9]\d*):node\S*")
_ONE_EACH = re.compile(r"(?<!\S)--?pernode(?!\S)")
# Options whose value says where, not how; a shell's redirections.
_HOSTS = re.compile(r"(?<!\S)--?(?:hostfile|machinefile|hosts?|H|nodelist|w|f|hostlist)[=\s]+\S+")
_AFTER = re.compile(r"\s\d?[>|&;].*")


class Launched(NamedTuple):
    """What a command starts; None for what it does not say.

    ``options``: its other words, but for programs and lists of hosts: what was set.
    """

    ranks: int | None
    ranks_per_node: int | None
    options: str | None = None


UNKNOWN = Launched(None, None)


def launched(command: str) -> Launched | None:
    """What the first launcher in a command starts; None if there is no launcher."""
    for names, options in _LAUNCHERS.items():
        if match := re.match(_LAUNCHER.format(names), command[:20_000]):
            return _launched(match["before"], _AFTER.sub("", match["tail"]), options)
    return None


def _launched(before: str, tail: str, options: Mapping[str, str]) -> Launched:
    """Counts that contradict each other say nothing."""
    program = re.search(r"(?<!\S)\S*osu_\S*", tail)
    head, behind = (tail[: program.start()], tail[program.end() :]) if program else (tail, "")
    said: dict[str, set[int]] = {"each": set(map(int, _PER_NODE.findall(head)))}
    said["each"] |= {1} if _ONE_EACH.search(head) else set()
    rest = _ONE_EACH.sub(" ", _PER_NODE.sub(" ", head))
    for meaning, names in options.items():
        pattern = re.compile(_COUNT.format(names))
        said.setdefault(meaning, set()).update(map(int, pattern.findall(rest)))
        rest = pattern.sub(" ", rest)
    number = {meaning: counts.pop() for meaning, counts in said.items() if len(counts) == 1}
    ranks, nodes, each = (number.get(meaning) for meaning in ("ranks", "nodes", "each"))
    if nodes and each and ranks is None:
        ranks = nodes * each
    if nodes and ranks and each is None and ranks % nodes == 0 and not said["each"]:
        each = ranks // nodes
    words = re.findall(r"(?<!\S)[A-Z]\w*=\S+", before) + f"{_HOSTS.sub(' ', rest)} {behind}".split()
    return Launched(
        ranks, min(each, ranks) if each and ranks else each, " ".join(words)[:200] or None
    )
