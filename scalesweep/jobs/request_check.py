"""What speaks against the requests of a campaign: asked of Slurm before anything is submitted."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from scalesweep.config.site import Site
from scalesweep.core.errors import UserError
from scalesweep.slurm import commands
from scalesweep.slurm.job_shape import Shape, of_slurm, staging_shape


def refused_shapes(
    site: Site, where: str, shapes: Iterable[Shape], staging: bool, patience_s: float = 0.0
) -> dict[Shape, str]:
    """Those of these requests that Slurm would not take, and why; each kind is asked for once.

    ``where`` starts the reason; ``staging``: whether data sets may have to be made; ``patience_s``:
    as for ``commands.ask``. Raises UserError if it takes none, or no staging job that is needed.
    """
    words = _Words(site, where, patience_s)
    if staging and (why := words.against(staging_shape(site))):
        raise UserError(f"{why} (for staging)")
    every = sorted(set(shapes), key=lambda s: (-s.minutes, -s.nodes, s.sbatch_words()))
    refused: dict[Shape, str] = {}
    # Limits may differ from point to point: Slurm that takes the longest of equal requests takes
    # the others.
    taken: set[Shape] = set()
    for shape in every:
        if (key := replace(shape, minutes=0)) in taken:
            continue
        if why := words.against(shape):
            refused[shape] = why
        else:
            taken.add(key)
    if every and len(refused) == len(every):
        raise UserError(next(iter(refused.values())))
    return refused


@dataclass
class _Words:
    """What speaks against requests on a site, by sinfo and sbatch --test-only."""

    site: Site
    where: str
    patience_s: float

    @cached_property
    def _partitions(self) -> Mapping[str, commands.Partition]:
        return commands.partitions(self.patience_s)

    def against(self, shape: Shape) -> str:
        """Why Slurm would not take a request; empty if it would."""
        partition = of_slurm(self.site).partition
        asked = ([shape.constraint], shape.minutes, self.where, self._partitions, shape.nodes)
        try:
            commands.check_names(partition, *asked)
        except UserError as error:
            return str(error)
        words = shape.sbatch_words()
        why = commands.refusal(words, self.patience_s)
        return f"{self.where}: Slurm refuses sbatch {' '.join(words)}: {why}" if why else ""
