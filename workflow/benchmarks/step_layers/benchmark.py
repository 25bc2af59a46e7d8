"""What a rank does: build the model, time its layers and its step in turns."""

from dataclasses import fields
from typing import Any

import numpy as np
import tensorflow as tf

from harness import ranks, watch
from harness.frame import Arrays, Benchmark
from harness.native import Metric, Work, metric
from step_layers import costs, networks, parts

SIZES = {"float32": 4, "mixed_bfloat16": 2, "mixed_float16": 2}


class Program(Benchmark):
    """The layers of a model, each timed apart, against the whole step."""

    def start(self) -> None:
        """Start the ranks."""
        params = self.params
        ranks.start(params["ranks"], params["inter_threads"], params["intra_threads"])

    def set_up(self) -> None:
        """Build the model and all that is timed."""
        params, batch = self.params, self.params["batch_size"]
        with self.phases("build"):
            tf.keras.mixed_precision.set_global_policy(params["precision"])
            tf.keras.utils.set_random_seed(params["seed"])
            model = networks.make(params)
            samples, labels = parts.batch_of(model, batch, self.run.seed)
            self.step = parts.whole_step(model, samples, labels)
            self.launch = parts.nothing()
            self.parts = [
                *parts.layer_parts(model, batch, SIZES[params["precision"]]),
                parts.loss_part(model, labels, batch),
                parts.update_part(model),
            ]

    def warm_up(self) -> None:
        """Trace everything, and choose how often each is repeated."""
        least = self.params["least_ms"] / 1e3
        with self.phases("warmup"):
            loops = [loop for part in self.parts for loop in (part.forward, part.both) if loop]
            for timed in (self.step, self.launch, *loops):
                timed.calibrate(least)
                watch.advance()

    def measure(self) -> None:
        """Time everything once in every round, so that a slower minute slows all of it."""
        rounds, count = self.params["rounds"], len(self.parts)
        self.steps, self.launches = np.zeros((2, rounds))
        self.forward, self.both = np.zeros((2, rounds, count))
        with self.phases("timed"):
            for number in range(rounds):
                ranks.barrier()
                # Before and after the layers, of which some have warmed caches or heated cores.
                first = self.step.seconds()
                self.launches[number] = self.launch.seconds()
                for place, part in enumerate(self.parts):
                    self.forward[number, place] = forward = part.forward.seconds()
                    self.both[number, place] = part.both.seconds() if part.both else forward
                    watch.advance()
                self.steps[number] = (first + self.step.seconds()) / 2

    def gather(self) -> dict[str, np.ndarray | None]:
        """Gather ``[round, rank]`` of the step and of nothing, ``[round, layer, rank]``."""
        arrays = {
            "step": self.steps,
            "launch": self.launches,
            "forward": self.forward,
            "both": self.both,
        }
        return {f"layer_{name}": ranks.gather(array) for name, array in arrays.items()}

    def work(self) -> Work:
        """Return the samples of a step."""
        return {"samples_per_epoch": self.params["ranks"] * self.params["batch_size"]}

    def metrics(self, arrays: Arrays) -> dict[str, Metric]:
        """Return the times of step and layers, and what they come to."""
        counts = np.array([part.count for part in self.parts])
        step = np.median(arrays["layer_step"], axis=0)
        layers = (counts[:, None] * np.median(arrays["layer_both"], axis=0)).sum(axis=0)
        flop = sum(part.count * part.cost.flop for part in self.parts)
        samples = (self.params["batch_size"] / step).sum()
        return {
            "samples_per_second": metric(samples, "samples/s", "higher", "total"),
            "step_time": metric(step.mean(), "s", scope="rank"),
            "layers_time": metric(layers.mean(), "s", scope="rank"),
            "layer_coverage": metric((layers / step).mean(), "1", "higher", "rank"),
            "step_flop": metric(flop, "FLOP", scope="rank"),
            "flop_per_second": metric((flop / step).mean(), "FLOP/s", "higher", "rank"),
        }

    def notes(self, about_ranks: list[Any]) -> dict[str, Any]:
        """Return what the layers are: the order of the arrays' second axis."""
        return {
            "layers": {
                "name": [part.name for part in self.parts],
                "kind": [part.kind for part in self.parts],
                "count": [part.count for part in self.parts],
                "turns": [part.forward.turns for part in self.parts],
                **{
                    each.name: [getattr(part.cost, each.name) for part in self.parts]
                    for each in fields(costs.Cost)
                },
            }
        }
