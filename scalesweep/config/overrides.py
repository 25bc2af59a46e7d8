"""What ``snakemake --config KEY=VALUE`` may say."""

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from scalesweep.core.errors import UserError, choices
from scalesweep.core.profilers import KINDS, NONE

# What a call asks for where it names no verb: to run the campaign.
RUN, PLAN, REPORT = "run", "plan", "report"
# The words after `snakemake` that --config can be of; any other target runs the campaign.
VERBS = (RUN, PLAN, REPORT)


class Override(NamedTuple):
    """A key of --config: the verbs that read it, and what it does."""

    verbs: tuple[str, ...]
    text: str


OVERRIDES = {
    "campaign": Override(
        VERBS,
        "the campaign `config/campaigns/NAME.yaml`: the study's own, or one that is shipped",
    ),
    "site": Override(VERBS, "use this site instead of the campaign's"),
    "results": Override(VERBS, "use this results folder instead of the campaign's"),
    "try": Override(
        (RUN,),
        "`shapes`: of the pending runs only one of each shape (experiment, ranks, what Slurm is "
        "asked for)",
    ),
    "profile": Override(
        VERBS, "run each point once more under this profiler, instead of every experiment's own"
    ),
    "retry": Override(
        (RUN,),
        "`unsupported`: run the points again that this machine could not run; the old records are "
        "kept as `record.json.unsupported`",
    ),
    "history": Override((RUN, REPORT), "keep the finished points as a session in this folder"),
    "baseline": Override(
        (RUN, REPORT), "the commit or tag that counts as 1.0, instead of the last stable level"
    ),
}
_ALLOWED = {
    "profile": (NONE, *KINDS),
    "retry": ("unsupported",),
    "try": ("shapes",),
}


def read_options(overrides: Mapping[str, Any], verbs: Collection[str] = (RUN,)) -> dict[str, str]:
    """The overrides, which are texts.

    ``verbs`` are what the call asks for, of VERBS. Raises UserError for an unknown key, one that
    none of them reads, a value that Snakemake has read as something else, or one not allowed.
    """
    for key, value in overrides.items():
        where = f"--config {key}"
        if key not in OVERRIDES:
            raise UserError(f"{where}: unknown; {choices(key, OVERRIDES)}")
        if not set(OVERRIDES[key].verbs) & set(verbs):
            asked, readers = map(_calls, (sorted(verbs), OVERRIDES[key].verbs))
            raise UserError(f"{where}: {asked} does not read it; read by: {readers}")
        if not isinstance(value, str):
            raise UserError(
                f"{where}: Snakemake reads {value!r}, which is no text: write "
                f"'{key}= \"TEXT\" ', or `scalesweep`, which takes texts as they are"
            )
        if not value:
            raise UserError(f"{where}: is empty; leave it out, or name a value")
        if value not in _ALLOWED.get(key, (value,)):
            raise UserError(f"{where}={value}: {choices(value, _ALLOWED[key])}")
    return dict(overrides)


def _calls(verbs: Collection[str]) -> str:
    return ", ".join("`snakemake`" if verb == RUN else f"`snakemake {verb}`" for verb in verbs)
