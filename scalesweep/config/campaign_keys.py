"""The keys of a campaign: their types, defaults and words."""

from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field

from scalesweep.config.command_template import Program
from scalesweep.config.experiment_keys import Alone, ExperimentKeys, Values
from scalesweep.config.models import (
    FILLED,
    Count,
    FileName,
    Model,
    Positive,
    Share,
    Text,
    instead_of,
    matching,
)
from scalesweep.core.plan_format import TARGET_EFFICIENCY

MARGIN = 0.03  # the relative change of a metric that matters
_ExperimentName = Annotated[
    str, matching("[A-Za-z][A-Za-z0-9_-]*", "letters, digits, '_' and '-', a letter first")
]


class Sites(Model):
    """The machine."""

    FORM: ClassVar[str] = "a name (letters, digits, '.', '_' and '-') or {local: NAME, slurm: NAME}"
    local: FileName
    slurm: FileName | None = None
    """with `--profile slurm`; default: the same"""


class HistorySettings(Model):
    """Where finished points are kept as a session, and how later ones are judged against them."""

    FORM: ClassVar[str] = "a folder, or {folder: FOLDER, margin: 3 %, baseline: COMMIT}"
    folder: Annotated[Path, AfterValidator(Path.expanduser)]
    """any number of campaigns, sites and users may share it"""
    margin: Share = MARGIN
    """relative change that matters, such as `3 %`"""
    baseline: str = ""
    """commit or tag that counts as 1.0, in quotes; default: the last stable level"""


class TrackKeys(Model):
    """The measured program's repository."""

    repository: Annotated[Path, AfterValidator(Path.expanduser)] | None = None
    """its path"""
    build: tuple[Text, ...] = ()
    """shell lines that build a checkout ([A/B](../guide/history.md#compare-two-commits))"""


class ControlKeys(Model):
    """A point that is measured at intervals between all others."""

    experiment: str
    """one of the experiments"""
    point: Values = Field({})
    """the values that identify one of its points; default: the only one"""
    every: Count = 10
    """at most so many runs between two of its runs"""


class CampaignKeys(Model):
    """A campaign says what to measure: `config/config.yaml` (what `snakemake` runs),
    `config/campaigns/NAME.yaml`, or any file. All mistakes are reported before anything runs, each
    in one line that names file, key and allowed values. YAML is read as YAML 1.2: `off` is the word
    off, `1e-3` a number, `0o10` is 8; a key may occur once only."""

    campaign: FileName
    """title of plan and report"""
    description: str = ""
    """shown in the report"""
    site: Annotated[Sites, instead_of("local", str)]
    """a file in `config/sites/`, or one for each way to run"""
    results: Text = "results"
    """folder of all results: new, empty or scalesweep's; campaigns that share it share runs"""
    programs: dict[FileName, Program] = Field({})
    """name -> path, before the site's, of a program in a benchmark's command (`{program:NAME}`)"""
    budget_node_hours: Positive | None = None
    """nothing is submitted to Slurm unless all jobs fit ([budget](../guide/campaigns.md#budget))"""
    concurrent_runs: Alone | None = None
    """1: its runs [one by one](../guide/campaigns.md#runs-that-share-a-data-set)"""
    consumer: Text | None = None
    """results folder of trainings on dummy input:
    [does reading keep up?](../guide/machine.md#does-reading-keep-up-with-training)"""
    order: Literal["random", "as_written"] = "random"
    """in which runs start: randomised blocks, or as the file lists them
    ([order](../guide/campaigns.md#order-and-a-control-point))"""
    accept_stale: tuple[str, ...] = ()
    """experiments whose [stale runs](../guide/integrity.md#stale-runs) count"""
    target_efficiency: Share = TARGET_EFFICIENCY
    """from which efficiency on a scale is worth running, such as `70 %`"""
    history: Annotated[HistorySettings, instead_of("folder", str)] | None = None
    """where finished points are kept, and judged over time ([history](../guide/history.md))"""
    track: TrackKeys = TrackKeys.model_construct()
    """another [repository](../guide/history.md#whose-commit) than that of the program's file"""
    imported: dict[str, Any] = Field({})
    """what imports left out; written by the importers"""
    control: ControlKeys | None = None
    """a point [measured between all others](../guide/campaigns.md#order-and-a-control-point)"""
    experiments: Annotated[dict[_ExperimentName, ExperimentKeys], FILLED]
    """name -> experiment"""

    @property
    def seed(self) -> int | None:
        """Of the order of runs; None: as the file lists them."""
        return 0 if self.order == "random" else None
