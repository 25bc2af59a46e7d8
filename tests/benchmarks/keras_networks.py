"""Helper of test_torch_networks: what the residual networks of cnn_training are.

``keras_networks.py FILE SEED``: writes, by model, ``shapes`` of the trained weights, ``digests`` of
all first weights, and ``logits`` of two images in training.
"""

import sys
from hashlib import blake2b

from harness import import_without

import_without("pandas", "scipy", "PIL")

import numpy as np

from cnn_training import models
from harness import seeded


def main():
    content, seed = {}, int(sys.argv[2])
    for model, data_set in (("resnet20", "cifar10"), ("resnet50", "imagenet")):
        network = models.build(model, data_set, "NHWC", seed=seed)
        shape, classes = models.image_shape(model, data_set), models.CLASSES[data_set]
        images, _ = seeded.fixed_batch(shape, classes, seed, 0, 2)
        content[f"{model}_logits"] = network(images, training=True).numpy()
        trained = [str(tuple(each.shape)) for each in network.trainable_weights]
        content[f"{model}_shapes"] = np.array(trained)
        first = models.initial_weights(network, seed)
        digests = [blake2b(each.tobytes(), digest_size=8).hexdigest() for each in first]
        content[f"{model}_digests"] = np.array(digests)
    np.savez(sys.argv[1], **content)


if __name__ == "__main__":
    main()
