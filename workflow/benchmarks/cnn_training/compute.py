"""What one device does in a step, whatever becomes of its gradients: forward, backward, update."""

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from cnn_training import models
from harness import tf_spans

# Against gradients too small for float16; the default of tf_cnn_benchmarks.
FLOAT16_LOSS_SCALE = 128.0

Optimizer = tf.keras.optimizers.legacy.Optimizer
Gradients = Callable[[tf.Tensor, tf.Tensor], tuple[tf.Tensor, list[tf.Tensor]]]


def make_model(params: dict[str, Any]) -> tf.keras.Model:
    """Return the network with its seeded weights, the same on every device and rank.

    Variables are made on the current device, or by the current strategy.
    """
    tf.keras.mixed_precision.set_global_policy(params["precision"])
    names = (params[name] for name in ("model", "data_set", "data_format"))
    return models.build(*names, seed=params["seed"])


def make_optimizer(params: dict[str, Any]) -> Optimizer:
    """Return stochastic gradient descent, with momentum if that is asked for.

    The legacy one updates a variable in one fused operation and knows every strategy, of which the
    newer ones refuse CentralStorageStrategy.
    """
    momentum = 0.9 if params["optimizer"] == "momentum" else 0.0
    return tf.keras.optimizers.legacy.SGD(params["learning_rate"], momentum)


def make_gradients(model: tf.keras.Model, params: dict[str, Any], share: float = 1.0) -> Gradients:
    """Return a function from images and int labels ``[batch]`` to loss and gradients.

    The loss is the mean cross-entropy. The gradients are those of the loss and the L2 decay of all
    trainable variables, times `share`: where a sum over devices follows, one over their number
    makes it their mean.
    """
    variables = model.trainable_variables
    decay = params["weight_decay"] * share
    scale = FLOAT16_LOSS_SCALE if params["precision"] == "mixed_float16" else 1.0

    def gradients(images: tf.Tensor, labels: tf.Tensor) -> tuple[tf.Tensor, list[tf.Tensor]]:
        with tf.GradientTape() as tape:
            logits = model(images, training=True)
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)
            loss = tf.reduce_mean(losses)
            target = loss * (scale * share)
        derivatives = tape.gradient(target, variables)
        if scale != 1.0:
            derivatives = [gradient / scale for gradient in derivatives]
        if decay:
            derivatives = [g + decay * v for g, v in zip(derivatives, variables, strict=True)]
        return loss, derivatives

    return tf.function(gradients, jit_compile=True) if params["xla"] else gradients


def apply(
    optimizer: Optimizer, gradients: Sequence[tf.Tensor], variables: Sequence[tf.Variable]
) -> Any:
    """Update variables by their gradients; within a strategy these are summed over its replicas.

    Returns what is there once all are updated.
    """
    return optimizer.apply_gradients(zip(gradients, variables, strict=True))


def stamped_sums(optimizer: Optimizer) -> Callable[[], tf.Tensor]:
    """Have the optimiser take a stamp when gradients are summed over the replicas of its strategy.

    Returns the function that gives the stamp of the update traced last.
    """
    taken: list[tf.Tensor] = []
    add_up = optimizer.gradient_aggregator

    def aggregate(pairs: Any) -> Any:
        sums = list(add_up(pairs))
        taken[:] = [tf_spans.stamp([gradient for gradient, _ in sums])]
        return sums

    optimizer.gradient_aggregator = aggregate
    return lambda: taken[0]
