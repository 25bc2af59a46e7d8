"""The keys of benchmark.yaml: their types, defaults and words."""

from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field, Tag, model_validator

from scalesweep.config.models import (
    FILLED,
    UNEQUAL,
    Count,
    Flag,
    Line,
    Lines,
    Model,
    Name,
    Real,
    Text,
    Variable,
    Whole,
    WrongKeyError,
    either,
    instead_of,
    kind,
    matching,
)

_Kind = Literal["extensive", "intensive", "latency"]
_NEEDED = ("ranks", "ranks_per_node")


def _as_text(given: Any) -> Any:
    return str(given) if isinstance(given, int | float) else given


_Expression = Annotated[Line, BeforeValidator(_as_text)] | None
_Given = Annotated[Line, BeforeValidator(_as_text)]


class ParameterKeys(Model):
    """A parameter."""

    types: Annotated[
        tuple[Line, ...], BeforeValidator(lambda v: [v] if kind(v) == "#text" else v), FILLED
    ] = Field(alias="type")
    """`integer`, `number`, `string`, `boolean`, `array` or `null`, or a list of these"""
    default: Any
    """part of what a run means: a changed default needs a new `version`"""
    minimum: Real = None
    """least allowed value"""
    maximum: Real = None
    """largest allowed value"""
    enum: Annotated[list[Any], FILLED] | None = None
    """allowed values"""
    items: Literal["integer", "number", "string"] | None = None
    """of an array"""
    length: Count | None = None
    """of an array"""
    unit: Line | None = None
    """shown with every value"""
    workload: Flag = False
    """it says what is computed (a model) and not how; its values are never ranked against each
    other"""
    doc: Line
    """the meaning"""


class Divides(Model):
    """Sizes that must divide without a rest."""

    divisor: Line
    number: Line


class Refuse(Model):
    """Values that do not go together."""

    when: Line
    reason: Line


class WorkersKeys(Model):
    """What runs scale over instead of ranks."""

    name: Name
    count: Line
    """an expression, which reads `ranks`"""
    doc: Line


class WordsKeys(Model):
    """Words of a layout's name."""

    text: Text
    """the words; `{EXPRESSION}` is replaced by its value"""
    when: Line | None = None
    """an expression: whether a layout has them; default: always"""
    ranks: Line | None = None
    """ranks that the words stand for, or a list of the factors of that number; it may read `ranks`.
    Written behind the words where all points have as many ranks, and words that then stand for a
    single rank are left out"""
    only: Literal["one_count", "several_counts"] | None = None
    """where the words are written: where all points have as many ranks, or where they do not;
    default: both"""


class LayoutKeys(Model):
    """Short names for how ranks share the work."""

    parameters: Annotated[tuple[Line, ...], Field(min_length=2), UNEQUAL]
    """the parameters that a layout consists of, without `ranks`"""
    words: Annotated[tuple[WordsKeys, ...], FILLED]
    """what a name consists of, in this order; words that are the same for all points of an
    experiment are left out"""
    doc: Line
    """what the names mean, for the report"""


class AxisKeys(Model):
    """An axis of the mesh of ranks."""

    FORM: ClassVar[str] = "a role, or {role: ROLE, ranks: EXPRESSION}"
    role: Literal["dp", "dp_replicate", "dp_shard", "tp", "pp", "cp", "ep"]
    ranks: Text


def _named_as_role(given: Any) -> Any:
    return {"role": given, "ranks": given} if kind(given) == "#text" else given


_Axis = Annotated[AxisKeys, BeforeValidator(_named_as_role)]


class TransformerKeys(Model):
    """The shape of the decoder-only transformer that is trained, and of its batch."""

    when: _Expression = None
    """whether the model is such a transformer; default: always"""
    parameters: _Expression = None
    """trained parameters with all embeddings, those used twice counted once"""
    layers: _Given
    """blocks; null where not known: what needs none follows still"""
    width: _Given
    """values of a token between blocks; null as `layers`"""
    heads: _Expression = None
    """heads of the attention"""
    kv_heads: _Expression = None
    """heads of keys and values (grouped queries); default: `heads`"""
    ffn_width: _Expression = None
    """width of the layers between the attention of two blocks"""
    gated: _Expression = None
    """whether these have a gate, a third matrix (SwiGLU); default: `false`"""
    sequence: _Given
    """tokens of a sample"""
    vocabulary: _Expression = None
    """tokens that the model knows"""
    tied: _Expression = None
    """whether the last layer takes the weights of the table of tokens"""
    learned_positions: _Expression = None
    """whether each position of a sample has a learned vector (GPT-2, MPT), among the parameters"""
    recompute: _Expression = None
    """`none`, `selective` (attention) or `full`: what of the forward pass the backward pass
    computes again"""
    micro_batch: _Expression = None
    """samples of a data-parallel rank in a forward pass"""
    accumulation: _Expression = None
    """forward passes in a step"""
    global_batch: _Expression = None
    """samples of all ranks in a step"""
    dtype: _Expression = None
    """type of the numbers in products: `float32`, `tf32`, `bfloat16`, `float16` or `float8`"""
    float8_share: _Expression = None
    """share of the FLOP in float8, the others being in bfloat16; without it float8 has no MFU,
    because two peaks mix"""
    device: _Expression = None
    """what a rank computes on, a name of the
    [data sheets](../methods/utilisation.md#peaks-of-data-sheets); default: the site's peaks"""


class MemoryKeys(Model):
    """What the memory of a rank depends on besides mesh and transformer."""

    zero: _Expression = None
    """what the data-parallel ranks of a shard (`dp_shard`, else `dp`) divide: 0 nothing (default),
    1 the optimiser's state, 2 gradients too, 3 weights too (ZeRO, FSDP)"""
    optimizer: _Expression = None
    """`sgd`, `momentum`, `adam` (default) or `adamw`"""
    schedule: _Expression = None
    """of the pipeline: `1f1b` (default), `gpipe` or `interleaved`"""
    virtual_stages: _Expression = None
    """stages of each rank of an interleaved pipeline"""
    stages: _Expression = None
    """`even` (default): as many blocks on every rank of the pipeline; `balanced`: as many
    operations, with those of the last layer (nanotron)"""
    least_passes: _Expression = None
    """micro-batches that a step must have for the schedule to start: `one` (default), `stages - 1`
    (1F1B of nanotron) or `stages` (1F1B of torch.distributed.pipelining)"""
    sequence_parallel: _Expression = None
    """whether tensor-parallel ranks share what lies between the matrices of a block as well;
    default: `true`"""
    split_vocabulary: _Expression = None
    """whether tensor-parallel ranks share the first and the last layer; default: `true`"""
    weight_bytes: _Expression = None
    """bytes of a weight; default: by dtype, 4 or 2"""
    gradient_bytes: _Expression = None
    """bytes of a weight's gradient, with copies of it; default: 4"""
    master_bytes: _Expression = None
    """bytes of the weight that the optimiser updates, where that is a copy; default: by dtype, 0
    or 4"""
    device_gib: _Expression = None
    """GiB that a rank has, where that is not the site's `memory_gib_per_gpu`; without GPUs
    `memory_gib_per_rank`, or `memory_gib_per_node` over the ranks of a node"""
    peak: Annotated[
        tuple[Line, ...], BeforeValidator(lambda v: [v] if kind(v) == "#text" else v)
    ] = ()
    """the metric that is the measured peak, in bytes; of several the first that runs have"""
    rank: Literal["most", "first", "mean"] = "most"
    """which rank the peak is of: the one with the most, one of the first stage, or the mean"""


class DefinedMetric(Model):
    """A metric."""

    FORM: ClassVar[str] = (
        "a definition, or {definition: text, compare: always, same_training or never, kind: "
        "extensive, intensive or latency}"
    )
    definition: Line
    """the sentence that the report prints"""
    compare: Literal["always", "same_training", "never"] | None = None
    """between which runs the metric is compared, default `always`: `same_training` where runs train
    to a target or on the same number of samples; a loss, an error or an accuracy that is not the
    main metric is `never`"""
    kind: _Kind | None = None
    """what becomes of it as ranks are added: `extensive`, a rate or time of work, has an ideal,
    hence efficiency, speedup, verdict and predictions; `intensive`: a bandwidth of a link, a
    utilisation; `latency`. Default: by unit and name"""


class WorkKeys(Model):
    """Samples of an epoch."""

    scope: Literal["rank", "total"]
    samples: Line


class DataKeys(Model):
    """A data set that is made before runs."""

    name: Name | None = None
    """begin of the data sets' folder names; default: the program's package or folder"""
    program: Line
    """a module of a package (`my_benchmark.stage`) or a file in the benchmark's folder"""
    version: Count = 1
    """raise it when the data change"""
    parameters: Lines
    """the parameters that identify the data set"""
    files: Annotated[dict[Line, Line], FILLED]
    """split -> number of files, an expression"""
    bytes_per_file: Line
    """an expression"""


class LaunchKeys(Model):
    """The launcher command of a benchmark."""

    single: Lines
    multi: Lines


class CommandWords(Model):
    """Words under a condition."""

    FORM: ClassVar[str] = "a word, or {when: expression, words: [word, ...]}"
    when: Line
    words: Annotated[Lines, FILLED]


_Words = Annotated[
    Annotated[Line, Tag("#text")] | Annotated[CommandWords, Tag("#map")], either(CommandWords.FORM)
]


class StampsKeys(Model):
    """How stamps are read."""

    FORM: ClassVar[str] = (
        "stdout, stderr or a file in {out}, or {from: ..., warmup: ..., meet: ...}"
    )
    source: Text = Field(alias="from")
    """`stdout`, `stderr`, or files in `{out}` (`spans-*.jsonl`)"""
    warmup: Annotated[Whole, Field(ge=0)] = 0
    """steps that are left out first, beside those that the program marks"""
    meet: Literal["all", "none"] | None = None
    """whether all ranks meet in each step (`all`, the default). `none`: each is looked at alone,
    and steps of ranks are not compared"""


class ExtractKeys(Model):
    """A metric that is extracted."""

    metric: Name
    """its name"""
    pattern: Text
    """Python's regular expression, searched in one line at a time. The number is the group `value`,
    or the only group; a group `key` makes a metric `<metric>_<key>` for each key; a group `rank`
    says which rank printed it"""
    unit: Text
    """`"1"` for a plain number"""
    better: Literal["higher", "lower"]
    """which direction is better"""
    scope: Literal["rank", "total"]
    """`rank`: what one rank has (the mean over ranks is taken); `total`: what all ranks have
    together"""
    kind: _Kind | None = None
    """as of a metric above; default: by unit and name"""
    type: Literal["number", "integer"] = "number"
    """of the number"""
    match: Annotated[
        Line,
        matching(
            "(first|last|mean|median|all|p[1-9][0-9]?)",
            "one of first, last, mean, median, all, or a percentile, p1 to p99",
        ),
    ] = "last"
    """which match counts: `first`, `last`, `mean`, `median`, a percentile (`p1` to `p99`), or
    `all`: their mean, and each of them in `samples.npz`"""
    skip: Annotated[Whole, Field(ge=0)] = 0
    """matches of each rank that are left out first, of steps that compile or warm up"""
    source: Text = Field("stdout", alias="from")
    """or `stderr`, or a file in `{out}` (`logs/*.txt` is allowed; as many files as ranks are one of
    each rank)"""
    printed_by: Literal["rank_0", "every_rank"] | None = None
    """where no labels identify the rank"""
    optional: Flag = False
    """whether it may be missing"""


class ResultKeys(Model):
    """How what a program prints is read."""

    FORM: ClassVar[str] = (
        "native, wall_time, or {reader: ...}, {stamps: ...}, {extract: [metric, ...]}"
    )
    reader: Text | None = None
    """how its log is read: a shipped reader (`torchtitan`), or a file beside benchmark.yaml
    (`my_trainer.yaml`)"""
    stamps: Annotated[StampsKeys, instead_of("from", str)] | None = None
    """the program prints [stamps](stamps.md) of its steps: `{from, warmup, meet}`, or a text, which
    is `from`"""
    extract: Annotated[tuple[ExtractKeys, ...], FILLED] | None = None
    """patterns for what it prints"""

    @model_validator(mode="after")
    def _names_one(self) -> "ResultKeys":
        if not (self.reader or self.stamps or self.extract):
            raise ValueError("is empty; write reader, stamps or extract")
        return self


class BenchmarkKeys(Model):
    """`benchmark.yaml` says what varies in a benchmark and how its program is started and read: in
    `workflow/benchmarks/NAME/`, or `benchmarks/NAME/` of your study
    ([add a benchmark](../guide/benchmarks.md), [external programs](../guide/external_programs.md)).
    Expressions are Python's arithmetic, comparison and `x if c else y` over parameter names,
    without calls."""

    name: Name
    """the folder's name"""
    version: Count
    """raise it when what is measured changes; it is part of every run id"""
    summary: Line
    """one sentence for plan and report"""
    parameters: dict[Name, ParameterKeys]
    """name -> parameter; `ranks` and `ranks_per_node` are required"""
    divides: tuple[Divides, ...] = ()
    """pairs that must divide without a rest; a campaign that contradicts is refused with the
    nearest valid numbers; a combination that a product of axes makes is left out"""
    refuse: tuple[Refuse, ...] = ()
    """values that do not go together: a campaign that sets them is refused; a combination that a
    product of axes makes is left out, with the reason"""
    workers: WorkersKeys | None = None
    """what runs scale over instead of ranks, where a rank may have several devices"""
    layout: LayoutKeys | None = None
    """short names for how ranks share the work, where that takes several parameters (a mesh). Where
    these vary together and form no grid, tables, figures and findings have one parameter `layout`
    in their place; names of unequal layouts are never equal"""
    mesh: Annotated[tuple[_Axis, ...], FILLED] | None = None
    """the axes of the mesh of ranks: `dp`, or `dp_replicate` and `dp_shard`; `tp`, `pp`, `cp`,
    `ep`. A role alone is the parameter of this name. The product must be `ranks`; `ep` lies inside
    the data-parallel axes and `cp` and must divide their product. A point that breaks this is left
    out, or refused"""
    transformer: TransformerKeys | None = None
    """the shape of the decoder-only transformer that is trained, and of its batch, as expressions
    over parameters; [FLOP, utilisation](../methods/utilisation.md) and memory follow"""
    memory: MemoryKeys | None = None
    """what the memory of a rank depends on besides `mesh` and `transformer`: plan and report say
    which points fit ([memory](../methods/memory.md))"""
    metrics: dict[Any, Annotated[DefinedMetric, instead_of("definition", str)]] = Field({})
    """name -> definition for the report; as a map also `compare` and `kind`"""
    parts: Annotated[dict[Name, Annotated[tuple[Text, ...], FILLED]], FILLED] | None = None
    """part -> regular expressions that group the functions of an imported profile
    ([parts](../guide/profiles.md#parts-of-a-program))"""
    noexchange: Flag = False
    """the program can train without the exchange of gradients (`profile: noexchange`)"""
    main_metric: Name | None = None
    """what figures and findings are about; default: the first metric"""
    ceiling: Literal["compute", "memory", "network", "files", "copies"] | None = None
    """the main metric, in FLOP/s or bytes/s, is the most that a machine can do of this"""
    work: WorkKeys | None = None
    """samples of an epoch, an expression, of a rank or in all; checks weak and strong scaling"""
    data: DataKeys | None = None
    """a data set that is made before runs"""
    env: dict[Variable, Line] = Field({})
    """variables set from parameters before the program starts, unless null"""
    launch: LaunchKeys | None = None
    """replaces the site's launcher command, with the same placeholders"""
    python: Text | None = None
    """a path, a name in PATH, or `{program:NAME}`: what `{python}` means in the command and in the
    benchmark's own `launch`; default: the site's"""
    framework: Literal["tensorflow", "torch"] | None = None
    """what the program trains with: decides which of the site's Pythons `{python}` is, and which
    launcher starts its ranks. Where the site has none, points are unsupported"""
    threads: Line | None = None
    """an expression: threads that a rank computes with, default 1; marks oversubscribed points. 0:
    as many as the framework chooses, which is not known before the run"""
    gpus: Line | None = None
    """an expression: GPUs that a rank takes where there are any; a campaign that needs more of a
    node than the site's `gpus_per_node`, or than `CUDA_VISIBLE_DEVICES` shows, is refused"""
    command: Annotated[tuple[_Words, ...], FILLED]
    """list of words, or of `{when, words}`: what is started once per rank
    ([placeholders](../guide/external_programs.md#the-command))"""
    result: Annotated[
        Annotated[Line, matching("native|wall_time", ResultKeys.FORM), Tag("#text")]
        | Annotated[ResultKeys, Tag("#map")],
        either(ResultKeys.FORM),
    ]
    """`native`: the program writes native.json itself; `wall_time`: the time from its start to its
    end, and nothing that it prints; or a map of one or several of `reader`: its log is read by a
    [reader](../guide/training_logs.md), `stamps`: it prints its steps, and `extract`: patterns for
    what it prints"""

    @model_validator(mode="after")
    def _has_ranks(self) -> "BenchmarkKeys":
        for name in _NEEDED:
            if name not in self.parameters:
                raise WrongKeyError("parameters", f"the key {name!r} is missing")
        return self
