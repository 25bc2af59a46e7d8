"""The keys of a campaign: their types, defaults and words."""

from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, Field, Tag

from scalesweep.config.experiment_keys import Alone, ExperimentKeys, Values
from scalesweep.config.models import (
    FILLED,
    UNEQUAL,
    Count,
    FileName,
    Folder,
    Model,
    Positive,
    ProgramName,
    Share,
    Short,
    Text,
    Whole,
    either,
    instead_of,
    matching,
    one_of,
)
from scalesweep.core.plan_format import TARGET_EFFICIENCY

MARGIN = 0.03  # the relative change of a metric that matters
Sites = dict[Annotated[str, one_of(("local", "slurm"))], FileName]
_ExperimentName = Annotated[
    str, matching("[A-Za-z][A-Za-z0-9_-]*", "letters, digits, '_' and '-', a letter first")
]


class BudgetKeys(Model):
    """What the campaign may cost."""

    node_hours: Positive
    """the most that all jobs may cost: with `--profile slurm` nothing is submitted unless all fit
    at their time limits"""


class OrderKeys(Model):
    """In which order runs start."""

    FORM: ClassVar[str] = "as_written, or {seed: NUMBER}"
    seed: Annotated[Whole, Field(ge=0)] | None = 0
    """of the randomised blocks"""


class HistorySettings(Model):
    """Where finished points are kept as a session, and how later ones are judged against them."""

    FORM: ClassVar[str] = (
        "a folder, or {folder: FOLDER, margin: 3 %, margins: {METRIC: 5 %}, baseline: COMMIT}"
    )
    folder: Annotated[Path, AfterValidator(Path.expanduser)]
    """any number of campaigns, sites and users may share it"""
    margin: Share = MARGIN
    """relative change that matters, such as `3 %`"""
    margins: dict[str, Share] = Field(default_factory=dict)
    """metric -> margin of its own"""
    baseline: str = ""
    """commit or tag that counts as 1.0, in quotes; default: the last stable level"""

    def margin_of(self, metric: str) -> float:
        """The relative change of a metric that matters."""
        return self.margins.get(metric, self.margin)


class TrackKeys(Model):
    """The measured program's repository."""

    repository: Annotated[Path, AfterValidator(Path.expanduser)] | None = None
    """its path"""
    build: tuple[Text, ...] = ()
    """shell lines that build a fresh checkout, called in its top folder
    ([A/B comparison](../guide/history.md#compare-two-commits))"""


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
    site: Annotated[
        Annotated[FileName, Tag("#text")] | Annotated[Sites, FILLED, Tag("#map")],
        either("a name (letters, digits, '.', '_' and '-') or {local: NAME, slurm: NAME}"),
    ]
    """a file in `config/sites/`, or `{local: NAME, slurm: NAME}`: `slurm` applies with
    `--profile slurm` and `local` without"""
    results: Text = "results"
    """the folder for everything that the campaign writes: new, empty or made by scalesweep.
    Campaigns that share a folder share runs; its report is that of the campaign that ran last. The
    default folder is that of one campaign file only"""
    programs: dict[ProgramName, Text] = Field({})
    """name -> path of a program that a benchmark's command asks for (`{program:NAME}`); takes
    precedence over the site's"""
    budget: BudgetKeys | None = None
    """what the campaign may cost ([budget](../guide/campaigns.md#budget))"""
    concurrent_runs: Alone | None = None
    """1: no two runs of the campaign at the same time, for what they share, such as the files that
    all of them read
    ([runs that share a data set](../guide/campaigns.md#runs-that-share-a-data-set))"""
    consumer: Folder | None = None
    """results folder of a campaign of the same site that trains on dummy input: reading is
    [held against what it consumes](../guide/machine.md#does-reading-keep-up-with-training)"""
    order: Annotated[OrderKeys, Short(lambda _: {"seed": None}, ("as_written",))] = (
        OrderKeys.model_construct()
    )
    """in which runs start: randomised blocks by this seed (`{seed: NUMBER}`), or as the file lists
    them (`as_written`) ([order](../guide/campaigns.md#order-and-a-control-point))"""
    accept_stale: Annotated[tuple[str, ...], UNEQUAL] = ()
    """experiments whose runs count although what they measured differs from the plan
    ([stale runs](../guide/integrity.md#stale-runs))"""
    target_efficiency: Share = TARGET_EFFICIENCY
    """from which efficiency on a scale is worth running, such as `70 %`: verdicts, figures,
    predictions and advice are about it; no part of run ids"""
    history: Annotated[HistorySettings, instead_of("folder", str)] | None = None
    """a folder, or a map: where finished points are kept as a session, and how later ones are
    judged ([history](../guide/history.md))"""
    track: TrackKeys = TrackKeys.model_construct()
    """the measured program's repository, where it is not that of the program's file
    ([whose commit](../guide/history.md#whose-commit))"""
    imported: dict[str, Any] = Field({})
    """what imports left out; written by the importers"""
    control: ControlKeys | None = None
    """a point measured at intervals between all others, to show drift
    ([control point](../guide/campaigns.md#order-and-a-control-point))"""
    experiments: Annotated[dict[_ExperimentName, ExperimentKeys], FILLED]
    """name -> experiment"""
