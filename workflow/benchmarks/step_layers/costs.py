"""FLOP and bytes of a Keras layer, forward and backward, by its shapes.

Conventions (published counts do not share them):

* A multiply-add is two FLOP, every other arithmetic operation on a value one: an addition, a
  division, a root, an exponential. Comparisons, copies, padding, look-ups and random numbers are
  none: a maximum pooling, a ReLU and a concatenation have 0 FLOP and move bytes only.
* Padding counts as if it were values: a convolution takes all positions of its kernel everywhere.
* Backward is the gradient by the input and by the weights. The first layer of a model has none by
  its input.
* Bytes are the least that must move if nothing stays in a cache between layers, or between forward
  and backward: every array that is read or written counts once. Activations have the size of the
  compute type; weights, their gradients and statistics are float32.

Imports no TensorFlow.
"""

import math
from dataclasses import dataclass
from typing import Any

WEIGHT_BYTES = 4  # variables are float32 whatever the compute type

# Class of a layer -> its kind; classes of one kind differ in nothing that costs.
CLASSES = {
    "Conv2D": "conv2d",
    "Dense": "dense",
    "LSTM": "lstm",
    "BatchNormalization": "batch_norm",
    "LocalResponseNormalization": "lrn",
    "Activation": "activation",
    "ReLU": "activation",
    "Add": "add",
    "Concatenate": "concatenate",
    "MaxPooling2D": "max_pool",
    "AveragePooling2D": "average_pool",
    "GlobalAveragePooling2D": "average_pool",
    "ZeroPadding2D": "pad",
    "ThinOut": "pad",
    "Flatten": "reshape",
    "Dropout": "dropout",
}
PRODUCTS = ("conv2d", "dense")
UPDATE, LOSS, RESHAPE = "update", "loss", "reshape"
# FLOP per value of the output, forward and backward; of other kinds none, or as `_flop` says.
# Normalisation by the batch: mean 1, variance 3 (subtract, square, add), scale and shift 2;
# backward: normalised values once more 2, gradients of scale and shift 2 and 1, of the input 4 (two
# multiply-adds).
PER_VALUE = {"batch_norm": (6, 9), "dropout": (1, 1)}
# Normalisation over channels but for the product with its band: square, add one, three roots, two
# products; backward twice that.
LRN_FORWARD, LRN_BACKWARD = 7, 14
# Softmax with cross-entropy, per logit: subtract the largest, exponential, sum; backward: divide,
# subtract.
LOSS_FORWARD, LOSS_BACKWARD = 3, 2
# Of an LSTM, for each unit and step besides the products and biases: three sigmoids and two tanh,
# two products and a sum for the cell, a product for the output. Backward three for each function,
# and what the chain rule multiplies and adds.
LSTM_FORWARD, LSTM_BACKWARD = 9, 23
GATES = 4  # for each unit
KEPT = 5  # values that forward keeps for backward, for each unit and step: four gates and the cell


@dataclass(frozen=True)
class Cost:
    """FLOP and bytes of a layer and batch."""

    flop_forward: float
    flop_backward: float
    bytes_forward: float
    bytes_backward: float

    @property
    def flop(self) -> float:
        """Of forward and backward together."""
        return self.flop_forward + self.flop_backward


def kind_of(layer: Any) -> str:
    """The kind of a layer; KeyError for a class that has no formulas."""
    # Keras leaves a dropout of nothing out.
    return CLASSES[type(layer).__name__] if getattr(layer, "rate", 1) else RESHAPE


def weights_of(variables: list[Any]) -> int:
    """Values in variables."""
    return sum(math.prod(variable.shape) for variable in variables)


def cost(layer: Any, batch: int, size: int = 4, by_input: bool = True) -> Cost:
    """What a layer takes for ``batch`` samples, activations of ``size`` bytes per value.

    ``by_input``: whether backward gives the gradient by the input too: not in a model's first
    layer.
    """
    kind = kind_of(layer)
    if kind == RESHAPE:
        return Cost(0, 0, 0, 0)
    forward, backward = _flop(kind, layer, by_input)
    into, out = _values(layer.input_shape), _values(layer.output_shape)
    # A dropout keeps which values it has taken: a mask, of the same size here.
    kept = {"dropout": 1, "lstm": KEPT}.get(kind, 0) * out
    # What backward reads besides the gradient by the output: input and output of the layer.
    read = into * (kind in (*PRODUCTS, "lstm", "batch_norm", "lrn", "max_pool"))
    # A layer ReLU is what it is called; the output of an LSTM is all its states.
    activation = getattr(getattr(layer, "activation", None), "__name__", "relu")
    active = kind in (*PRODUCTS, "activation") and activation != "linear"
    read += out * (active or kind in ("lstm", "max_pool", "lrn"))
    moved = 0 if kind == "add" else out + read + into * by_input + kept
    weights = WEIGHT_BYTES * weights_of(layer.trainable_variables)
    return Cost(
        batch * forward,
        batch * backward,
        batch * size * (into + out + kept) + weights,
        # Weights are read for the gradient by the input; gradients of weights are written.
        batch * size * moved + weights * (1 + by_input),
    )


def _flop(kind: str, layer: Any, by_input: bool) -> tuple[float, float]:
    """FLOP of a sample, forward and backward."""
    out = _values(layer.output_shape)
    if kind in PRODUCTS:  # a kernel at every position of the output
        product = 2 * math.prod(layer.kernel.shape) * (out // layer.kernel.shape[-1])
        bias = out * layer.use_bias
        return product + bias, product * (1 + by_input) + bias
    if kind == "lstm":  # at each step a product of the input and one of the state, and the gates
        of_input = 2 * _values(layer.input_shape) * GATES * layer.units
        of_state, bias = 2 * out * GATES * layer.units, GATES * out * layer.use_bias
        # Backward both kernels have a gradient, and the state; the input where it is asked for.
        backward = of_input * (1 + by_input) + 2 * of_state + bias + LSTM_BACKWARD * out
        return of_input + of_state + bias + LSTM_FORWARD * out, backward
    if kind == "average_pool":  # a sum over the window; backward spreads the gradient as often
        pool = getattr(layer, "pool_size", None)
        window = math.prod(pool) if pool else _values(layer.input_shape) // out
        return window * out, window * out
    if kind == "add":
        return (len(layer.input_shape) - 1) * out, 0
    if kind == "lrn":  # the band's product as it is computed: with all channels, zeros included
        band = 2 * layer.input_shape[layer.data_format.index("C")]
        return (band + LRN_FORWARD) * out, (band + LRN_BACKWARD) * out
    forward, backward = PER_VALUE.get(kind, (0, 0))
    return forward * out, backward * out


def _values(shapes: Any) -> int:
    """Values of a sample in one tensor, or in several."""
    several = shapes if isinstance(shapes, list) else [shapes]
    return sum(math.prod(shape[1:]) for shape in several)


def loss_cost(logits: int, batch: int) -> Cost:
    """What softmax and cross-entropy of so many logits a sample take, in float32."""
    every = batch * logits
    moved = WEIGHT_BYTES * every
    return Cost(LOSS_FORWARD * every, LOSS_BACKWARD * every, 2 * moved, 3 * moved)


def update_cost(weights: int) -> Cost:
    """Stochastic gradient descent, whatever the batch: a multiply-add per weight, which is read
    with its gradient and written."""
    return Cost(2 * weights, 0, 3 * WEIGHT_BYTES * weights, 0)
