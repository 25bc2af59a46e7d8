"""Helper of test_cnn_updates: train in several ways and keep every copy's weights.

``train_copies.py FOLDER STEPS CASE...``, on every rank; a CASE is JSON, the parameters that differ
from SETTINGS. Cases that TensorFlow's own clusters serve need a process of their own; others share
one. Rank r writes ``FOLDER/case<number>-rank<r>.npz``: `times`, `losses`, `spans`, `copies`
``[copy, weight]``, `places` (the devices of all variables) and `cpu_seconds` of the process. A case
``{"reference": true}`` is plain arithmetic instead, with none of the program's code but its network
and images.
"""

import json
import sys
import time
from pathlib import Path

from harness import import_without

import_without("pandas", "scipy", "PIL")

import numpy as np
import tensorflow as tf

from cnn_training import cluster, images, models, updates
from harness import ranks
from tests.benchmarks.programs import Program

SETTINGS = {
    "model": "lenet",
    "data_set": "imagenet",
    "batch_size": 16,
    "optimizer": "momentum",
    "learning_rate": 0.003,
    "weight_decay": 0.01,
}
DEFAULTS = Program("cnn_training", {}).defaults


def reference(params, steps):
    """Momentum and L2 decay by hand, on one device that takes the images of all."""
    shape = models.image_shape(params["model"], params["data_set"])
    pixels, labels = images.fixed_batch(shape, 1000, params["seed"], 0, 2 * params["batch_size"])
    model = models.build(params["model"], params["data_set"], "NHWC", seed=params["seed"])
    weights = [each.numpy() for each in model.trainable_variables]
    speeds = [np.zeros_like(each) for each in weights]
    losses = []
    for _ in range(steps):
        with tf.GradientTape() as tape:
            logits = model(pixels, training=True)
            odds = tf.nn.log_softmax(logits)
            loss = -tf.reduce_mean(tf.gather(odds, labels, batch_dims=1))
            decay = sum(tf.reduce_sum(each**2) / 2 for each in model.trainable_variables)
            target = loss + params["weight_decay"] * decay
        losses.append(float(loss))
        gradients = tape.gradient(target, model.trainable_variables)
        for number, gradient in enumerate(gradients):
            speeds[number] = 0.9 * speeds[number] - params["learning_rate"] * gradient.numpy()
            weights[number] = weights[number] + speeds[number]
            model.trainable_variables[number].assign(weights[number])
    return {"losses": np.array(losses)}, [weights]


def train(params, place, steps):
    """Train as the program does."""
    trainer = updates.make(params, place, None)
    times, losses, spans = trainer.run(steps)
    return {"times": times, "losses": losses, "spans": spans}, trainer.copies


def main():
    folder, steps = Path(sys.argv[1]), int(sys.argv[2])
    place = None
    ranks.use("tensorflow")
    for number, text in enumerate(sys.argv[3:]):
        changes = json.loads(text)
        params = DEFAULTS | SETTINGS | changes
        if place is None:
            place = cluster.join(params)
        if changes.get("reference"):
            arrays, copies = reference(params, steps)
        else:
            began = time.process_time()
            arrays, copies = train(params, place, steps)
            ranks.barrier()
            arrays["cpu_seconds"] = time.process_time() - began
            arrays["places"] = [each.device for copy in copies for each in copy]
        weights = [np.concatenate([np.ravel(each) for each in copy]) for copy in copies]
        arrays["copies"] = np.array(weights)
        np.savez(folder / f"case{number}-rank{place.rank}.npz", **arrays)
    ranks.stop()


main()
