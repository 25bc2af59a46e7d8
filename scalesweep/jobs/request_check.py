"""What speaks against the requests of a campaign: asked of Slurm before anything is submitted."""

from collections.abc import Iterable
from dataclasses import replace

from scalesweep.config.site import Site
from scalesweep.core.errors import UserError
from scalesweep.slurm import commands
from scalesweep.slurm.job_shape import Shape, staging_shape


def refused_shapes(
    site: Site, where: str, shapes: Iterable[Shape], staging: bool, patience_s: float = 0.0
) -> dict[Shape, str]:
    """Those of these requests that Slurm would not take, and why; each kind is asked for once.

    ``where`` starts the reason; ``staging``: whether data sets may have to be made; ``patience_s``:
    as for ``commands.ask``. Raises UserError if it takes none, or no staging job that is needed.
    """
    if staging and (why := _against(where, staging_shape(site), patience_s)):
        raise UserError(f"{why} (for staging)")
    every = sorted(set(shapes), key=lambda s: (-s.minutes, -s.nodes, s.sbatch_words()))
    refused: dict[Shape, str] = {}
    # Limits may differ from point to point: Slurm that takes the longest of equal requests takes
    # the others.
    taken: set[Shape] = set()
    for shape in every:
        if (key := replace(shape, minutes=0)) in taken:
            continue
        if why := _against(where, shape, patience_s):
            refused[shape] = why
        else:
            taken.add(key)
    if every and len(refused) == len(every):
        raise UserError(next(iter(refused.values())))
    return refused


def _against(where: str, shape: Shape, patience_s: float) -> str:
    """Why Slurm would not take a request; empty if it would."""
    words = shape.sbatch_words()
    why = commands.refusal(words, patience_s)
    return f"{where}: Slurm refuses sbatch {' '.join(words)}: {why}" if why else ""
