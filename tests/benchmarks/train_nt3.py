"""Helper of test_nt3_training: train the program's way on shards and keep the weights.

``train_nt3.py RUN_FILE FOLDER``, on each of R ranks, which share two blocks of rows: one rank alone
takes the batches that two ranks take together. Rank r writes ``FOLDER/rank<r>.npz``: ``w<v>`` for
variable v, the largest values of the scaled features, and `loss[epoch]`.
"""

import sys
from pathlib import Path

import numpy as np

from harness import program, ranks, tf_training
from harness.phases import Phases
from nt3 import preprocessing, tables
from nt3.trainer import Trainer

run = program.read_run(sys.argv[1])
folder, params = Path(sys.argv[2]), run.params
ranks.use("tensorflow")
tf_training.start(params)
tf_training.set_seeds(5, ranks.rank())
samples = tables.Data(run, Phases()).preprocess()
trainer = Trainer(params, samples, seed=5)
tf_training.broadcast(trainer.model, trainer.optimizer)
if params["ranks"] == 1:
    # The halves of every batch come from the two blocks in which two ranks share the rows.
    order = np.arange(params["train_samples"]).reshape(2, -1, params["batch_size"] // 2)
    order = order.transpose(1, 0, 2).ravel()
    size = params["batch_size"]
    trainer.batches = lambda _: preprocessing.batches(samples["train"], size, order)
history = trainer.run(Phases())
weights = {f"w{n}": each.numpy() for n, each in enumerate(trainer.model.trainable_variables)}
largest = samples["test"][0].numpy().max(axis=0)
np.savez(folder / f"rank{ranks.rank()}.npz", loss=history.values["loss"], x=largest, **weights)
ranks.stop()
