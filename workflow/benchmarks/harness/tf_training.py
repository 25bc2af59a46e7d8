"""Training under Horovod: devices and seeds, the learning rate, steps, and epochs that are timed.

Per epoch, on every rank: barrier; start the clock; take all training steps; `local_time`; barrier;
`global_time`; validate; barrier. What the steps of all ranks gave is averaged after that, outside
of both times, and decides whether training goes on.
"""

import os
import random
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import horovod.tensorflow as hvd
import numpy as np
import tensorflow as tf

from harness import input_errors, no_exchange, ranks, spans, tf_spans, watch
from harness.native import Metric, metric
from harness.phases import Phases
from harness.program import EXIT_BAD_DATA, EXIT_UNSUPPORTED, ProgramError

Batches = Iterable[tuple[tf.Tensor, tf.Tensor]]
Step = Callable[[tf.Tensor, tf.Tensor], tuple[tf.Tensor, tf.Tensor]]
Measure = Callable[[tf.Tensor, tf.Tensor], Sequence[tf.Tensor]]


def start(params: dict[str, Any]) -> None:
    """Initialise Horovod and TensorFlow as the parameters say, each rank on a GPU of its own.

    Raises ProgramError on all ranks where a host has GPUs, but fewer than ranks.
    """
    set_knobs(params)
    ranks.join(params["ranks"], params["inter_threads"], params["intra_threads"])
    _, problem = take_gpus(1)
    ranks.raise_together(problem)


def take_gpus(count: int, here: bool = True) -> tuple[list[Any], tuple[int, str] | None]:
    """Return this rank's GPUs, `count` of them if its host has any, or a problem; unless they are
    to be used `here`, in this process, it sees none.

    Ranks of one host take its GPUs in turn, unless Slurm has given each its own already.
    """
    gpus = tf.config.list_physical_devices("GPU")
    bound = "SLURM_GPUS_PER_TASK" in os.environ
    first = 0 if bound else hvd.local_rank() * count
    mine = gpus[first : first + count]
    if gpus and len(mine) < count:
        said = f"{len(gpus)} GPUs for {1 if bound else hvd.local_size()} ranks of a host"
        return [], (EXIT_UNSUPPORTED, f"{count} GPUs for each rank: {said}" if count > 1 else said)
    if gpus:
        tf.config.set_visible_devices(mine if here else [], "GPU")
    for gpu in mine if here else []:
        tf.config.experimental.set_memory_growth(gpu, True)
    return mine, None


def set_knobs(params: dict[str, Any]) -> None:
    """Set the variables that Horovod reads when it starts: parameters of these names, if any."""
    megabytes = params.get("fusion_threshold_mb")
    knobs = {
        "HOROVOD_FUSION_THRESHOLD": None if megabytes is None else megabytes << 20,
        "HOROVOD_CYCLE_TIME": params.get("cycle_time_ms"),
        "HOROVOD_HIERARCHICAL_ALLREDUCE": int(params.get("hierarchical_allreduce", False)) or None,
    }
    os.environ.update({name: str(value) for name, value in knobs.items() if value is not None})


def set_seeds(seed: int, rank: int) -> None:
    """Seed Python, NumPy and TensorFlow; rank r of seed s draws other numbers than any other.

    Initial weights may differ between ranks then: rank 0's are broadcast.
    """
    mixed = int(np.random.SeedSequence([seed, rank]).generate_state(1)[0])
    random.seed(mixed)
    np.random.seed(mixed)
    tf.random.set_seed(mixed)


@dataclass(frozen=True)
class Schedule:
    """Learning rate by epoch: linear warm-up from `base` to `peak`, then steps down.

    After the CosmoFlow benchmark (utils/optimizers.py; Goyal et al., arXiv:1706.02677): within
    `warmup_epochs` the rate rises with every step; from each of `decay_epochs` on, in ascending
    order, it is the peak times the factor of that place in `decay_factors`.
    """

    base: float
    peak: float
    warmup_epochs: int
    decay_epochs: tuple[int, ...]
    decay_factors: tuple[float, ...]
    steps_per_epoch: int

    def __call__(self, step: int) -> float:
        """Return the rate of a step, counted from 0 over all epochs."""
        epoch = step / self.steps_per_epoch
        if epoch < self.warmup_epochs:
            return self.base + (self.peak - self.base) * epoch / self.warmup_epochs
        passed = sum(epoch >= edge for edge in self.decay_epochs)
        return self.peak * self.decay_factors[passed - 1] if passed else self.peak


def scaled_rate(base: float, scaling: str, factor: float) -> float:
    """Return the peak learning rate: `base` times `factor` (``linear``), its root, or once."""
    return base * {"linear": factor, "sqrt": factor**0.5, "none": 1.0}[scaling]


def make_step(
    model: tf.keras.Model,
    optimizer: tf.keras.optimizers.legacy.Optimizer,
    measure: Measure,
    compression: str = "none",
    loss_scale: float = 1.0,
) -> Step:
    """Return a step of synchronous training: gradients are averaged over the ranks, unless that
    is left out (`exchange`).

    `measure(y, prediction)` returns values ``[batch]`` of each sample, of which the mean of the
    first is minimised. A step returns their sums over this rank's batch, as one vector, and its
    stamps (`tf_spans.of_steps`). Gradients are those of the loss times `loss_scale`, divided by it
    again: for float16.
    """
    variables = model.trainable_variables
    compressor = getattr(hvd.Compression, compression)

    # There is no Python to convert; AutoGraph would take 3 s to look through all of Horovod.
    @tf.function(reduce_retracing=True, autograph=False)
    def step(x: tf.Tensor, y: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        begun, (x,) = tf_spans.begin(x)
        with tf.GradientTape() as tape:
            values = measure(y, model(x, training=True))
            loss = tf.reduce_mean(values[0]) * loss_scale
        gradients = tape.gradient(loss, variables)
        if loss_scale != 1.0:
            gradients = [gradient / loss_scale for gradient in gradients]
        ready = reduced = tf_spans.stamp(gradients)
        if hvd.size() > 1 and not no_exchange.left_out():
            gradients = [
                hvd.allreduce(each, op=hvd.Average, compression=compressor, name=f"gradient_{n}")
                for n, each in enumerate(gradients)
            ]
            reduced = tf_spans.stamp(gradients)
        updated = optimizer.apply_gradients(zip(gradients, variables, strict=True))
        sums = tf.stack([tf.reduce_sum(tf.cast(value, tf.float32)) for value in values])
        return sums, tf.stack([begun, ready, reduced, tf_spans.stamp(sums, updated)])

    return step


def make_evaluation(model: tf.keras.Model, measure: Measure) -> Step:
    """Return a function as `make_step` does that changes nothing, and takes no stamps."""

    @tf.function(reduce_retracing=True, autograph=False)
    def evaluate(x: tf.Tensor, y: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        values = measure(y, model(x, training=False))
        sums = tf.stack([tf.reduce_sum(tf.cast(value, tf.float32)) for value in values])
        return sums, tf.zeros([4], tf.float64)

    return evaluate


def broadcast(model: tf.keras.Model, optimizer: tf.keras.optimizers.legacy.Optimizer) -> None:
    """Give every rank the model's and the optimiser's variables of rank 0."""
    if hvd.size() > 1:
        optimizer._create_all_weights(model.trainable_variables)
        hvd.broadcast_variables([*model.variables, *optimizer.variables()], root_rank=0)


@dataclass
class Part:
    """What one pass over batches gave on this rank: mean values, seconds waiting for input, and
    where the time of each step went (`tf_spans.of_steps`)."""

    values: np.ndarray
    input_s: float
    spans: np.ndarray


def run_part(
    batches: Batches, step: Step, steps: int, before: Callable[[int], None] = lambda _: None
) -> Part:
    """Take `steps` steps on batches; `before(i)` is called before the i-th.

    A step ends when what it measured is known to the program. Raises ProgramError when the input
    ends early, is gone or broken: at once, on this rank alone, as the others wait for it.
    """
    sums: np.ndarray | None = None
    samples = 0
    waited: list[float] = []
    between: list[float] = []
    stamps: list[np.ndarray] = []
    clock = time.perf_counter
    iterator = None
    ended = clock()
    for number in range(steps):
        began = clock()
        between.append(began - ended)
        try:
            iterator = iter(batches) if iterator is None else iterator
            x, y = next(iterator)
        except StopIteration:
            message = f"rank {hvd.rank()}: input ended after {number} of {steps} batches"
            raise ProgramError(EXIT_BAD_DATA, message) from None
        except tf.errors.OpError as error:
            code, said = input_errors.describe(error, ())
            raise ProgramError(code, f"rank {hvd.rank()}: input: {said}") from None
        waited.append(clock() - began)
        before(number)
        measured, stamped = step(x, y)
        quantities = measured.numpy().astype(np.float64)
        stamps.append(stamped.numpy())
        ended = clock()
        sums = quantities if sums is None else sums + quantities
        samples += int(x.shape[0])
        watch.advance()
    values = np.empty(0) if sums is None else sums / samples
    return Part(values, sum(waited), tf_spans.of_steps(waited, between, stamps))


@dataclass
class History:
    """What this rank saw, one entry per epoch; `values` by name."""

    local: list[float] = field(default_factory=list)  # s, training, until this rank was done
    total: list[float] = field(default_factory=list)  # s, training, until every rank was done
    validation: list[float] = field(default_factory=list)  # s, until every rank was done
    ends: list[float] = field(default_factory=list)  # s, since the first epoch began
    input_s: list[float] = field(default_factory=list)  # s of training spent waiting for batches
    spans: list[np.ndarray] = field(default_factory=list)  # of its steps (tf_spans.of_steps)
    rates: list[float] = field(default_factory=list)  # learning rate of the last step
    values: dict[str, list[float]] = field(default_factory=dict)
    target_at: float | None = None  # s, since the first epoch began
    out_of_order: int = 0  # steps with such stamps on any rank; known on rank 0 after `arrays`

    def arrays(self) -> dict[str, np.ndarray | None]:
        """Collect arrays ``[epoch, rank]`` on rank 0, under their names in samples.npz."""
        mine = {
            "local_times": self.local,
            "global_times": self.total,
            "validation_times": self.validation,
            "epoch_ends": self.ends,
            "span_wait": list(np.subtract(self.total, self.local)),
            "learning_rate": self.rates,
            **self.values,
        }
        arrays = {name: ranks.gather(np.array(each)) for name, each in mine.items() if each}
        arrays["span_input"] = ranks.gather(np.array(self.input_s))
        return arrays | self._spans()

    def _spans(self) -> dict[str, np.ndarray]:
        """Collect the sums over the steps of each epoch (`spans.of_epoch`), where there are any."""
        if not self.spans or not self.spans[0].size:
            return {}
        reduced: dict[str, list[np.ndarray]] = {}
        for own in self.spans:  # one epoch after the other: all steps of all ranks are too many
            steps = ranks.gather(own)
            if steps is not None:  # [step, column, rank]
                self.out_of_order += int((steps < -spans.CLOCK_S).any(axis=(1, 2)).sum())
            for name, value in (spans.of_epoch(steps) if steps is not None else {}).items():
                reduced.setdefault(name, []).append(value)
        return {name: np.array(values) for name, values in reduced.items()}


def train(
    epochs: int,
    train_epoch: Callable[[int], Part],
    validate: Callable[[int], Part] | None,
    names: Sequence[str],
    phases: Phases,
    rate: Callable[[], float],
    reached: Callable[[dict[str, float]], bool] = lambda _: False,
    validated: Sequence[str] | None = None,
) -> History:
    """Train and validate for `epochs` epochs, or until `reached` says so of the mean over ranks.

    `names` are those of the values that the parts measure, the loss first; validation's are
    `validated`, or the same with ``validation_`` in front. `rate()` is the learning rate in use.
    All ranks end together with exit code 65 when the loss of one is not finite.
    """
    history = History()
    checks = validated or [f"validation_{name}" for name in names]
    clock = time.perf_counter
    ranks.barrier()
    origin = clock()
    for epoch in range(epochs):
        with phases("training"):
            ranks.barrier()
            began = clock()
            part = train_epoch(epoch)
            local = clock()
            ranks.barrier()
            total = clock()
        quantities = dict(zip(names, part.values, strict=True))
        if validate is not None:
            with phases("validation"):
                ranks.barrier()
                started = clock()
                checked = validate(epoch)
                ranks.barrier()
                ended = clock()
            history.validation.append(ended - started)
            quantities |= zip(checks, checked.values, strict=True)
        history.ends.append(clock() - origin)
        history.local.append(local - began)
        history.total.append(total - began)
        history.input_s.append(part.input_s)
        history.spans.append(part.spans)
        history.rates.append(rate())
        for name, value in quantities.items():
            history.values.setdefault(name, []).append(value)
        mean = ranks.mean_over_ranks(quantities)
        bad = [f"{it} is {value}" for it, value in quantities.items() if not np.isfinite(value)]
        said = f"training diverged in epoch {epoch}: {', '.join(bad)}"
        ranks.raise_together((EXIT_BAD_DATA, said) if bad else None)
        if reached(mean):
            history.target_at = history.ends[-1]
            break
    return history


def training_metrics(
    arrays: dict[str, np.ndarray], samples_per_epoch: int, target_at: float | None, model: Any
) -> dict[str, Metric]:
    """Return the metrics that every training program reports, from arrays ``[epoch, rank]``."""
    total = float(arrays["global_times"].max(1).sum())
    epochs = len(arrays["global_times"])

    metrics = {
        "training_samples_per_second": metric(
            samples_per_epoch * epochs / total, "samples/s", "higher"
        ),
        "training_time": metric(total, "s"),
        "epochs_run": metric(epochs, "epochs"),
    }
    if target_at is not None:
        metrics["time_to_target"] = metric(target_at, "s")
    for name in ("loss", "mae", "accuracy"):
        for prefix in ("", "validation_"):
            if prefix + name in arrays:
                better = "higher" if name == "accuracy" else "lower"
                value = arrays[prefix + name][-1].mean()
                metrics[f"final_{prefix}{name}"] = metric(value, "1", better)
    weights = sum(int(np.prod(variable.shape)) for variable in model.trainable_variables)
    return metrics | {"model_parameters": metric(weights, "parameters", scope="rank")}
