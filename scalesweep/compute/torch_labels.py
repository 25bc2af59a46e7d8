"""Labels that torchrun and others put before lines, which a program might also print itself.

torchrun (``--tee``, ``--redirects``) writes ``[<role><local rank>]:``, where the role is
``default`` unless ``--role`` names another, and older ones ``[<rank>]:``; PyTorch itself
``[rank<N>]:`` before what ends a rank (torch/distributed/elastic/multiprocessing/api.py). Under
srun --label, whose tasks are the nodes then, both count together. Standard library only: the
launcher reads logs on compute nodes.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from scalesweep.compute.log_lines import Line, open_packed, read_lines

_NAMED = re.compile(r"\[(?:rank|default|trainer|worker)(?P<rank>\d{1,7})\]:[ ]?")
_NUMBERED = re.compile(r"\[(?P<rank>\d{1,7})\]:[ ]?")
_COLON = re.compile(r" {0,6}(?P<rank>\d{1,7}): ?")
# What srun and slurmstepd write themselves has no label.
_OF_SLURM = re.compile(r"(?:srun|slurmstepd(?:-[\w.]{1,80})?): ")
# Whether any line may have a label that the rest of the file must confirm.
_UNSURE = re.compile(rb"(?:^|[\r\n])(?: {0,6}\d{1,7}: ?)?(?:\[\d{1,7}\]:| {0,6}\d{1,7}: ?)")
_CHUNK_BYTES = 1 << 20


@dataclass(frozen=True)
class Labels:
    """Which labels the lines of a file have, besides those that ``read_lines`` takes off.

    ``tasks`` are those of srun, each of which may be several ranks.
    """

    ranks: int
    numbered: bool = False
    colon: bool = False
    tasks: int = 1

    def of(self, line: Line) -> tuple[str, int | None]:
        """The text of a line without its labels, and the rank that printed it."""
        text, rank = line.text, line.rank
        if rank is None and self.colon and (match := _COLON.match(text)):
            text, rank = text[match.end() :], int(match["rank"])
        named = _NAMED.match(text) or (_NUMBERED.match(text) if self.numbered else None)
        if named is None:
            return text, rank
        own = int(named["rank"])
        text = text[named.end() :]
        if rank is None:
            return (text, own) if own < self.ranks else (line.text, None)
        each = self.ranks // self.tasks
        # A task that is a rank itself says so once more.
        return text, rank if each < 2 or own >= each else rank * each + own


def labels_of(path: Path, ranks: int, srun_labels: bool) -> Labels:
    """What labels a log of so many ranks has.

    A bare number is one only where the file has exactly those of all ranks, ``N:`` moreover before
    every line but Slurm's own: else it may be a table, or a step's number. Raises OSError if it
    cannot be read.
    """
    if ranks < 2 or not (srun_labels or _may_be_labelled(path)):
        return Labels(ranks)
    numbers: set[int] = set()
    colons: set[int] = set()
    tasks: set[int] = set()
    all_colons, named = True, False
    for line in read_lines(path, srun_labels):
        text = line.text
        if line.rank is not None:
            tasks.add(line.rank)
        if match := _COLON.match(text):
            colons.add(int(match["rank"]))
            text = text[match.end() :]
        elif text.strip() and not _OF_SLURM.match(text):
            all_colons = False
        if match := _NUMBERED.match(text):
            numbers.add(int(match["rank"]))
        named = named or _NAMED.match(text) is not None
    # Those of all ranks, or of the tasks that torchrun's labels divide further.
    whole = colons == set(range(len(colons))) and ranks % max(1, len(colons)) == 0
    colon = all_colons and not tasks and whole and (named or len(colons) == ranks)
    return Labels(
        ranks, numbers == set(range(ranks)), colon, max(1, len(colons) if colon else len(tasks))
    )


def _may_be_labelled(path: Path) -> bool:
    rest = b"\n"
    with open_packed(path) as file:
        while chunk := file.read(_CHUNK_BYTES):
            if _UNSURE.search(rest + chunk):
                return True
            rest = chunk[-32:]
    return False
