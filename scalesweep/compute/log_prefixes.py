"""What stands in front of a program's own words in a line: labels of collectors and of ranks."""

import re
from typing import NamedTuple

from scalesweep.compute.log_lines import Line

# What collectors of logs put in front of every line: Kubernetes and continuous integration a time
# (containerd the stream, too), docker compose the container, Ray and SkyPilot the actor, syslog
# host and process.
_COLLECTED = re.compile(
    r"(?:\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3,9}Z (?:std(?:out|err) [FP] )?"
    r"|[A-Za-z][\w.]{0,40}(?:-[\w.]{1,40}){0,6}-\d{1,6} {1,8}\| "
    r"|\([^()]{1,80}\bpid=\d{1,9}(?:, ip=[\d.]{7,15})?\) "
    r"|[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \S{1,60} \S{1,60}\[\d{1,9}\]: "
    r"|std(?:out|err): |wandb: )"
)
_SRUN = re.compile(r" {0,6}(\d{1,7}): ")
# torchrun's label, also behind the time that a continuous integration service writes.
_TORCH = re.compile(r"(?:\S{1,40} )?\[(?:rank|default|trainer|worker)(\d{1,7})\]: ?")
_LABELS = re.compile(rf"{_SRUN.pattern}|{_TORCH.pattern}")


class Printer(NamedTuple):
    """Who printed a line: the rank by the launcher's label, and by torchrun's."""

    rank: int | None = None
    local: int | None = None


def uncollected(text: str) -> str:
    """A line without what collectors of logs put in front, two of them at most."""
    for _ in range(2):
        if (match := _COLLECTED.match(text)) is None:
            return text
        text = text[match.end() :]
    return text


def bare(text: str) -> str:
    """A line without what collectors of logs, ``srun --label`` and torchrun put in front."""
    text = uncollected(text)
    for _ in range(2):
        if (match := _LABELS.match(text)) is None:
            return text
        text = text[match.end() :]
    return text


def has_srun_label(text: str) -> bool:
    """Whether a line begins as ``srun --label`` writes it."""
    return _SRUN.match(uncollected(text)) is not None


def unlabelled(line: Line, srun: bool) -> tuple[str, Printer]:
    """The program's own words, and who printed them; ``srun``: its labels are there."""
    text, rank = uncollected(line.text), line.rank
    if srun and rank is None and (label := _SRUN.match(text)):
        text, rank = text[label.end() :], int(label[1])
    if "]:" in text and (label := _TORCH.match(text)):
        return text[label.end() :], Printer(rank, int(label[1]))
    return text, Printer(rank)
