r"""Patterns of lines, with short names for what programs print.

``<ms>`` is a group of a number (``1,786``, ``0.5``, ``1e-3``, ``11.5K``), ``<step:i>`` of a whole
number, ``<loss:w>`` of a word without spaces; all else is as in ``re``.
"""

import re

_KINDS = {
    "": r"\d[\d,]{0,24}(?:\.\d{0,25})?(?:[eE][+-]?\d{1,3})?[KMGBTP]?",
    "i": r"\d[\d,]{0,24}",
    "w": r"[^\s,|]{1,80}",
}
_GROUP = re.compile(r"(?<!\?P)<(?P<name>[a-z_]+)(?::(?P<kind>[iw]))?>")


def line(*parts: str) -> re.Pattern[str]:
    """The pattern of a line, of all parts one after the other."""
    return re.compile(_GROUP.sub(_group, "".join(parts)))


def _group(match: re.Match[str]) -> str:
    return f"(?P<{match['name']}>{_KINDS[match['kind'] or '']})"


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
_LABELS = re.compile(r" {0,6}\d{1,7}: |(?:\S{1,40} )?\[(?:rank|default|trainer|worker)\d{1,7}\]: ?")


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
