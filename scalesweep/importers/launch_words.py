"""What a command starts: its ranks, those on a node, and other options, in which points differ."""

import re
from collections.abc import Mapping
from itertools import takewhile, zip_longest
from pathlib import PurePosixPath
from typing import NamedTuple

# Meaning of an option: ranks; nodes; ranks on a node; and jsrun's resource sets, which have ranks.
_RANKS, _NODES, _EACH, _SETS, _IN_SET, _ON_HOST = "ranks", "nodes", "each", "sets", "in", "on"
_MPI: Mapping[str, str] = {
    "-n": _RANKS, "-np": _RANKS, "--n": _RANKS, "--np": _RANKS,
    "-N": _EACH, "-npernode": _EACH, "--npernode": _EACH, "-ppn": _EACH, "--ppn": _EACH,
    "-perhost": _EACH, "-ranks-per-node": _EACH,
}  # fmt: skip
_SLURM: Mapping[str, str] = {
    "-n": _RANKS, "--ntasks": _RANKS, "-N": _NODES, "--nodes": _NODES,
    "--ntasks-per-node": _EACH, "--tasks-per-node": _EACH,
}  # fmt: skip
_JSRUN: Mapping[str, str] = {
    "-n": _SETS, "--nrs": _SETS, "-a": _IN_SET, "--tasks_per_rs": _IN_SET,
    "-r": _ON_HOST, "--rs_per_host": _ON_HOST, "-p": _RANKS, "--np": _RANKS,
}  # fmt: skip
_LAUNCHERS: Mapping[str, Mapping[str, str]] = {
    **dict.fromkeys(("mpirun", "mpiexec", "mpiexec.hydra", "orterun", "prterun", "ibrun"), _MPI),
    "horovodrun": _MPI, "aprun": _MPI, "mpirun_rsh": _MPI,
    "srun": _SLURM, "flux": _SLURM, "jsrun": _JSRUN,
}  # fmt: skip
_MOST = 9_999_999
_NUMBER = re.compile(r"[1-9]\d{0,6}", re.ASCII)
_PER_NODE = re.compile(r"(?:.*:)?ppr:([1-9]\d{0,5}):node(?:[:,].*)?", re.ASCII)
_ATTACHED = re.compile(r"(-[nN])=?([1-9]\d{0,6})", re.ASCII)


class Launched(NamedTuple):
    """What a command starts; None for what it does not say.

    ``options``: its other words, but for programs and lists of hosts: what was set.
    """

    ranks: int | None
    ranks_per_node: int | None
    options: str | None = None


UNKNOWN = Launched(None, None)
# Options whose value says where, not how.
_HOSTS = re.compile(r"--?(?:hostfile|machinefile|hosts?|H|nodelist|w|f|hostlist)(?:=.*)?")


def launched(command: str) -> Launched | None:
    """What the first launcher in a command starts; None if there is no launcher."""
    words = command[:20_000].split()
    for place, word in enumerate(words):
        options = _LAUNCHERS.get(PurePosixPath(word.lstrip("$+(`")).name)
        if options is not None:
            said = _launched(words[place + 1 :], options)
            variables = [word for word in words[:place] if re.fullmatch(r"[A-Z]\w*=\S+", word)]
            return said._replace(options=_others([*variables, *words[place + 1 :]], options))
    return None


def _others(words: list[str], options: Mapping[str, str]) -> str | None:
    """The words that are neither counts, nor hosts, nor OSU's program; None if there are none."""
    program = next((i for i, word in enumerate(words) if "osu_" in word), len(words))
    kept: list[str] = []
    skip = False
    for word, value in zip_longest(words[:program], words[1:program]):
        name, mark, attached = word.partition("=")
        counts = options.get(name) or _HOSTS.fullmatch(word)
        if skip or _ATTACHED.fullmatch(word) or word in ("-pernode", "--pernode"):
            skip = False
        elif counts or _PER_NODE.fullmatch(attached or value or ""):
            skip = not mark
        else:
            kept.append(word)
    kept += takewhile(lambda word: not re.match(r"\d?[>|&;]", word), words[program + 1 :])
    return " ".join(kept)[:200] or None


def _launched(words: list[str], options: Mapping[str, str]) -> Launched:
    """The ranks, and the ranks per node, that options of a launcher ask for; None where none says.

    ``options``: what an option means, by its name. Options that contradict each other count as
    none.
    """
    said: dict[str, int] = {}
    each: set[int] = set()
    for place, word in enumerate(words):
        name, mark, value = word.partition("=")
        if attached := _ATTACHED.fullmatch(word):
            name, value = attached[1], attached[2]
        elif not mark:
            value = words[place + 1] if place + 1 < len(words) else ""
        if word in ("-pernode", "--pernode") and options is _MPI:
            each.add(1)
        elif name in ("-map-by", "--map-by") and (match := _PER_NODE.fullmatch(value)):
            each.add(int(match[1]))
        elif (meaning := options.get(name)) and _NUMBER.fullmatch(value):
            if meaning == _EACH:
                each.add(int(value))
            else:
                said.setdefault(meaning, int(value))
    ranks, nodes = said.get(_RANKS), said.get(_NODES)
    if _SETS in said:
        ranks = ranks or said[_SETS] * said.get(_IN_SET, 1)
        each |= {said[_ON_HOST] * said.get(_IN_SET, 1)} if _ON_HOST in said else set()
    per_node = each.pop() if len(each) == 1 else None  # two that differ say nothing
    if nodes and per_node and ranks is None:
        ranks = nodes * per_node
    if nodes and ranks and per_node is None and ranks % nodes == 0 and not each:
        per_node = ranks // nodes
    if ranks is not None and ranks > _MOST:
        ranks = None
    return Launched(ranks, min(per_node, ranks) if per_node and ranks else per_node)
